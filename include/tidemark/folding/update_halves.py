"""Updates that come as two events, the old row and the new one, of which the new one may lack columns.

Pure ``DataFrame -> DataFrame`` functions. Such an update is a partial update of its row, told by the new half alone.
The old half has a say only where the new half has another key: it deletes the row that moved away. So an old half does
nothing before the new half is there, in this batch or an earlier one: the update has not been seen until then.

The halves share a position but for its last part, 0 or 1. (Where new halves are whole images, what the old half deletes
is written again by the new one; they need none of this.)
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import NEW_HALF, OLD_HALF, Operation

EARLIER = "is_earlier"
"""Column of change events: whether the table took it in before, and it is there for its other half."""

_BOTH = 3


def update() -> Expression:
    """What the positions of both halves begin with: all but the last part, ``OLD_HALF`` or ``NEW_HALF``."""
    return F.expr(f"left(position, length(position) - {len(NEW_HALF)})")


def _ends_with(part: str) -> Expression:
    return F.endswith("position", F.lit(f".{part}"))


def lone(changes: DataFrame) -> DataFrame:
    """Updates of which one half is there: their ``update``, from rows of the change log of one table."""
    half = F.when(_ends_with(OLD_HALF), 1).when(_ends_with(NEW_HALF), 2)
    updates = changes.where(F.col("operation") == Operation.UPDATE).select(update().alias("update"), half.alias("half"))
    told = updates.where(F.col("half").isNotNull()).groupBy("update").agg(F.bit_or("half").alias("halves"))
    return told.where(F.col("halves") != _BOTH).select("update")


def with_earlier(changes: DataFrame, earlier: DataFrame) -> DataFrame:
    """New events and the other halves, which came before, of those that have them there; ``EARLIER`` tells which."""
    return changes.withColumn(EARLIER, F.lit(False)).unionByName(earlier.withColumn(EARLIER, F.lit(True)))


def earlier_column(changes: DataFrame) -> list[str]:
    """``EARLIER`` if these events have it."""
    return [name for name in (EARLIER,) if name in changes.columns]


def without_earlier(acted: DataFrame) -> DataFrame:
    """The new events alone."""
    return acted.where(~F.col(EARLIER)) if EARLIER in acted.columns else acted


def settled(acted: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Tell what old halves do.

    Args:
        acted: ``folding.actions``, without those set aside, with ``EARLIER`` where there is any such event.
        keys: the columns that tell rows apart.

    Returns:
        The same with ``idle``: whether it is an old half that does nothing. Of earlier events only the old halves that
        act now are left; they count where the new half does (``moved_away``).
    """
    is_earlier = F.col(EARLIER) if EARLIER in acted.columns else F.lit(False)
    key = F.struct(*keys)
    other = F.max(F.when(~F.col("half"), key)).over(Window.partitionBy(update()))
    waits = F.col("half") & F.col("partial") & F.coalesce(F.col("other") == key, F.lit(True))
    told = acted.withColumns({"other": other, "is_back": is_earlier}).withColumn("idle", waits)
    left = told.where(~F.col("is_back") | (F.col("half") & ~F.col("idle")))
    return left.withColumn("moved_away", F.col("moved_away") | F.col("is_back")).drop("other", "is_back", EARLIER)
