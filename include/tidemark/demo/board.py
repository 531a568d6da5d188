"""What the demo is doing: a live table of sources and stages on a terminal, else a line every 15 seconds."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread
from types import TracebackType
from typing import IO, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidemark.text import listed

States = Mapping[str, Mapping[str, Mapping[str, str | None]]]
"""Source -> run -> task -> state, as Airflow names it."""

TASKS = ("land", "normalize", "compact", "check", "publish")
"""Tasks of a DAG that the table has a column for: the five stages."""

_EVERY = 15.0

_ON_A_TERMINAL = 3.0
"""Seconds between two looks at the tasks, where a person sees them."""

_RUNNING = frozenset({"running", "queued", "scheduled", "up_for_retry", "up_for_reschedule"})

_SHOWN = 3
"""Most running tasks that a line names."""


class Board:
    """A context manager that shows the state of the demo until it ends.

    ``step`` says what is done now. ``watch`` asks for the states of the tasks. ``days`` is how many runs of each source
    are expected.
    """

    def __init__(
        self, sources: Sequence[str], days: int, *, file: IO[str] | None = None, every: float = _EVERY
    ) -> None:
        """Show nothing yet. ``file`` is standard error if it is None."""
        self._sources = sources
        self._days = days
        self._console = Console(file=file or sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._every = every
        self._began = time.monotonic()
        self._step = ""
        self._address = ""
        self._states: States = {}
        self._ask_again = 0.0
        self._ended = Event()
        self._live = Live(self, console=self._console, refresh_per_second=2, transient=True)
        self._thread = Thread(target=self._tell_again, daemon=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        else:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._console.is_terminal:
            self._live.stop()
        else:
            self._thread.join()

    def step(self, what: str, *, address: str = "") -> None:
        """Say what is done now, and where Airflow's UI is from now on."""
        self._step = what
        self._address = address or self._address
        if not self._console.is_terminal:
            self._console.print(self.line())

    def watch(self, ask: Callable[[], States]) -> None:
        """Ask for the states of the tasks if those that are shown are some seconds old: answers cost Airflow work."""
        now = time.monotonic()
        if now >= self._ask_again:
            self._states = ask()
            self._ask_again = now + min(self._every, _ON_A_TERMINAL if self._console.is_terminal else _EVERY)

    def line(self) -> str:
        """Return in one line what is done, how far it is, and where to look."""
        words = [f"demo {self._elapsed()}: {self._step}"]
        if self._states:
            words.append(f"{self._done(TASKS[-1])} of {len(self._sources) * self._days} runs are done")
        if running := self._running():
            words.append(f"running: {listed(running, _SHOWN)}")
        return "; ".join([*words, *([self._address] if self._address else [])])

    def __rich__(self) -> Group:
        """Return the table as it is now: of each source and stage, how many of its runs are over."""
        lines = [Text(f"demo {self._elapsed()}: {self._step}")]
        lines += [Text(f"Airflow: {self._address}", overflow="fold")] if self._address else []
        if not self._states:
            return Group(*lines)
        table = Table(box=None, pad_edge=False)
        table.add_column("source", no_wrap=True, overflow="fold")
        for stage in TASKS:
            table.add_column(stage, justify="right", no_wrap=True)
        for source in self._sources:
            table.add_row(source, *(self._cell(source, stage) for stage in TASKS))
        return Group(*lines, table)

    def _cell(self, source: str, stage: str) -> str:
        states = Counter(tasks.get(stage) for tasks in self._states.get(source, {}).values())
        if states["failed"] or states["upstream_failed"]:
            return "failed"
        over = f"{states['success'] + states['skipped']}/{self._days}"
        return f"* {over}" if any(states[state] for state in _RUNNING) else over

    def _done(self, stage: str) -> int:
        runs = (tasks for found in self._states.values() for tasks in found.values())
        return sum(tasks.get(stage) in {"success", "skipped"} for tasks in runs)

    def _running(self) -> list[str]:
        return [
            f"{source} {stage}"
            for source, runs in sorted(self._states.items())
            for tasks in runs.values()
            for stage, state in tasks.items()
            if state == "running"
        ]

    def _elapsed(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes}:{seconds:02d}"

    def _tell_again(self) -> None:
        while not self._ended.wait(self._every):
            self._console.print(self.line())
