"""Before images that are not the row before: of an UPDATE or DELETE, where an event between the two was lost.

Pure ``DataFrame -> DataFrame`` functions. The row before is what the event before left, or the stored row. Only values
that a before image tells are compared: a null there may as well stand for a value that was not captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Operation
from tidemark.folding import contradictions, log_places
from tidemark.folding.actions import cell
from tidemark.folding.frames import key_columns, key_names, value_numbers
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import POSITION
from tidemark.text import quoted
from tidemark.values.images import UNREADABLE, read_images
from tidemark.values.table_columns import Image, any_of, field

_ORIGIN = ("position", "file", "place", "row")


def sides(events: DataFrame, plan: Plan) -> DataFrame:
    """Return what each event leaves of a row, and what it says that the row was.

    Args:
        events: row changes of the change log, with whole images, of a table with a key (no TRUNCATE).
        plan: the table's plan.

    Returns:
        ``k0 .. kn``, ``position``, ``file``, ``place``, ``row``; ``leaves``, a struct of ``c<n>`` (null: no row, or
        one that cannot be compared); ``was``, the same of the before image (null: none). An event that changed its key
        has two sides.
    """
    texts = [F.coalesce("after", "before").alias("new text"), F.when(F.col("after").isNotNull(), F.col("before"))]
    wanted = events.select("operation", "shape", *_ORIGIN, texts[0], texts[1].alias("old text"))
    images = [Image(F.col(f"`{side} text`"), plan.columns, side) for side in ("new", "old")]
    read = read_images(wanted, images, shapes=plan.found.shapes, names=plan.found.names, masks=plan.masks)
    numbers = value_numbers(plan)
    after, before = (F.struct(*(cell(plan, n, side).alias(field(n)) for n in numbers)) for side in ("new", "old"))
    new_key = [F.col(f"new.{field(n)}") for n in plan.key_numbers]
    old_key = [F.coalesce(F.col(f"old.{field(n)}"), new) for n, new in zip(plan.key_numbers, new_key, strict=True)]
    deletes = F.col("operation") == Operation.DELETE
    sound = F.col(f"new.{UNREADABLE}").isNull() & F.col(f"old.{UNREADABLE}").isNull()
    told = F.when(sound & deletes, after).when(sound & F.col("old text").isNotNull(), before)
    # A row of a load may have been read before or after the changes beside it.
    left = F.when(sound & ~deletes & (F.col("operation") != Operation.SNAPSHOT), after)
    moved = F.coalesce(any_of([new != old for new, old in zip(new_key, old_key, strict=True)]), F.lit(False))
    never = F.lit(False)
    stays, arrives = _side(new_key, left, told), _side(new_key, left, F.when(never, told))
    both = F.array(arrives, _side(old_key, F.when(never, left), told))
    apart = read.withColumn("side", F.explode(F.when(moved, both).otherwise(F.array(stays))))
    return apart.select("side.*", *_ORIGIN).where(~any_of([F.col(key).isNull() for key in key_names(plan)]))


def _side(key: Sequence[Expression], leaves: Expression, was: Expression) -> Expression:
    parts = [part.alias(f"k{place}") for place, part in enumerate(key)]
    return F.struct(*parts, leaves.alias("leaves"), was.alias("was"))


def stored(rows: DataFrame, plan: Plan) -> DataFrame:
    """Return rows of the table as ``k0 .. kn``, ``stands_at`` and ``stands``, a struct of ``c<n>``."""
    cells = (F.col(quoted(plan.columns[n].name)).alias(field(n)) for n in value_numbers(plan))
    return rows.select(*key_columns(plan), F.col(POSITION).alias("stands_at"), F.struct(*cells).alias("stands"))


def differing(told: DataFrame, rows: DataFrame, plan: Plan) -> DataFrame:
    """Return the sides whose before image is not the row before.

    Args:
        told: ``sides``.
        rows: ``stored``, as they were before the events.
        plan: the table's plan.
    """
    keys, numbers = key_names(plan), value_numbers(plan)
    met = contradictions.behind_each(told, plan, F.col("leaves")).join(rows, keys, "left")
    is_new = log_places.log_place("stands_at") < log_places.log_place()
    held = F.when(is_new & contradictions.is_placed("stands_at"), F.col("stands"))
    follows = F.col("behind") != log_places.log_place()
    before = F.when(F.col("is_first"), held).when(follows, F.col("left"))
    pairs = [(F.col(f"was.{field(n)}"), F.col(f"before.{field(n)}")) for n in numbers]
    differ = reduce(or_, [was.isNotNull() & ~was.eqNullSafe(now) for was, now in pairs], F.lit(False))
    compared = met.withColumn("before", before)
    return compared.where(F.col("before").isNotNull() & F.col("was").isNotNull() & differ).select(
        *keys, "position", "file", "place"
    )
