"""Updates that arrive as two events: an old half with the old row, and a new half whose image may lack columns.

Pure ``DataFrame -> DataFrame`` functions. Such an update is a partial update of its row, and the new half alone says
what it writes. The old half matters only if it has another key: then the values that the new half lacks of the moved
row are unknown. So the new half is set aside, as an update in one message is, and the row stays under its old key.
Which half arrives first makes no difference.

Both halves have the same position except for its last part, 0 or 1. (Where new halves are whole images, none of this is
needed: the new half writes again what the old half deletes.)
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Operation
from tidemark.folding import row_needs
from tidemark.folding.frames import key_names
from tidemark.positions import NEW_HALF, OLD_HALF
from tidemark.tables.plan import Plan
from tidemark.tables.reasons import PARTIAL_KEY_CHANGE, TRUNCATED, torn_key

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


def settled(acted: DataFrame, plan: Plan) -> DataFrame:
    """Decide which halves of updates take part, of the two of each update that are known.

    Args:
        acted: the result of ``actions.actions``; with ``EARLIER`` if any event is from an earlier run.
        plan: the table's.

    Returns:
        The new actions. Their new halves that may lack columns are set aside where the old half has another key. With
        ``idle``, whether the action is an old half that does nothing, and ``tears``, whether it is an old half for
        which the new half is set aside. Where the plan ``compares``, a new half whose old half is known ``needs``
        its row.
    """
    is_earlier = F.col(EARLIER) if EARLIER in acted.columns else F.lit(False)
    keys = key_names(plan)
    key, shard = F.struct(*keys), keys[-1:] if plan.found.shards else []
    # Below a TRUNCATE a half does nothing, but its key still counts: a history has the versions from before as well.
    is_half = F.col("partial") & (_ends_with(OLD_HALF) | _ends_with(NEW_HALF))
    tells_key = is_half & F.coalesce(F.col("set_aside") == TRUNCATED, F.lit(True))
    of_update = Window.partitionBy(update(), *shard)
    old, new = (F.max(F.when(tells_key & is_old, key)).over(of_update) for is_old in (F.col("half"), ~F.col("half")))
    torn = tells_key & F.coalesce(F.col("old key") != F.col("new key"), F.lit(False))
    judged = acted.withColumns({"is_back": is_earlier, "old key": old, "new key": new}).withColumns(
        {"idle": F.col("half") & F.col("partial"), "tears": torn & F.col("half"), "torn": torn & ~F.col("half")}
    )
    verdict = {
        "set_aside": F.coalesce("set_aside", F.when(F.col("torn"), PARTIAL_KEY_CHANGE)),
        "detail": F.coalesce("detail", F.when(F.col("torn"), torn_key(plan.key))),
    }
    if plan.compares:
        is_compared = tells_key & ~F.col("half") & F.col("old key").isNotNull()
        verdict["needs"] = F.when(is_compared, row_needs.number(row_needs.ROW)).otherwise(F.col("needs"))
    left = judged.where(~F.col("is_back")).withColumns(verdict)
    return left.drop("is_back", "old key", "new key", "torn", EARLIER)


def new_halves(acted: DataFrame) -> DataFrame:
    """Return the positions of new halves that are set aside because of the old halves among actions (``settled``)."""
    return acted.where("tears").select(F.concat(update(), F.lit(NEW_HALF)).alias("position")).distinct()
