"""Running stages: what the command line, the jobs and Airflow share."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pyiceberg.exceptions import CommitFailedException, RESTError
from pyspark.errors import PySparkException
from sqlalchemy.exc import SQLAlchemyError

from tidemark.errors import RetriableLakeError, TidemarkError
from tidemark.sources import Source
from tidemark.stages import StageReport

_STORE_ERRORS = (PySparkException, SQLAlchemyError, CommitFailedException, RESTError, OSError)

_BY_INTERVAL = frozenset({"land", "normalize"})

HOLDING = frozenset({"check", "publish"})
"""Stages whose held-back data ends a scheduled run as failed; the problems of earlier ones do not stop the rest of the
data, and publish reports them again."""


def run_stage(
    stage: str,
    source: Source,
    start: datetime | None = None,
    end: datetime | None = None,
    **arguments: bool | str | None,
) -> StageReport:
    """Run one stage of one source.

    Args:
        stage: one of ``STAGES``, or ``rebuild`` or ``retry`` (what has to follow them: ``REBUILD``, ``RETRY``).
        source: the source.
        start: of the interval; land and normalize ask for it.
        end: of the interval.
        arguments: the stage's own (normalize: ``reprocess``; rebuild: ``table``; retry: ``reason``).

    Raises:
        TidemarkError: as the stage; whatever store or engine raise comes as ``RetriableLakeError``.
    """
    module: Any = importlib.import_module(f"tidemark.stages.{stage}")
    with _store_errors(stage, source):
        interval = (start, end) if stage in _BY_INTERVAL else ()
        report: StageReport = module.run(source, *interval, **arguments)
    return report


def rehearse(
    stages: Sequence[str], source: Source, start: datetime | None = None, end: datetime | None = None
) -> list[StageReport]:
    """Reprocess an interval on copies of the source's tables, which are dropped afterwards: nothing is changed.

    Args:
        stages: up to compact.
        source: the source.
        start: of the interval.
        end: of the interval.

    Returns:
        Their reports, and one of what a cut would change: per table the rows added, removed and changed.

    Raises:
        TidemarkError: as the stages.
    """
    from tidemark import copies  # noqa: PLC0415  PyIceberg and Spark are not needed to look at a report
    from tidemark.differences import differences  # noqa: PLC0415

    with _store_errors("rehearsal", source), copies.rehearsal(source.source) as lake:
        reports = [
            run_stage(stage, source, start, end, **({"reprocess": True} if stage == "normalize" else {}))
            for stage in stages
        ]
        found = differences(lake, source.source)
    totals = {name: sum(table[name] for table in found.values()) for name in ("added", "removed", "changed")}
    return [*reports, StageReport(stage="difference", source=source.source, summary=totals, details=found)]


@contextmanager
def _store_errors(stage: str, source: Source) -> Iterator[None]:
    try:
        yield
    except TidemarkError:
        raise
    except _STORE_ERRORS as error:
        first = str(error).strip().partition("\n")[0][:500]
        raise RetriableLakeError(
            f"{stage} of {source.source} failed in the store or the engine: {first}. It is safe to run it again."
        ) from error
