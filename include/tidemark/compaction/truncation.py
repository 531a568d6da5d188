"""What empties a table: TRUNCATEs, statements to the same end, complete initial loads, each at its position."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import merging
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.event_log import EventLog
from tidemark.ddl.history import Emptying
from tidemark.events import Operation
from tidemark.folding import cells as row_cells
from tidemark.folding import frames
from tidemark.folding.truncates import TruncateEvent, Truncates
from tidemark.tables.plan import Found
from tidemark.tables.schemas import DELETED, POSITION


class Emptied(NamedTuple):
    """What a TRUNCATE of this cut did to stored rows."""

    rows: int = 0
    """Rows that went."""
    marked: int = 0
    """Rows that were alive and were marked as deleted (soft deletes); they keep their values."""
    returned: int = 0
    """Of the rows that went, rows that are back by their key: a load replaces a table, and brings rows again."""


def known(prepared: Prepared) -> Truncates:
    """Return the TRUNCATEs that are known of the table, from the state, the new events and statements.

    Of new events, the newest of each shard; all of them where rows are deleted softly and written in parts.
    """
    found = prepared.plan.found
    truncates = [*prepared.state.truncates, *_of_statements(found)]
    if found.truncates:
        truncates += _of_events(prepared.log.changes(), found, every=prepared.plan.soft)
    return Truncates(truncates)


def of_whole_log(found: Found, changes: DataFrame) -> Truncates:
    """Return all TRUNCATEs that the whole change log of a table has.

    Args:
        found: the table, with the TRUNCATEs of all batches counted.
        changes: the whole change log of the table.
    """
    return Truncates([*_of_statements(found), *(_of_events(changes, found, every=True) if found.truncates else [])])


def _of_statements(found: Found) -> list[TruncateEvent]:
    # Statements of earlier batches as well: there may have been no table then that could keep them.
    return [TruncateEvent(each.position, each.at, each.shard) for each in found.history.emptyings]


def _of_events(changes: DataFrame, found: Found, *, every: bool) -> list[TruncateEvent]:
    """Return the TRUNCATEs among events: the newest of each shard, or every one."""
    at = F.coalesce(F.unix_micros("committed_at"), F.lit(0)).alias("at")
    shard = (F.col("object") if found.shards else F.lit("")).alias("shard")
    each = ["shard", "position"] if every else ["shard"]
    events = changes.where(F.col("operation") == Operation.TRUNCATE).withColumn("shard", shard)
    newest = events.groupBy(*each).agg(F.max(F.struct("position", at)).alias("newest"))
    return [TruncateEvent(row["newest"]["position"], row["newest"]["at"], row["shard"]) for row in newest.collect()]


def first_new(log: EventLog) -> str | None:
    """Return the position of the first event of this cut that empties the table; None if there is none."""
    found = log.plan.found
    positions = [each.position for each in new_emptyings(found)]
    if found.truncates:
        row = log.changes().where(F.col("operation") == Operation.TRUNCATE).agg(F.min("position")).first()
        positions += [row[0]] if row and row[0] else []
    return min(positions, default=None)


def new_emptyings(found: Found) -> list[Emptying]:
    """Return the statements and initial loads of this cut that emptied the table."""
    return [each for each in found.history.emptyings if found.published_batch < each.batch]


def empty(prepared: Prepared, truncates: Truncates, folded: DataFrame | None = None) -> Emptied:
    """Delete the stored rows that TRUNCATEs of this cut removed.

    Args:
        prepared: the table.
        truncates: ``known``.
        folded: the folded events, by key: which rows come back; None for a table without a key.
    """
    plan, emptyings = prepared.plan, new_emptyings(prepared.plan.found)
    if not (plan.found.truncates or emptyings) or not truncates:
        return Emptied()
    key = frames.key_columns(plan)
    rows = prepared.stored().select(*key, POSITION, *([DELETED] if plan.soft else []))
    rows, back = rows.where(F.col(POSITION) < truncates.position(plan)), F.lit(False)
    newest = {(each.shard, each.position) for each in truncates.newest.values()}
    if folded is not None and any(each.load and (each.shard, each.position) in newest for each in emptyings):
        keys = frames.key_names(plan)
        again = folded.where(~F.col("deleted")).select(*keys, F.lit(True).alias("again"))
        rows = rows.join(again, keys, "left")
        back = F.col("again").isNotNull()
    alive = F.count_if(~F.col(DELETED) & ~back) if plan.soft else F.lit(0)
    shard = F.col(frames.key_names(plan)[-1]) if plan.found.shards else F.lit("")
    counts = [F.count("*").alias("older"), alive.alias("alive"), F.count_if(back).alias("back")]
    counted = rows.groupBy(shard.alias("shard")).agg(*counts).collect()
    if plan.soft and counted:
        prepared.fill_defaults()  # a row that is marked here has the position of the TRUNCATE, which may be later
    for row in counted:
        merging.delete_older(prepared.run.session, plan, prepared.branch, truncates.newest[row["shard"]])
    if "cells" in prepared.state.kinds:
        gone = row_cells.emptied(prepared.state.rows(), plan, truncates)
        merging.empty_cells(gone, plan, prepared.branch)
    older, alive_rows, returned = (sum(int(row[name]) for row in counted) for name in ("older", "alive", "back"))
    return Emptied(marked=alive_rows) if plan.soft else Emptied(rows=older, returned=returned)
