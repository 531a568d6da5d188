"""Before images that are not the row before: of an UPDATE or DELETE, where an event between the two was lost.

Pure ``DataFrame -> DataFrame`` functions. Each cell of the row before is what the newest event before left in it, or
the stored cell. Only values that a before image has are compared: a null there may as well stand for a value that was
not captured. Rows that a load wrote are not compared: a load reads some values otherwise than the log has them, JSON of
MySQL with blanks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Operation
from tidemark.folding import log_places, row_needs
from tidemark.folding.actions import cell
from tidemark.folding.captured import Captured
from tidemark.folding.frames import key_columns, key_names, value_numbers
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import DELETED, POSITION
from tidemark.text import quoted
from tidemark.values.image_reader import UNREADABLE, field
from tidemark.values.images import read_images
from tidemark.values.table_columns import Image, any_of

_KEPT = ("operation", "shape", "partial", "absent")
_ORIGIN = ("position", "file", "place", "row", "committed_at")


def sides(events: DataFrame, plan: Plan, *, of_deletes: bool = True) -> DataFrame:
    """Return what each event leaves of a row, and what it says that the row was.

    Args:
        events: row changes of the change log, of a table with a key (no TRUNCATE).
        plan: the table's plan.
        of_deletes: whether the before image of a DELETE says what the row was.

    Returns:
        ``k0 .. kn``, ``position``, ``file``, ``place``, ``row``, ``committed_at``; ``leaves``, a struct of ``c<n>``:
        null for a cell that stays as it was, else a struct of ``known`` (whether the value is known) and ``value``;
        ``was``, a struct of ``c<n>``, the values of the before image (null: none). An event that changed its key has
        two sides.
    """
    texts = [F.coalesce("after", "before"), F.when(F.col("after").isNotNull(), F.col("before"))]
    columns = {"new text": texts[0], "old text": texts[1], "is_old_only": F.col("after").isNull()}
    wanted = events.select(*_KEPT, *_ORIGIN, *(text.alias(name) for name, text in columns.items()))
    images = [Image(F.col(f"`{side} text`"), plan.columns, side) for side in ("new", "old")]
    read = read_images(wanted, images, shapes=plan.found.shapes, names=plan.found.names, masks=plan.masks)
    deletes = F.col("operation") == Operation.DELETE
    read = read.withColumn("deleted", deletes)  # as ``Captured`` asks for it
    numbers = value_numbers(plan)
    captured = Captured(plan)
    in_new, in_old = (
        F.struct(*(F.when(~captured.lacks(n), cell(plan, n, side)).alias(field(n)) for n in numbers))
        for side in ("new", "old")
    )
    new_key = [F.col(f"new.{field(n)}") for n in plan.key_numbers]
    old_key = [F.coalesce(F.col(f"old.{field(n)}"), new) for n, new in zip(plan.key_numbers, new_key, strict=True)]
    sound = F.col(f"new.{UNREADABLE}").isNull() & F.col(f"old.{UNREADABLE}").isNull()
    says = sound if of_deletes else sound & ~deletes
    was = F.when(says & F.col("is_old_only"), in_new).when(sound & F.col("`old text`").isNotNull(), in_old)
    moved = F.coalesce(any_of([new != old for new, old in zip(new_key, old_key, strict=True)]), F.lit(False))
    # A row of a load may have been read before or after the changes beside it.
    is_known = sound & ~deletes & (F.col("operation") != Operation.SNAPSHOT)
    half = F.col("is_old_only") & ~deletes  # it leaves what its new half leaves
    left = F.struct(*(_left(plan, captured, n, half, is_known & ~(moved & F.col("partial"))) for n in numbers))
    gone = F.struct(*(_cell(F.lit(False), cell(plan, n, "new")).alias(field(n)) for n in numbers))
    stays, arrives = _side(new_key, left, was), _side(new_key, left, F.when(F.lit(False), was))
    both = F.array(arrives, _side(old_key, gone, was))
    apart = read.withColumn("side", F.explode(F.when(moved, both).otherwise(F.array(stays))))
    apart = apart.select("side.*", *_ORIGIN)
    return apart.where(~any_of([F.col(key).isNull() for key in key_names(plan)]))


def _left(plan: Plan, captured: Captured, number: int, half: Expression, is_known: Expression) -> Expression:
    """Return what an event leaves in a cell: unknown in a column that came later, unless the column has a default."""
    name = plan.columns[number].name
    has_value = captured.has_column(name)
    if (default := plan.defaults.get(name)) is not None:
        has_value |= captured.is_from_before(name, default)
    left = _cell(F.coalesce(is_known & has_value, F.lit(False)), cell(plan, number, "new"))
    return F.when(~half & (captured.writes(number) | ~is_known), left).alias(field(number))


def _cell(is_known: Expression, value: Expression) -> Expression:
    return F.struct(is_known.alias("known"), F.when(is_known, value).alias("value"))


def _side(key: Sequence[Expression], leaves: Expression, was: Expression) -> Expression:
    parts = [part.alias(f"k{place}") for place, part in enumerate(key)]
    return F.struct(*parts, leaves.alias("leaves"), was.alias("was"))


def stored(rows: DataFrame, plan: Plan) -> DataFrame:
    """Return rows of the table as ``k0 .. kn``, ``stands_at``, ``alive`` and ``stands``, a struct of ``c<n>``."""
    cells = (F.col(quoted(plan.columns[n].name)).alias(field(n)) for n in value_numbers(plan))
    alive = ~F.coalesce(F.col(DELETED), F.lit(False)) if plan.soft else F.lit(True)
    at = F.col(POSITION).alias("stands_at")
    return rows.select(*key_columns(plan), at, alive.alias("alive"), F.struct(*cells).alias("stands"))


def differing(
    event_sides: DataFrame, rows: DataFrame, dead: DataFrame, plan: Plan, seen: int | None, added: Collection[str] = ()
) -> DataFrame:
    """Return the sides whose before image is not the row before; none of a key with late events.

    Args:
        event_sides: ``sides``.
        rows: ``stored``, as they were before the events.
        dead: ``k0 .. kn`` and ``died_at`` of keys that were deleted.
        plan: the table's plan.
        seen: ``row_needs.TableBefore.seen``.
        added: columns that not all rows were written with: a null there is no value.
    """
    keys, numbers, rises = key_names(plan), value_numbers(plan), row_needs.RISES
    order = row_needs.order_of_key(plan)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    marked = event_sides.withColumn(rises, row_needs.rises(plan, seen, order))
    behind = {
        "behind": F.lag(log_places.log_place()).over(order),
        "begins": F.first(log_places.log_place()).over(order),
        **{f"left {field(n)}": F.last(_trusted(n), ignorenulls=True).over(before) for n in numbers},
    }
    met = marked.withColumns(behind).join(rows, keys, "left").join(dead, keys, "left")
    held = F.coalesce(F.col("alive") & _is_of_log(), F.lit(False))
    differ = [_differs(n, held, added=plan.columns[n].name in added) for n in numbers]
    follows = F.coalesce(F.col("behind") != log_places.log_place(), F.lit(True))
    late = F.coalesce(row_needs.newest_known() >= F.col("begins"), F.lit(False))
    found = met.where(F.col("was").isNotNull() & F.col(rises) & follows & ~late & reduce(or_, differ, F.lit(False)))
    return found.select(*keys, "position", "file", "place")


def _is_of_log() -> Expression:
    """Return whether a stored row was written by an event of the log, and not by a load that has a place there.

    Where an event has a delivery, the changes before it have one too, and loads have none.
    """
    alike = log_places.has_delivery("stands_at") | ~log_places.has_delivery()
    return row_needs.is_placed("stands_at") & alike


def _trusted(number: int) -> Expression:
    """Return what an event leaves in a cell, where it is certainly no copy of an earlier event."""
    left = F.col(f"leaves.{field(number)}")
    trusted = F.struct((left["known"] & F.col(row_needs.RISES)).alias("known"), left["value"].alias("value"))
    return F.when(left.isNotNull(), trusted)


def _differs(number: int, held: Expression, *, added: bool) -> Expression:
    """Return whether a cell of a before image is not the cell of the row before: the last one left, or the stored."""
    was, left = F.col(f"was.{field(number)}"), F.col(f"`left {field(number)}`")
    before, stands = left["value"], F.col(f"stands.{field(number)}")
    held = held & stands.isNotNull() if added else held
    other = F.when(left.isNotNull(), left["known"] & ~was.eqNullSafe(before)).otherwise(held & ~was.eqNullSafe(stands))
    return was.isNotNull() & other
