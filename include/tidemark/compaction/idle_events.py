"""Events that are the newest of their key in a batch and change nothing: what stands is newer, or nothing is there.

They are counted by themselves, so that the ledger's equation can fail: what the fold hands on must be what the commits
say they changed, and these. They are looked for only where the two numbers differ.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.candidate import Prepared
from tidemark.folding import contradictions, frames
from tidemark.tables.schemas import DELETED, POSITION


def against_rows(prepared: Prepared, folded: DataFrame, start: int) -> int:
    """Return how many folded rows leave the table as it was, where rows are written whole.

    Args:
        prepared: the table.
        folded: ``folding.keyed.fold`` of its new events.
        start: the snapshot that the rows were merged into.
    """
    plan, keys = prepared.plan, frames.key_names(prepared.plan)
    own = folded.where(~F.col("moved_away")).select(*keys, "position", "deleted")
    met = own.join(stood_at(prepared, start), keys, "left").join(died_at(prepared), keys, "left")
    older = F.greatest("stands_at", "died_at") >= F.col("position")
    # With soft deletes, the delete of a row that is not there makes one.
    missing = F.col("deleted") & F.col("stands_at").isNull() & F.lit(not plan.soft)
    return met.where(F.coalesce(older, F.lit(False)) | missing).count()


def by_cell(judged: DataFrame) -> int:
    """Return how many rows of ``folding.cells.combine`` leave the table as it was."""
    return judged.where(~F.col("moved_away") & ~F.col("writes")).count()


def died_at(prepared: Prepared) -> DataFrame:
    """Return the keys that were deleted, each with the position of its newest delete, ``died_at``."""
    keys = frames.key_names(prepared.plan)
    return prepared.state.tombstones().groupBy(*keys).agg(F.max("position").alias("died_at"))


def stood_at(prepared: Prepared, snapshot: int) -> DataFrame:
    """Return the keys of a table in a snapshot, each with the position of its row, ``stands_at``, and ``stands``.

    ``stands`` is ``contradictions.ROW``, or ``NO_ROW`` for a row that is deleted softly.
    """
    plan, rows = prepared.plan, prepared.stored_at(snapshot)
    marked = F.coalesce(F.col(DELETED), F.lit(False)) if plan.soft else F.lit(False)
    stands = F.when(marked, contradictions.NO_ROW).otherwise(contradictions.ROW).alias("stands")
    return rows.select(*frames.key_columns(plan), F.col(POSITION).alias("stands_at"), stands)
