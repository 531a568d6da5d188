"""Running all stages of a source, as ``tidemark run`` does."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.stages import STAGES, StageReport


def run_all(source: Source, *, start: Any = None, end: Any = None) -> dict[str, StageReport]:
    """Run all stages of a source; reports by stage."""
    return {stage: run_stage(stage, source, start, end) for stage in STAGES}


def assert_ledger_closes(lake: Lake, source: str) -> None:
    """Every event of every table and run is accounted for, once."""
    rows = Ledger(lake, source).read("tables")
    assert rows
    names = ("applied", "superseded", "duplicate", "held", "quarantined")
    for row in rows:
        assert row["events"] == sum(row[name] for name in names), row
        assert min(row[name] for name in names) >= 0, row


def assert_ledgers_close(lake: Lake, *sources: str) -> None:
    """Every event of these sources is accounted for, in all runs."""
    for source in sources:
        assert_ledger_closes(lake, source)


def die_at(patched: pytest.MonkeyPatch, name: str, call: int) -> None:
    """Let this process die (``SystemExit``) before the n-th call of a function, as a killed one would."""
    calls = 0
    original = pkgutil.resolve_name(name)

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= call:
            raise SystemExit(f"killed before call {call} of {name}")
        return original(*args, **kwargs)

    patched.setattr(name, dying)


def tasks_apart(patched: pytest.MonkeyPatch) -> None:
    """Let each piece of work on files be a task of its own, in this process: no task sees what another one read."""

    def run(parts: Sequence[spread.Part], work: Callable[[bytes], bytes], result: type[Any]) -> list[Any]:
        return [msgspec.json.decode(work(msgspec.json.encode([part])), type=result) for part, _ in parts]

    patched.setattr(spread, "run", run)
