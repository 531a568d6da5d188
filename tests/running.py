"""Running all stages of a source, as ``tidemark run`` does."""

from __future__ import annotations

from typing import Any

from tidemark.pipeline import run_stage
from tidemark.sources import Source
from tidemark.stages import STAGES, StageReport


def run_all(source: Source, *, start: Any = None, end: Any = None) -> dict[str, StageReport]:
    """Run all stages of a source; reports by stage."""
    return {stage: run_stage(stage, source, start, end) for stage in STAGES}
