"""Events that contradict the rows: an UPDATE or DELETE of a row that was not there, an INSERT of one that was.

Pure ``DataFrame -> DataFrame`` functions. What an event needs of its row is in the column ``needs`` of actions: 1, the
row; -1, no row; 0, nothing; 2, nothing, and it leaves a row. The same numbers say what an event leaves. Two events at
one place of the log are not compared: they may be copies, and nothing but their delivery orders them. Nor is a row of
an initial load, which may have been read before or after the changes beside it.

Of an update in two events, the old half needs the row, and the new half needs what the old half leaves.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.window import WindowSpec

from tidemark.events import Operation
from tidemark.folding import log_places
from tidemark.folding.frames import key_names
from tidemark.positions import DELIVERY
from tidemark.tables.plan import Plan

ROW, NO_ROW, UNKNOWN, ANY = 1, -1, 0, 2
"""What an event needs or leaves."""


class TableBefore(NamedTuple):
    """What is known of a table as a whole before its new events."""

    emptied: bool
    """Whether a TRUNCATE lies below all events that are judged: a key without a row has none."""
    loaded: int | None
    """Epoch µs: a key without a row had none when the table was loaded, and the load was over by then. None: never."""
    seen: int | None
    """Epoch µs: when the newest event was committed that the table has taken in. None: unknown."""


def needs(plan: Plan, moved: Expression) -> Expression:
    """Return what an event needs of the row that it writes; ``moved``: whether its key changed, so that it is new."""
    cases = F.when((F.col("operation") == Operation.SNAPSHOT) | ~is_placed("position"), UNKNOWN)
    if tells_rows(plan):  # the new half of an update; or a part of a row, which some sources write where none is
        makes_rows = F.lit(True) if plan.found.halves else F.col("partial") & may_make_rows()
        cases = cases.when((F.col("operation") == Operation.UPDATE) & makes_rows & F.col(NO_OLD_ROW), ANY)
    new = (F.col("operation") == Operation.INSERT) | moved
    return _number(cases.when(new, NO_ROW).otherwise(ROW))


NO_OLD_ROW = "no old row"
"""Column of read events, where ``tells_rows``: whether an event has no image of the row before it."""


def tells_rows(plan: Plan) -> bool:
    """Return whether before images prove that rows were there: an UPDATE without one may be of a missing row."""
    return plan.compares and (plan.found.partial or plan.found.halves)


def may_make_rows(event: str = "") -> Expression:
    """Return whether a partial event makes its row where there is none; true where an old change log does not say."""
    return F.coalesce(F.col(f"{event}upsert"), F.lit(True))


def number(value: int) -> Expression:
    """Return one of the numbers as a column."""
    return _number(F.lit(value))


def breaks(newest_first: WindowSpec) -> Expression:
    """Return whether an action contradicts the one behind it."""
    left = F.lead(_leaves()).over(newest_first)
    behind = F.lead(log_places.log_place()).over(newest_first)
    return _is_broken(F.col("needs"), left, behind)


def breaks_in_parts(oldest_first: WindowSpec) -> Expression:
    """Return whether an ``event`` contradicts the one before it, with idle halves of updates passed over."""
    left_and_place = F.struct(_leaves("event.").alias("left"), log_places.log_place().alias("place"))
    behind = F.last(F.when(~F.col("event.idle"), left_and_place), ignorenulls=True)
    behind = behind.over(oldest_first.rowsBetween(Window.unboundedPreceding, -1))
    return ~F.col("event.idle") & _is_broken(F.col("event.needs"), behind["left"], behind["place"])


def _is_broken(needs: Expression, left: Expression, behind: Expression) -> Expression:
    return F.coalesce((needs * left == -1) & (behind != log_places.log_place()), F.lit(False))


def judged(acted: DataFrame, stored: DataFrame, dead: DataFrame, known: TableBefore, plan: Plan) -> DataFrame:
    """Return the actions that contradict the rows or the actions before them.

    Args:
        acted: the result of ``actions.actions``, sound ones alone, without idle halves of updates.
        stored: ``k0 .. kn``, ``stands_at`` and ``stands`` of the rows before.
        dead: ``k0 .. kn`` and ``died_at`` of keys that were deleted.
        known: what is known of the table.
        plan: the table's.

    Returns:
        ``k0 .. kn``, ``needs``, ``position``, ``file``, ``place``.
    """
    keys = key_names(plan)
    order = order_of_key(plan)
    ordered = acted.withColumn(RISES, rises(plan, known.seen, order))
    ordered = ordered.withColumns(
        {
            "left": F.lag(F.when(F.col(RISES), _leaves())).over(order),
            "behind": F.lag(log_places.log_place()).over(order),
            "is_first": F.row_number().over(order) == 1,
        }
    )
    met = ordered.join(stored, keys, "left").join(dead, keys, "left")
    newest = newest_known()
    # A late event before it says nothing of what it found.
    meets_row = F.col("is_first") | F.coalesce(F.col("behind") <= newest, F.lit(False))
    left = F.when(F.col("behind") != log_places.log_place(), F.col("left"))
    before = F.when(meets_row, _stood(known, newest)).otherwise(left)
    contradicting = met.where(F.col(RISES) & (F.col("needs") * before == -1))
    return contradicting.select(*keys, "needs", "position", "file", "place")


def newest_known() -> Expression:
    """Return the place in the log of what a table holds of a key (``stands_at``, ``died_at``); null for nothing."""
    return F.substring_index(F.greatest("stands_at", "died_at"), DELIVERY, 1)


def order_of_key(plan: Plan) -> WindowSpec:
    """Return the order of the events of a key, the oldest first."""
    return Window.partitionBy(*key_names(plan)).orderBy("position", "file", "place", "row")


RISES = "rises"
"""Column with the result of ``rises``."""


def rises(plan: Plan, seen: int | None, order: WindowSpec) -> Expression:
    """Return whether an event is certainly later than all others that stand before it, so that it is no copy of one.

    In some formats a copy gets a position of its own. Then only the commit time shows that an event is new: it is later
    than all times before. The same holds for a position without a delivery in a format whose other positions have one,
    such as sources for which Debezium gives no place in the log: there the position ends in the place in the dump.

    Args:
        plan: the table's.
        seen: ``TableBefore.seen``.
        order: ``order_of_key``.
    """
    if not plan.ranks_copies and not plan.has_deliveries:
        return F.lit(True)
    before = F.max("committed_at").over(order.rowsBetween(Window.unboundedPreceding, -1))
    latest = F.greatest(F.unix_micros(before), F.lit(seen).cast("bigint"))
    at = F.unix_micros("committed_at")
    later = at.isNotNull() & F.coalesce(at > latest, F.lit(True))
    return later if plan.ranks_copies else log_places.has_delivery() | later


def _stood(known: TableBefore, newest: Expression) -> Expression:
    """Return what an event found that no other new one is before: a late one is not judged, nor what a load overtook.

    Args:
        known: what is known of the table.
        newest: the place in the log of what the table holds of the key.
    """
    late = newest >= log_places.log_place()
    if known.emptied:
        no_row = F.lit(True)
    elif known.loaded is None:
        no_row = F.col("died_at").isNotNull()
    else:
        no_row = F.col("died_at").isNotNull() | (F.unix_micros("committed_at") > known.loaded)
    stands = F.when(is_placed("stands_at"), F.col("stands")).otherwise(UNKNOWN)
    stood = F.when(F.col("stands_at").isNotNull(), stands).when(no_row, NO_ROW).otherwise(UNKNOWN)
    return F.when(late, UNKNOWN).otherwise(stood)


def is_placed(position: str) -> Expression:
    """Return whether a position has a place in the log: its first part is odd (``positions.changed``)."""
    return F.right(F.substring_index(position, ".", 1), F.lit(1)).isin("1", "3", "5", "7", "9")


def _leaves(event: str = "") -> Expression:
    left = F.when(F.col(f"{event}deleted"), NO_ROW).otherwise(ROW)
    return _number(F.when(F.col(f"{event}needs") == UNKNOWN, UNKNOWN).otherwise(left))


def _number(value: Expression) -> Expression:
    return value.cast("tinyint")
