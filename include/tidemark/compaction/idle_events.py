"""Events that are the newest of their key in a batch and change nothing: what stands is newer, or nothing is there.

They are counted by themselves, so that the ledger's equation can fail: what the fold hands on must be what the commits
say they changed, and these. They are looked for only where the two numbers differ, and the fold's own count of keys
that were inserted and deleted in one batch does not explain it: such keys leave nothing.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import row_writing
from tidemark.compaction.candidate import Prepared
from tidemark.folding import frames, row_needs
from tidemark.folding.key_bounds import ANY, KeyBounds
from tidemark.folding.keyed import Totals
from tidemark.tables.schemas import DELETED, POSITION


def against_rows(
    prepared: Prepared, folded: DataFrame, totals: Totals, bounds: KeyBounds, start: int, *, lacking: int
) -> int:
    """Return how many folded rows leave the table as it was, where rows are written whole.

    Args:
        prepared: the table.
        folded: ``folding.keyed.fold`` of its new events.
        totals: of it.
        bounds: of the keys of ``folded``.
        start: the snapshot that the rows were merged into.
        lacking: how many it must be, as the commits say.
    """
    plan, keys, oldest = prepared.plan, frames.key_names(prepared.plan), totals.oldest
    is_newer = prepared.state.is_below(oldest) and prepared.is_below(oldest, start)
    # Of newer events, only the delete of a row that is not there changes nothing; with soft deletes it makes one.
    if is_newer and plan.soft:
        return 0
    if is_newer and totals.passing == lacking:
        return lacking
    own = folded.where(~F.col("moved_away")).select(*keys, "position", "deleted")
    stood = stood_at(prepared, start, bounds)
    if is_newer:
        return _missing(stood, own.where("deleted").select(*keys), totals)
    judged = own.join(stood, keys, "left").join(died_at(prepared), keys, "left")
    older = F.greatest("stands_at", "died_at") >= F.col("position")
    # With soft deletes, the delete of a row that is not there makes one.
    missing = F.col("deleted") & F.col("stands_at").isNull() & F.lit(not plan.soft)
    return judged.where(F.coalesce(older, F.lit(False)) | missing).count()


def _missing(stood: DataFrame, deleted: DataFrame, totals: Totals) -> int:
    """Return how many rows that events of their own key delete are not there."""
    # A key that moves away is deleted, too.
    return totals.deletes - totals.away - row_writing.count_there(stood, deleted, totals.deletes)


def by_cell(judged: DataFrame) -> int:
    """Return how many rows of ``folding.cells.combine`` leave the table as it was."""
    return judged.where(~F.col("moved_away") & ~F.col("writes")).count()


def died_at(prepared: Prepared) -> DataFrame:
    """Return the keys that were deleted, each with the position of its newest delete, ``died_at``."""
    keys = frames.key_names(prepared.plan)
    return prepared.state.tombstones().groupBy(*keys).agg(F.max("position").alias("died_at"))


def stood_at(prepared: Prepared, snapshot: int, bounds: KeyBounds = ANY) -> DataFrame:
    """Return the keys of a table in a snapshot, each with the position of its row, ``stands_at``, and ``stands``.

    ``stands`` is ``row_needs.ROW``, or ``NO_ROW`` for a row that is deleted softly. ``bounds``: the bounds of the
    wanted keys.
    """
    plan = prepared.plan
    rows = prepared.stored_at(snapshot)
    if prepared.has_names_of(snapshot):
        rows = bounds.of(rows, plan)
    marked = F.coalesce(F.col(DELETED), F.lit(False)) if plan.soft else F.lit(False)
    stands = F.when(marked, row_needs.NO_ROW).otherwise(row_needs.ROW).alias("stands")
    return rows.select(*frames.key_columns(plan), F.col(POSITION).alias("stands_at"), stands)
