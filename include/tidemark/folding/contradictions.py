"""Events that contradict the rows: an UPDATE or DELETE of a row that was not there, an INSERT of one that was.

Pure ``DataFrame -> DataFrame`` functions. What an event needs of its row is in the column ``needs`` of actions: 1, the
row; -1, no row; 0, nothing. The same numbers say what an event leaves. Two events at one place of the log are not
compared: they may be copies, and nothing but their delivery orders them. Nor is a row of an initial load, which may
have been read before or after the changes beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.window import WindowSpec

from tidemark.events import DELIVERY, Operation
from tidemark.folding import log_places
from tidemark.folding.frames import key_names
from tidemark.tables.plan import Plan

ROW, NO_ROW, UNKNOWN = 1, -1, 0
"""What an event needs or leaves."""


class Known(NamedTuple):
    """What is known of a table as a whole before its new events."""

    emptied: bool
    """Whether a TRUNCATE lies below all events that are judged: a key without a row has none."""
    loaded: int | None
    """Epoch µs: a key without a row had none when the table was loaded, and the load was over by then. None: never."""


def needs(plan: Plan, moved: Expression) -> Expression:
    """Return what an event needs of the row that it writes; ``moved``: whether its key changed, so that it is new."""
    untold = F.col("operation") == Operation.SNAPSHOT
    if plan.found.halves:  # one half of an update needs what the other one leaves
        untold |= F.col("operation") == Operation.UPDATE
    new = (F.col("operation") == Operation.INSERT) | moved
    return _number(F.when(untold, UNKNOWN).when(new, NO_ROW).otherwise(ROW))


def number(value: int) -> Expression:
    """Return one of the numbers as a column."""
    return _number(F.lit(value))


def breaks(newest_first: WindowSpec) -> Expression:
    """Return whether an action contradicts the one behind it."""
    left = F.lead(_leaves()).over(newest_first)
    behind = F.lead(log_places.log_place()).over(newest_first)
    return F.coalesce((F.col("needs") * left == -1) & (behind != log_places.log_place()), F.lit(False))


def judged(acted: DataFrame, stored: DataFrame, dead: DataFrame, known: Known, plan: Plan) -> DataFrame:
    """Return the actions that contradict the rows or the actions before them.

    Args:
        acted: the result of ``actions.actions``, sound ones alone.
        stored: ``k0 .. kn`` and ``stands_at`` of the rows before.
        dead: ``k0 .. kn`` and ``died_at`` of keys that were deleted.
        known: what is known of the table.
        plan: the table's.

    Returns:
        ``k0 .. kn``, ``needs``, ``position``, ``file``, ``place``.
    """
    keys = key_names(plan)
    met = behind_each(acted, plan, _leaves()).join(stored, keys, "left").join(dead, keys, "left")
    before = F.when(F.col("is_first"), _stood(known)).when(F.col("behind") != log_places.log_place(), F.col("left"))
    return met.where(F.col("needs") * before == -1).select(*keys, "needs", "position", "file", "place")


def behind_each(events: DataFrame, plan: Plan, leaves: Expression) -> DataFrame:
    """Return events with what the one before of the same key ``left``, its log place, ``behind``, and ``is_first``.

    Args:
        events: ``k0 .. kn``, ``position``, ``file``, ``place``, ``row``.
        plan: the table's.
        leaves: what an event leaves.
    """
    order = Window.partitionBy(*key_names(plan)).orderBy("position", "file", "place", "row")
    return events.withColumns(
        {
            "left": F.lag(leaves).over(order),
            "behind": F.lag(log_places.log_place()).over(order),
            "is_first": F.row_number().over(order) == 1,
        }
    )


def _stood(known: Known) -> Expression:
    """Return what the first new event of a key found: a late one is not judged, nor what a load may have overtaken."""
    newest = F.greatest("stands_at", "died_at")
    late = F.substring_index(newest, DELIVERY, 1) >= log_places.log_place()
    if known.emptied:
        no_row = F.lit(True)
    elif known.loaded is None:
        no_row = F.col("died_at").isNotNull()
    else:
        no_row = F.col("died_at").isNotNull() | (F.unix_micros("committed_at") > known.loaded)
    stands = F.when(is_placed("stands_at"), ROW).otherwise(UNKNOWN)
    told = F.when(F.col("stands_at").isNotNull(), stands).when(no_row, NO_ROW).otherwise(UNKNOWN)
    return F.when(late, UNKNOWN).otherwise(told)


def is_placed(position: str) -> Expression:
    """Return whether a position has a place in the log: its first part is odd (``events.changed``)."""
    return F.substring_index(position, ".", 1).substr(3, 99).cast("decimal(38)") % 2 == 1


def _leaves() -> Expression:
    told = F.when(F.col("deleted"), NO_ROW).otherwise(ROW)
    return _number(F.when(F.col("needs") == UNKNOWN, UNKNOWN).otherwise(told))


def _number(value: Expression) -> Expression:
    return value.cast("tinyint")
