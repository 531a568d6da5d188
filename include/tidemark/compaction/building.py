"""Build the planned tables: small ones side by side, folded together where that is the same, large ones alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

from pyspark.sql import SparkSession

from tidemark.compaction import (
    bag_candidate,
    feeding,
    guessed_types,
    keyed_candidate,
    moved_rows,
    rebuilding,
    shared_folds,
    showing,
)
from tidemark.compaction.candidate import Prepared, prepare
from tidemark.compaction.decisions import BuildAnew, Built, Stopped, stopped
from tidemark.compaction.engine_failures import contained
from tidemark.compaction.keyed_candidate import Fold
from tidemark.compaction.run import Run
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.lake.branches import MARKER
from tidemark.sources.schema_policy import Retyped
from tidemark.spark.tuning import is_small, tuned_for
from tidemark.tables import layouts
from tidemark.tables.plan import Found, Plan

_SIDE_BY_SIDE = 4
"""Tables that are built at once: a commit waits for the catalog longer than it computes."""

_BATCH_PROPERTY = f"spark.sql.iceberg.snapshot-property.{MARKER}batch"


def build(run: Run, plans: Sequence[Plan]) -> list[Built | BuildAnew | Stopped]:
    """Build every planned table.

    Raises:
        LedgerError: events went missing between the change log and a fold.
    """
    small = [plan for plan in plans if is_small(run.size_of(plan.found))]
    large = [plan for plan in plans if not is_small(run.size_of(plan.found))]
    built: list[Built | BuildAnew | Stopped] = []
    for tables in filter(None, (small, large)):
        built += _build_side_by_side(run, tables, fold_together=tables is small)
    return built


def _build_side_by_side(run: Run, plans: Sequence[Plan], *, fold_together: bool) -> list[Built | BuildAnew | Stopped]:
    # Making a frame makes the session the active one of a thread. Where there is none, Spark's cache takes the settings
    # that Spark has by itself, and refuses tables with columns whose names differ in case only.
    activate = partial(run.session.createDataFrame, [], "nothing int")
    again = [plan for plan in plans if plan.found.object in run.requests]
    onward = [plan for plan in plans if plan.found.object not in run.requests]
    pool = ThreadPoolExecutor(_SIDE_BY_SIDE, initializer=activate)
    with _marked(run.session, run.cut.batch), ExitStack() as views, pool:
        begun = list(pool.map(partial(_prepare, run), onward))
        prepared = [each for each in begun if isinstance(each, Prepared)]
        folds = shared_folds.folds(prepared, pool, views) if fold_together else {}
        with tuned_for(run.session, [run.size_of(plan.found) for plan in plans]):
            jobs = [pool.submit(_rebuild, run, plan) for plan in again]
            jobs += [pool.submit(_build_one, each, folds.get(each.plan.found.object)) for each in prepared]
            return [*(each for each in begun if isinstance(each, Stopped)), *(job.result() for job in jobs)]


def _prepare(run: Run, plan: Plan) -> Prepared | Stopped:
    """Put a table on its branch, and let it follow the layout that the source file declares: metadata alone."""
    try:
        prepared = prepare(run, plan)
    except IncompatibleSchemaError as error:
        return stopped(plan.found, str(error))
    if not plan.keeps_whole:
        layouts.follow(prepared.current(), run.source.table_for(plan.found.object).layout, plan)
    return prepared


def build_candidate(prepared: Prepared, fold: Fold | None = None) -> Built:
    """Build the candidate of one table.

    Args:
        prepared: the table.
        fold: of its new events, where they were folded with the events of other tables.
    """
    with ExitStack() as views:
        if prepared.plan.key:
            return keyed_candidate.build(prepared, fold, views)
        return bag_candidate.build(prepared, views)


def _rebuild(run: Run, plan: Plan) -> Built | BuildAnew | Stopped:
    return _outcome(run, plan.found, lambda: _fed(run, plan, rebuilding.build(run, plan, build_candidate)))


def _fed(run: Run, plan: Plan, built: Built) -> Built:
    """Return what was built, and add what it changes to the table's feed, if there is to be one."""
    if plan.is_fed:
        feeding.add(feeding.Feed(run.lake, plan.target, run.cut), built.snapshots.candidate)
    return built


def _build_one(prepared: Prepared, fold: Fold | None) -> Built | BuildAnew | Stopped:
    first = [(prepared, fold)]

    def attempt() -> Built | BuildAnew:
        # After a failure the branches begin again where `main` stands, and the table is folded by itself.
        return _attempt(*(first.pop() if first else (prepare(prepared.run, prepared.plan), None)))

    return _outcome(prepared.run, prepared.plan.found, attempt)


def _outcome(run: Run, found: Found, work: Callable[[], Built | BuildAnew]) -> Built | BuildAnew | Stopped:
    """Return what building a table came to, also where only its rows show that it cannot be built so."""
    try:
        return contained(run, found, work)
    except RebuildNeededError as error:
        return BuildAnew(object=found.object, reason=str(error))
    except IncompatibleSchemaError as error:
        return stopped(found, str(error))


def _attempt(prepared: Prepared, fold: Fold | None) -> Built | BuildAnew:
    if moved_rows.are_outdated(prepared.log):
        return BuildAnew(object=prepared.plan.found.object, reason="events of a row came after it moved to another key")
    policies = prepared.run.source.policies_for(prepared.plan.found.object)
    built, follows = build_candidate(prepared, fold), policies.type is not Retyped.STRICT
    if follows and built.counts.quarantined and guessed_types.are_outgrown(prepared):
        return BuildAnew(object=built.object, reason="a number does not fit a type that was guessed from values")
    return _fed(prepared.run, prepared.plan, showing.show(prepared.run, prepared.plan, built))


@contextmanager
def _marked(session: SparkSession, batch: int) -> Iterator[None]:
    """Put the marker into every commit of the session: the commit that does the work says that it is done."""
    session.conf.set(_BATCH_PROPERTY, str(batch))
    try:
        yield
    finally:
        session.conf.unset(_BATCH_PROPERTY)
