"""Statements that add a column with a constant, and come after events that rank below them and have the column.

A row has the constant where its event lacks the column. A stored row does not show whether its null came with its
event: rows of initial loads rank below all changes, and have the columns of the time when they were read.
"""

from __future__ import annotations

from collections.abc import Container

from pyiceberg.expressions import And
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.event_log import EventLog
from tidemark.compaction.run import Run
from tidemark.errors import RebuildNeededError
from tidemark.lake.filters import among, at_most, below, unset
from tidemark.ledger.expired import Expired
from tidemark.tables.plan import Default, Plan
from tidemark.tables.schemas import POSITION
from tidemark.values.images import by_table_name


def refuse(run: Run, plan: Plan) -> None:
    """Refuse to give stored rows the constant of a new column where their nulls may have come with their events.

    Args:
        run: the run.
        plan: of a table that goes on from what is published.

    Raises:
        RebuildNeededError: events below the statement have the column, or they are past their time, and nobody knows.
    """
    found, defaults = plan.found, plan.new_defaults()
    if not defaults:
        return
    contents = run.ledger.contents(among("object", found.objects), at_most("batch", found.published_batch))
    for column, default in defaults:
        events = EventLog(run=run, plan=plan).taken_between("", default.position)
        holding = _holding(events.plan, column.name, {row.shape for row in contents})
        if not holding or not _fills(plan, column.name, default):
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


def _holding(plan: Plan, name: str, taken: Container[str | None]) -> list[str]:
    """Return the shapes that have a column, by the ids of ``epochs.shape_in_epoch``, of those that were taken in."""
    found = plan.found
    return sorted(
        shape_id
        for shape_id, shape in found.shapes.items()
        if shape_id.partition("@")[0] in taken and name in dict(by_table_name(shape_id, shape, found.names))
    )


def _fills(plan: Plan, name: str, default: Default) -> bool:
    """Return whether any stored row or version is to get the constant of a column."""
    stored, (table, versions) = plan.stored(name), (plan.found.table, plan.found.history_table)
    where = And(below(POSITION, default.position), unset(stored))
    return any(
        stored not in each.schema().column_names or each.scan(row_filter=where, limit=1).to_arrow().num_rows
        for each in (table, versions)
        if each is not None
    )
