"""Running stages, for the command line, the jobs and Airflow."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

import structlog
from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    RESTError,
    UnauthorizedError,
    WaitingForLockException,
)
from pyspark.errors import PySparkRuntimeError
from sqlalchemy.exc import SQLAlchemyError

from tidemark.errors import ConfigurationError, RetriableLakeError, TidemarkError
from tidemark.lake import clocks, locks
from tidemark.lake.catalog import driver_errors
from tidemark.lake.lake import Lake
from tidemark.ledger import begun_erasures, cuts, restoring, writing
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.sources.model import Source
from tidemark.spark.jvm_lookups import ENGINE_ERRORS
from tidemark.stages import REHEARSED, StageReport
from tidemark.text import first_line

STORE_ERRORS = (*ENGINE_ERRORS, SQLAlchemyError, CommitFailedException, WaitingForLockException, RESTError, OSError)
"""Errors of the store and the engine, but for those of packages that not every catalog needs: see ``store_errors``."""

HOLDING = frozenset({"check", "publish", "quality"})
"""Stages that fail a scheduled run if they have problems. Problems of earlier stages do not fail it there, so that the
rest of the data is published; publish reports them again."""

REPORTED = frozenset({"check", "publish", "quality", "restore", "erase"})
"""Stages after which the pages of the source are written again."""

REPORT_VARIABLE = "TIDEMARK_REPORT"
"""Environment variable: with ``off`` no stage writes the pages, and only ``tidemark report`` does."""

log = structlog.get_logger(__name__)


def run_stage(
    stage: str,
    source: Source,
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    patience: float = locks.PATIENCE,
    **options: Any,  # noqa: ANN401 - each stage has its own
) -> StageReport:
    """Run one stage of one source, as the only writer of the source, and return its report.

    Args:
        stage: one of the five, or a stage beside the flow. After ``rebuild`` and ``retry``, other stages must follow:
            ``REBUILD`` and ``RETRY`` name them.
        source: the source.
        start: start of the interval, for the stages that use one.
        end: first moment after the interval.
        patience: seconds to wait for another writer of the source.
        **options: keyword arguments of the stage. None is the same as no argument.

    Raises:
        ConfigurationError: the stage has no such option.
        SourceBusyError: another writer is not done in time.
        TidemarkError: as the stage. Errors of store and engine become what ``as_tidemark_error`` says.
    """
    module: Any = importlib.import_module(f"tidemark.stages.{stage}")
    known = inspect.signature(module.run).parameters
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := sorted(given.keys() - known.keys()):
        raise ConfigurationError(f"{stage} has no option {', '.join(unknown)}; it has {', '.join(list(known)[1:])}")
    bounds = {name: bound for name, bound in (("start", start), ("end", end)) if name in known}
    with _store_errors(stage, source), writing.hold(source.source, patience=patience):
        ledger = Ledger(Lake.open(), source.source)
        if stage != "erase":
            begun_erasures.require_none(ledger, source.source)
        if stage == "compact":
            _finish_reprocessing(ledger, source)
        report: StageReport = module.run(source, **bounds, **given)
        if stage == "erase" and not given.get("dry_run"):
            _drop_report(source)
        if stage in REPORTED:
            _write_report(source)
    return report


@dataclass(slots=True, kw_only=True)
class Turn:
    """The turn of one stage of a source, which the caller runs once."""

    stage: str
    call: Callable[[], StageReport]
    report: StageReport | None = None
    """Of the stage, once it has run."""

    def run(self) -> StageReport:
        """Run the stage and return its report; errors as ``run_stage``."""
        self.report = self.call()
        return self.report


def turns(
    stages: Iterable[str],
    source: Source,
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[Turn]:
    """Yield the turns of stages, one after another: the next one comes after the caller has run the one before.

    None comes after a check that has problems, because publish would refuse. The caller holds the source
    (``ledger.writing.hold``), so that no other writer comes between two stages.

    Args:
        stages: names of the stages, in order.
        source: the source.
        start: start of the interval, for the stages that use one.
        end: first moment after the interval.
        options: stage -> options of that stage alone.
    """
    for stage in stages:
        turn = Turn(stage=stage, call=partial(run_stage, stage, source, start, end, **options.get(stage, {})))
        yield turn
        if stage == "check" and turn.report is not None and turn.report.has_problems:
            return


def _drop_report(source: Source) -> None:
    """Drop the pages of a source, which may have a key that was erased. A failure to do so fails the stage."""
    from tidemark.report import site  # noqa: PLC0415  only some stages need it

    site.drop(source.source)


def _write_report(source: Source) -> None:
    """Write the pages of a source. They can be written again at any time, so a failure fails no stage."""
    if os.environ.get(REPORT_VARIABLE) == "off":
        return
    from tidemark.report import site  # noqa: PLC0415  only some stages need it

    try:
        site.write(Lake.open(), [source.source], with_keys=[source.source] if source.report_keys else [])
    except Exception as error:  # noqa: BLE001
        log.warning("report_not_written", source=source.source, error=first_line(error), next="tidemark report")


def _finish_reprocessing(ledger: Ledger, source: Source) -> None:
    """Derive batches again whose reprocessing was cut short.

    The ledger may say of their events already what the change log does not have yet, so compact would read them by
    shapes that they do not have.
    """
    if batches := ledger.reprocessing():
        log.warning("reprocessing_resumed", source=source.source, batches=sorted(batches))
        run_stage("normalize", source)


def run_task(
    stage: str,
    source: Source,
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    patience: float = locks.PATIENCE,
    **options: Any,  # noqa: ANN401 - as above
) -> StageReport:
    """Run one stage as a task of its own; arguments as ``run_stage``.

    Other runs of the source may work between the tasks of this one. Another run may have built the cut again after
    this one checked it, with events of its own in it. So publish checks a cut that is not checked yet. The summary of
    publish has ``fresh``: 1 if publish moved any table, else 0. Normalize with ``dry_run`` reports what reprocessing
    would change (``rehearse``).

    Raises:
        ConfigurationError: a dry run without ``reprocess``, or as ``run_stage``.
    """
    if options.pop("dry_run", None):
        if not options.pop("reprocess", None):
            raise ConfigurationError(
                f"a dry run of {source.source} shows what reprocessing would change: ask for it too"
            )
        return rehearse(REHEARSED, source, start, end)[-1]
    if stage != "publish":
        return run_stage(stage, source, start, end, patience=patience, **options)
    with _store_errors(stage, source), writing.hold(source.source, patience=patience):
        before = published_cut(source)
        cut = Ledger(Lake.open(), source.source).last_cut()
        if cut is not None and cut.state == CutState.CANDIDATE:
            run_stage("check", source)
        report = run_stage(stage, source, **options)
    fresh = report.summary.get("cut", 0) != before
    return StageReport(
        stage=report.stage,
        source=report.source,
        summary={**report.summary, "fresh": int(fresh)},
        problems=report.problems,
        remarks=report.remarks,
        details=report.details,
    )


def published_cut(source: Source) -> int:
    """Return the number of the newest published cut; 0 if there is none."""
    cut = cuts.last_published(Ledger(Lake.open(), source.source))
    return cut.cut if cut else 0


def rehearse(
    stages: Sequence[str], source: Source, start: datetime | None = None, end: datetime | None = None
) -> list[StageReport]:
    """Reprocess an interval on copies of the source's tables, and drop the copies afterwards: nothing is changed.

    Only a publish or a restore that was cut short is finished first, as by any run.

    Args:
        stages: names of the stages, up to compact.
        source: the source.
        start: start of the interval.
        end: first moment after the interval.

    Returns:
        The reports of the stages, and a report of what the cut would change: for each table the numbers of rows added,
        removed and changed.

    Raises:
        TidemarkError: as the stages.
    """
    from tidemark.lake import copies  # noqa: PLC0415  only a rehearsal needs it
    from tidemark.queries.differences import differences  # noqa: PLC0415

    with _store_errors("rehearsal", source), writing.hold(source.source):
        lake = Lake.open()
        ledger = Ledger(lake, source.source)
        begun_erasures.require_none(ledger, source.source)
        restoring.finish(lake, ledger)  # a copy shares its files: no table may be dropped by it
        with copies.rehearsal(source.source) as beside:
            reports = [
                run_stage(stage, source, start, end, **({"reprocess": True} if stage == "normalize" else {}))
                for stage in stages
            ]
            found = differences(beside, source.source)
    totals = {name: sum(table[name] for table in found.values()) for name in ("added", "removed", "changed")}
    return [*reports, StageReport(stage="difference", source=source.source, summary=totals, details=found)]


@contextmanager
def _store_errors(stage: str, source: Source) -> Iterator[None]:
    try:
        yield
    except TidemarkError:
        raise
    except store_errors() as error:
        raise as_tidemark_error(error, f"{stage} of {source.source} failed") from error


def store_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the store and the engine; ``as_tidemark_error`` says what to do about each."""
    return (*STORE_ERRORS, *driver_errors())


_NEVER_MENDED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})
"""Errors of a file system that come again until a person changes something."""


def as_tidemark_error(error: Exception, what: str) -> TidemarkError:
    """Return an error of the store or the engine as what the caller should do about it.

    Args:
        error: one of ``store_errors``.
        what: what failed, as the beginning of a sentence.
    """
    text = f"{what} in the store or the engine: {first_line(error)}"
    if isinstance(error, PySparkRuntimeError) and error.getCondition() == "JAVA_GATEWAY_EXITED":
        return ConfigurationError(f"{what}: Spark's Java ended at its start, and said why above. It has to be Java 17.")
    if isinstance(error, UnauthorizedError | ForbiddenError):
        return ConfigurationError(f"{text}. The catalog refuses this user.")
    if isinstance(error, OSError) and error.errno in _NEVER_MENDED:
        return ConfigurationError(f"{text}. Running it again does not mend this.")
    if clocks.is_refusal(error):
        text = f"{text}. The clock of this machine is far behind the last commit of a table: see `tidemark doctor`"
    return RetriableLakeError(f"{text}. It is safe to run it again.")
