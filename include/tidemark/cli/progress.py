"""What is being done, and for how long, on the last line of a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from tidemark.stages import StageReport


@contextmanager
def under_way(what: str, *, quiet: bool = False) -> Iterator[Clock]:
    """Show ``what`` with the seconds since the start, until the context ends; nothing stays of it.

    Only a terminal that is standard error shows it. Lines that are logged meanwhile stand above it.
    """
    clock = Clock(what)
    if quiet or not sys.stderr.isatty():
        yield clock
        return
    # A descriptor of its own: while Spark starts, standard error is a pipe.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as terminal:
        console = Console(file=terminal, force_terminal=True, highlight=False, markup=False)
        with console.status(clock, refresh_per_second=4):
            yield clock


class Clock:
    """A line that says what is done, and for how long."""

    def __init__(self, what: str) -> None:
        """Begin to count."""
        self._what = what
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def __rich__(self) -> Text:
        """Return the line as it is now."""
        return Text(f"{self._what}, {self.seconds:.0f} s")


def so_far(source: str, stage: str, reports: Iterable[StageReport]) -> str:
    """Return what is being done: the source, the stage, and what the stages before it counted."""
    counts = {name: value for report in reports for name, value in report.summary.items() if name in _SHOWN}
    words = [f"{value} {name}" for name, value in counts.items() if value]
    return f"{source} {stage}" + (f" ({', '.join(words)} so far)" if words else "")


_SHOWN = ("files", "messages", "events", "applied")
