"""Running stages: what the command line, the jobs and Airflow share."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pyiceberg.exceptions import CommitFailedException, RESTError
from pyspark.errors import PySparkException
from sqlalchemy.exc import SQLAlchemyError

from tidemark.errors import ConfigurationError, RetriableLakeError, TidemarkError
from tidemark.lake import locks
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.sources.model import Source
from tidemark.stages import REHEARSED, StageReport
from tidemark.text import first_line

STORE_ERRORS = (PySparkException, SQLAlchemyError, CommitFailedException, RESTError, OSError)
"""What the store and the engine raise."""

HOLDING = frozenset({"check", "publish", "quality"})
"""Stages whose held-back data ends a scheduled run as failed; the problems of earlier ones do not stop the rest of the
data, and publish reports them again."""


def run_stage(
    stage: str,
    source: Source,
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    patience: float = locks.PATIENCE,
    **options: Any,  # noqa: ANN401 - each stage has its own
) -> StageReport:
    """Run one stage of one source, as its only writer.

    Args:
        stage: one of the five, or one beside the flow (``maintain``, ``rebuild``, ``retry``; what has to follow the
            latter two: ``REBUILD``, ``RETRY``).
        source: what it is run for.
        start: of the interval, for the stages that look at one.
        end: first moment after it.
        patience: seconds to wait for another writer of the source.
        **options: keyword parameters of the stage; None is none.

    Raises:
        ConfigurationError: an option that the stage does not have.
        SourceBusyError: another writer is not done in time.
        TidemarkError: as the stage; whatever store or engine raise comes as ``RetriableLakeError``.
    """
    module: Any = importlib.import_module(f"tidemark.stages.{stage}")
    known = inspect.signature(module.run).parameters
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := sorted(given.keys() - known.keys()):
        raise ConfigurationError(f"{stage} has no option {', '.join(unknown)}; it has {', '.join(list(known)[1:])}")
    bounds = {name: bound for name, bound in (("start", start), ("end", end)) if name in known}
    with _store_errors(stage, source), locks.hold(source.source, patience=patience):
        report: StageReport = module.run(source, **bounds, **given)
    return report


def run_task(
    stage: str,
    source: Source,
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    patience: float = locks.PATIENCE,
    **options: Any,  # noqa: ANN401 - as above
) -> StageReport:
    """Run one stage as a task of its own, between which other runs of the source may have gone on; see ``run_stage``.

    Another run may have built the cut anew since this one checked it, with its own events in it: publish then checks
    it again. The summary of publish tells by ``fresh`` whether it moved any table. Normalize with ``dry_run`` tells
    what reprocessing would change (``rehearse``).

    Raises:
        ConfigurationError: a dry run of anything but reprocessing; else as ``run_stage``.
    """
    if options.pop("dry_run", None):
        if not options.pop("reprocess", None):
            raise ConfigurationError(
                f"a dry run of {source.source} shows what reprocessing would change: ask for it too"
            )
        return rehearse(REHEARSED, source, start, end)[-1]
    if stage != "publish":
        return run_stage(stage, source, start, end, patience=patience, **options)
    with _store_errors(stage, source), locks.hold(source.source, patience=patience):
        ledger = Ledger(Lake.open(), source.source)
        before = cuts.last_published(ledger)
        cut = ledger.last_cut()
        if cut is not None and cut["state"] == cuts.CANDIDATE:
            run_stage("check", source)
        report = run_stage(stage, source, **options)
    fresh = report.summary.get("cut", 0) != (before["cut"] if before else 0)
    return StageReport(
        stage=report.stage,
        source=report.source,
        summary={**report.summary, "fresh": int(fresh)},
        problems=report.problems,
        details=report.details,
    )


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
    from tidemark.lake import copies  # noqa: PLC0415  PyIceberg and Spark are not needed to look at a report
    from tidemark.queries.differences import differences  # noqa: PLC0415

    with _store_errors("rehearsal", source), locks.hold(source.source), copies.rehearsal(source.source) as lake:
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
    except STORE_ERRORS as error:
        raise RetriableLakeError(
            f"{stage} of {source.source} failed in the store or the engine: {first_line(error)}. "
            "It is safe to run it again."
        ) from error
