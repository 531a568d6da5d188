"""Updates that arrive as two events: an old half with the old row, and a new half whose image may lack columns.

Pure ``DataFrame -> DataFrame`` functions. Such an update is a partial update of its row, and the new half alone says
what it writes. The old half matters only if the new half has another key: then it deletes the row that moved away. So
an old half does nothing until its new half has arrived, in this batch or in an earlier one.

Both halves have the same position except for its last part, 0 or 1. (Where new halves are whole images, none of this is
needed: the new half writes again what the old half deletes.)
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import NEW_HALF, OLD_HALF, Operation
from tidemark.folding.frames import key_names
from tidemark.tables.plan import Plan

EARLIER = "is_earlier"
"""Column of change events: whether an earlier run took in the event, so that it is here for its other half only."""

_BOTH = 3


def update() -> Expression:
    """Return the common beginning of both halves' positions: all but the last part, ``OLD_HALF`` or ``NEW_HALF``."""
    return F.expr(f"left(position, length(position) - {len(NEW_HALF)})")


def _ends_with(part: str) -> Expression:
    return F.endswith("position", F.lit(f".{part}"))


def lone(changes: DataFrame) -> DataFrame:
    """Return the updates with only one half among the events: the columns ``object`` and ``update`` (``update``).

    Args:
        changes: rows of the change log, of one published table.
    """
    half = F.when(_ends_with(OLD_HALF), 1).when(_ends_with(NEW_HALF), 2)
    updates = changes.where(F.col("operation") == Operation.UPDATE)
    updates = updates.select("object", update().alias("update"), half.alias("half"))
    grouped = updates.where(F.col("half").isNotNull()).groupBy("object", "update").agg(F.bit_or("half").alias("halves"))
    return grouped.where(F.col("halves") != _BOTH).select("object", "update")


def with_earlier(changes: DataFrame, earlier: DataFrame) -> DataFrame:
    """Return new events together with the halves that arrived earlier; ``EARLIER`` is true for the latter."""
    return changes.withColumn(EARLIER, F.lit(False)).unionByName(earlier.withColumn(EARLIER, F.lit(True)))


def earlier_column(changes: DataFrame) -> list[str]:
    """Return ``EARLIER`` in a list if these events have the column; else an empty list."""
    return [name for name in (EARLIER,) if name in changes.columns]


def without_earlier(acted: DataFrame) -> DataFrame:
    """Return the new events alone."""
    return acted.where(~F.col(EARLIER)) if EARLIER in acted.columns else acted


def settled(acted: DataFrame, plan: Plan) -> DataFrame:
    """Decide which old halves of updates delete their row and which do nothing.

    Args:
        acted: the result of ``actions.actions``, without the actions that are set aside; with ``EARLIER`` if any event
            is from an earlier run.
        plan: the table's.

    Returns:
        The same actions with ``idle``: whether the action is an old half that does nothing. Of the earlier events, only
        the old halves that act now remain. They have ``moved_away`` true, as every delete of an old key that is not
        counted as an event of its own.
    """
    is_earlier = F.col(EARLIER) if EARLIER in acted.columns else F.lit(False)
    keys = key_names(plan)
    key, shard = F.struct(*keys), keys[-1:] if plan.found.shards else []
    other = F.max(F.when(~F.col("half"), key)).over(Window.partitionBy(update(), *shard))
    waits = F.col("half") & F.col("partial") & F.coalesce(F.col("other") == key, F.lit(True))
    judged = acted.withColumns({"other": other, "is_back": is_earlier}).withColumn("idle", waits)
    left = judged.where(~F.col("is_back") | (F.col("half") & ~F.col("idle")))
    return left.withColumn("moved_away", F.col("moved_away") | F.col("is_back")).drop("other", "is_back", EARLIER)
