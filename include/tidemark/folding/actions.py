"""Folding: from the events of one table to one row a key, and from there to what the table must hold.

Pure ``DataFrame -> DataFrame`` functions. Every cell is a register whose last writer, by position, wins; a whole image
writes all cells of its row, a delete writes null to all of them. Last-writer-wins is associative, commutative and
idempotent, so the outcome depends on the set of events alone: not on their order, their split into runs, or repeats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Encoding, Operation
from tidemark.folding.frames import key_names, value_numbers
from tidemark.tables.plan import Plan
from tidemark.tables.reasons import MISFIT, NULL_KEY, PARTIAL_KEY_CHANGE, TRUNCATED, UNREADABLE_VALUE
from tidemark.text import quoted
from tidemark.values.encodings import READERS
from tidemark.values.images import UNREADABLE, by_table_name, read_images
from tidemark.values.table_columns import Image, TableColumn, any_of, field
from tidemark.values.types import spark_type

KEPT = ("position", "committed_at", "shape", "partial", "absent", "batch", "file", "place", "row")
"""Columns of the change log that actions keep."""


def actions(events: DataFrame, plan: Plan, truncated: str | None, kept: Sequence[str] = KEPT) -> DataFrame:
    """Read the images of row changes and tell which key each of them acts on.

    An update whose key changed acts twice: it deletes the old key and writes the new one, at the same position.

    Args:
        events: row changes of the change log, of one table (no TRUNCATE).
        plan: the table's.
        truncated: position of the newest TRUNCATE; older events act no more.
        kept: columns of the change log that stay.

    Returns:
        ``k0 .. kn``; ``c<n>`` (the columns outside the key, typed; where ``deleted`` null, or what the old image holds,
        with soft deletes); ``deleted``; ``moved_away`` (the delete of an old key); ``set_aside`` (why the event takes
        no part: a reason, or null), ``detail``; ``half`` (the old half of an update in two events: it deletes its key);
        and ``kept``.
    """
    keys = [plan.columns[number] for number in plan.key_numbers]
    update = F.col("operation") == Operation.UPDATE
    whole_update = F.col("after").isNotNull() & update
    # In a projection of their own: what `from_json` is given directly, Spark interprets. And the rows that are parsed
    # are without the images as they came, of which most old ones are not looked at.
    texts = {
        "new text": F.coalesce("after", "before"),
        "old text": F.when(whole_update & ~_same_key(plan), F.col("before")),
        "half": F.col("after").isNull() & update,
    }
    new, old = F.col("`new text`"), F.col("`old text`")
    images = [Image(new, plan.columns, "image"), Image(old, keys, "old")]
    if plan.soft:  # apart from the old key, as a value that does not fit is no reason to set an update aside
        images.append(Image(old, plan.columns, "was"))
    wanted = events.select("operation", *kept, *(text.alias(name) for name, text in texts.items()))
    read = read_images(wanted, images, shapes=plan.found.shapes, names=plan.found.names)
    told_before = [F.col(f"old.{field(place)}") for place in range(len(keys))]
    named = [f"new {name}" for name in key_names(plan)]
    # In a projection of its own, because it is used often and must be made once.
    new_key = [
        F.coalesce(F.col(f"image.{field(number)}"), F.when(F.col("partial"), before))
        for number, before in zip(plan.key_numbers, told_before, strict=True)
    ]
    old_key = [F.coalesce(before, now) for before, now in zip(told_before, new_key, strict=True)]
    olds = [f"old {name}" for name in key_names(plan)]
    keyed = read.withColumns(dict(zip([*named, *olds], [*new_key, *old_key], strict=True)))
    after = [F.col(quoted(name)) for name in named]
    before = [F.col(quoted(name)) for name in olds]
    moved = F.coalesce(any_of([was != now for was, now in zip(before, after, strict=True)]), F.lit(False))
    # What the old row held in the columns that were not captured is not known here, and must not become null unseen.
    torn = moved & F.col("partial")
    writes = (F.col("operation") != Operation.DELETE) & ~F.col("half")
    verdict = [(~writes).alias("deleted"), *_set_aside(after, keys, torn, writes, truncated)]
    stays = F.struct(F.lit(False).alias("moved_away"), *verdict)
    leaves = F.struct(F.lit(True).alias("moved_away"), F.lit(True).alias("deleted"), *verdict[1:])
    # The verdict comes out of the generator because the optimizer pushes no filter on it below one: pushed further, a
    # filter would parse the image again for every column it asks about.
    sides = keyed.withColumn("side", F.explode(F.when(moved, F.array(stays, leaves)).otherwise(F.array(stays))))
    left, alive = F.col("side.moved_away"), ~F.col("side.deleted")
    acted = [
        F.when(left, was).otherwise(now).alias(name)
        for name, was, now in zip(key_names(plan), before, after, strict=True)
    ]
    cells = [
        (
            F.when(left, cell(plan, number, "was")).otherwise(cell(plan, number))
            if plan.soft
            else F.when(alive, cell(plan, number))
        ).alias(field(number))
        for number in value_numbers(plan)
    ]
    return sides.select(*acted, *cells, "side.*", "half", *kept)


def cell(plan: Plan, number: int, image: str = "image") -> Expression:
    """The value of a column in a read image; rows from before it was added got its default at the source."""
    column, value = plan.columns[number], F.col(f"{image}.{field(number)}")
    default = plan.defaults.get(column.name)
    if default is None:
        return value
    told = F.coalesce(F.col("shape").isin(*_holders(plan, column.name)), F.lit(False))
    return F.when((F.col("position") < default.position) & ~told, default_value(column, default.text)).otherwise(value)


def default_value(column: TableColumn, text: str) -> Expression:
    """The constant of a DEFAULT clause as a value; null where the type cannot hold it."""
    return READERS[Encoding.TEXT](F.lit(text), column.type).cast(spark_type(column.type))


def _holders(plan: Plan, name: str) -> dict[str, str]:
    """The shapes that have a column of the table, and what they call it."""
    found = plan.found
    return {
        shape_id: column.name
        for shape_id, shape in found.shapes.items()
        for told, column in by_table_name(shape_id, shape, found.names)
        if told == name
    }


_LEADING = 4
"""Most members of an image that are looked at for the key."""

_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
"""A name that JSON writes as it is."""


def _same_key(plan: Plan) -> Expression:
    """Whether the old image begins, up to and with its key, as the new one does: then there is no need to parse it.

    Asked of tables whose key columns come first, as they mostly do; false means that the key may be the same. What
    stands before the name of the member behind the key is compared as text, which costs less than any pattern does. A
    comma and a quotation mark begin a member wherever a name and a colon follow them; that it is one of the row, and
    not of a value, is told by the brackets.
    """
    leading = {tuple(column.name for column in shape.columns[: _LEADING + 1]) for shape in plan.found.shapes.values()}
    if len(leading) != 1 or plan.found.names:
        return F.lit(False)
    names = next(iter(leading))
    if not set(plan.key) <= set(names[:_LEADING]) or not all(map(_PLAIN.fullmatch, names)):
        return F.lit(False)
    places = [names.index(name) for name in plan.key]
    behind = names[max(places) + 1 :]
    new, old = (
        F.substring_index(image, f',"{behind[0]}":', 1) if behind else F.col(image) for image in ("after", "before")
    )
    holds_key = [
        F.contains(new, F.lit(f',"{names[place]}":')) if place else F.startswith(new, F.lit(f'{{"{names[0]}":'))
        for place in places
    ]
    flat = (F.locate("{", new, 2) == 0) & (F.locate("[", new) == 0)
    return F.coalesce(reduce(and_, [new == old, *holds_key, flat]), F.lit(False))


def _set_aside(
    key: Sequence[Expression],
    columns: Sequence[TableColumn],
    torn: Expression,
    writes: Expression,
    truncated: str | None,
) -> list[Expression]:
    null = any_of([part.isNull() for part in key])
    unreadable = F.coalesce(F.col(f"image.{UNREADABLE}"), F.col(f"old.{UNREADABLE}"))
    late = F.lit(False) if truncated is None else F.col("position") < truncated
    reason = (
        F.when(writes & unreadable.isNotNull(), UNREADABLE_VALUE)
        .when(null, NULL_KEY)
        .when(late, TRUNCATED)
        .when(torn, PARTIAL_KEY_CHANGE)
    ).alias("set_aside")
    names = ", ".join(column.name for column in columns)
    detail = (
        F.when(writes & unreadable.isNotNull(), F.concat(F.lit(MISFIT), unreadable))
        .when(null, F.lit(f"the key is ({names}) and a part of it is null or missing"))
        .when(torn, F.lit(f"the key ({names}) changed, and the new row was not captured whole"))
        .alias("detail")
    )
    return [reason, detail]


def writes_cell(plan: Plan, number: int, event: str = "") -> Expression:
    """Whether an action writes a column; ``event`` leads to its ``partial``, ``deleted``, ``shape``, ``absent``."""
    holders = _holders(plan, plan.columns[number].name)
    captured = any_of([F.lit(False), *(_captured(holders, name, event) for name in sorted({*holders.values()}))])
    if (default := plan.defaults.get(plan.columns[number].name)) is not None:
        # What cannot have captured a column that was not there yet got its default with the row.
        told = F.coalesce(F.col(f"{event}shape").isin(*holders), F.lit(False))
        captured |= (F.col("position") < default.position) & ~told
    return ~F.col(f"{event}partial") | F.col(f"{event}deleted") | captured


def _captured(holders: Mapping[str, str], name: str, event: str) -> Expression:
    """Whether the event's image holds a column that its shape calls ``name``."""
    missing = F.coalesce(F.array_contains(f"{event}absent", F.lit(name)), F.lit(False))
    shapes = [shape_id for shape_id, told in holders.items() if told == name]
    return F.coalesce(F.col(f"{event}shape").isin(*shapes), F.lit(False)) & ~missing
