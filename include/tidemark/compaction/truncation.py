"""What empties a table: TRUNCATEs, statements to the same end, complete initial loads, each at its position."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import merging
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.state import Truncate
from tidemark.ddl.history import Emptying
from tidemark.events import Operation
from tidemark.folding import cells as row_cells
from tidemark.folding import frames
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


def newest(prepared: Prepared) -> Truncate | None:
    """Return the newest TRUNCATE that is known of the table, from the state, the new events or statements."""
    known = list(prepared.state.truncates)
    if prepared.plan.found.truncates:
        at = F.coalesce(F.unix_micros("committed_at"), F.lit(0)).alias("at")
        truncates = prepared.log.changes().where(F.col("operation") == Operation.TRUNCATE)
        row = truncates.agg(F.max(F.struct("position", at))).first()
        known.extend([Truncate(*row[0])] if row and row[0] else [])
    # Statements of earlier batches as well: there may have been no table then that could keep them.
    known.extend(Truncate(each.position, each.at) for each in prepared.plan.found.history.emptyings)
    return max(known, default=None)


def positions(prepared: Prepared) -> list[str]:
    """Return the positions of all TRUNCATEs that are known of a table."""
    found = prepared.plan.found
    known = {each.position for each in prepared.state.truncates} | {each.position for each in found.history.emptyings}
    if found.truncates:
        truncates = prepared.log.changes().where(F.col("operation") == Operation.TRUNCATE)
        known |= {row[0] for row in truncates.select("position").distinct().collect()}
    return sorted(known)


def new_emptyings(found: Found) -> list[Emptying]:
    """Return the statements and initial loads of this cut that emptied the table."""
    return [each for each in found.history.emptyings if found.after < each.batch]


def empty(prepared: Prepared, truncate: Truncate | None, folded: DataFrame | None = None) -> Emptied:
    """Delete the stored rows that a TRUNCATE of this cut removed.

    Args:
        prepared: the table.
        truncate: ``newest``.
        folded: the folded events, by key: which rows come back; None for a table without a key.
    """
    plan, emptyings = prepared.plan, new_emptyings(prepared.plan.found)
    if not (plan.found.truncates or emptyings) or truncate is None:
        return Emptied()
    rows, back = prepared.stored().where(F.col(POSITION) < truncate.position), F.lit(False)
    if folded is not None and any(each.load and each.position == truncate.position for each in emptyings):
        keys = frames.key_names(plan)
        mark = [DELETED] if plan.soft else []
        again = folded.where(~F.col("deleted")).select(*keys, F.lit(True).alias("again"))
        rows = rows.select(*frames.key_columns(plan), *mark).join(again, keys, "left")
        back = F.col("again").isNotNull()
    alive = F.count_if(~F.col(DELETED) & ~back) if plan.soft else F.lit(0)
    counted = rows.agg(F.count("*"), alive, F.count_if(back)).first()
    older, alive_rows, returned = (int(number) for number in counted) if counted else (0, 0, 0)
    if older:
        merging.delete_older(prepared.run.session, plan, prepared.branch, truncate.position, truncate.at or None)
    if "cells" in prepared.state.kinds:
        gone = row_cells.emptied(prepared.state.rows(), plan, truncate.position)
        merging.empty_cells(gone, plan, prepared.branch)
    return Emptied(marked=alive_rows) if plan.soft else Emptied(rows=older, returned=returned)
