"""Running all stages of a source, as ``tidemark run`` does."""

from __future__ import annotations

import pkgutil
from typing import Any

import pytest

from tidemark.pipeline import run_stage
from tidemark.sources import Source
from tidemark.stages import STAGES, StageReport


def run_all(source: Source, *, start: Any = None, end: Any = None) -> dict[str, StageReport]:
    """Run all stages of a source; reports by stage."""
    return {stage: run_stage(stage, source, start, end) for stage in STAGES}


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
