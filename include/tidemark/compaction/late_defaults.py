"""Statements that add a column with a constant, and come after events of which the stored rows do not show enough.

A row has the constant where its event lacks the column. A stored row does not show whether its null came with its
event: rows of initial loads rank below all changes, and have the columns of the time when they were read. Nor does it
show its null to be from before the statement, where a later event wrote only parts of the row, or marked it as deleted.
"""

from __future__ import annotations

from collections.abc import Container

from pyiceberg.expressions import And, BooleanExpression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.event_log import EventLog
from tidemark.compaction.run import Run
from tidemark.errors import RebuildNeededError
from tidemark.events import Operation
from tidemark.lake.filters import above, among, at_most, below, unset
from tidemark.ledger.expired import Expired
from tidemark.tables.plan import Default, Plan
from tidemark.tables.schemas import POSITION
from tidemark.values.images import by_table_name

_LAST = "~"
"""Behind every position."""


def refuse(run: Run, plan: Plan) -> None:
    """Refuse to give stored rows the constant of a new column where what is stored does not show which rows get it.

    Args:
        run: the run.
        plan: of a table that goes on from what is published.

    Raises:
        RebuildNeededError: events below the statement have the column, or they are past their time, and nobody knows.
            Or events behind the statement left a row the values from before it.
    """
    found, defaults = plan.found, plan.new_defaults()
    if not defaults:
        return
    contents = run.ledger.contents(among("object", found.objects), at_most("batch", found.published_batch))
    for column, default in defaults:
        log = EventLog(run=run, plan=plan)
        if _has_nulls(plan, column.name, above(POSITION, default.position)):
            _refuse_later(log, column.name, default)
        events = log.taken_between("", default.position)
        holding = _holding(events.plan, column.name, {row.shape for row in contents})
        if not holding or not _has_nulls(plan, column.name, below(POSITION, default.position)):
            continue
        known = {each.partition("@")[0] for each in holding}
        batches = {(row.object, row.batch) for row in contents if row.shape in known}
        is_unknown = not batches.isdisjoint(Expired(run.lake, run.source.source).among(found.objects))
        older = events.rows.where((F.col("position") < default.position) & F.col("shape").isin(*holding))
        if is_unknown or not older.isEmpty():
            raise RebuildNeededError(
                f"{found.object}: column {column.name!r} was added with a constant by DDL that came after rows from "
                "before it, which have the column, had been published"
            )


def _refuse_later(log: EventLog, column: str, default: Default) -> None:
    """Refuse where a row from before the statement was changed in part, or deleted softly, behind it.

    The row stands at the place of that change, and its null may be from before.
    """
    found, soft = log.plan.found, log.plan.soft
    events = log.taken_between(default.position, _LAST)
    taken = {shape_id.partition("@")[0] for shape_id in events.plan.found.shapes}
    holding = _holding(events.plan, column, taken)
    keeps = F.coalesce(F.col("partial"), F.lit(False))
    if soft:
        lacks = ~F.coalesce(F.col("shape").isin(*holding), F.lit(False)) | (F.coalesce(F.size("absent"), F.lit(0)) > 0)
        keeps |= F.col("operation").isin(Operation.DELETE, Operation.TRUNCATE) & lacks
    later = events.rows.where((F.col("position") > default.position) & keeps)
    emptied = soft and any(
        each.position > default.position and each.batch <= found.published_batch for each in found.history.emptyings
    )
    if emptied or not later.isEmpty():
        raise RebuildNeededError(
            f"{found.object}: column {column!r} was added with a constant by DDL that came after changes behind it had "
            "been published, which left rows their values from before"
        )


def _holding(plan: Plan, name: str, taken: Container[str | None]) -> list[str]:
    """Return the shapes that have a column, by the ids of ``epochs.shape_in_epoch``, of those that were taken in."""
    found = plan.found
    return sorted(
        shape_id
        for shape_id, shape in found.shapes.items()
        if shape_id.partition("@")[0] in taken and name in dict(by_table_name(shape_id, shape, found.names))
    )


def _has_nulls(plan: Plan, name: str, where: BooleanExpression) -> bool:
    """Return whether any of some stored rows or versions has no value in a column."""
    stored, (table, versions) = plan.stored(name), (plan.found.table, plan.found.history_table)
    return any(
        each.scan(row_filter=where if lacks else And(where, unset(stored)), limit=1).to_arrow().num_rows
        for each in (table, versions)
        if each is not None
        for lacks in (stored not in each.schema().column_names,)
    )
