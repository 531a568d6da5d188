"""Actions: what each change event of a table with a key does to the row of one key.

Pure ``DataFrame -> DataFrame`` functions. Every cell is a register: of its writers, the one with the highest position
wins. A whole image writes all cells of its row, and a delete writes null to all of them. "Last writer wins" is
associative, commutative and idempotent. So the result depends on the set of events alone, and not on their order, on
their split into runs, or on copies.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl.changes import Fill
from tidemark.events import Operation
from tidemark.folding import row_checks, row_needs
from tidemark.folding.captured import Captured
from tidemark.folding.frames import key_names, value_numbers
from tidemark.folding.truncates import Truncates
from tidemark.tables.defaults import value_of
from tidemark.tables.plan import Plan
from tidemark.tables.reasons import (
    CHECK_FAILED,
    CHECK_FAILED_KEPT_GOOD,
    MISFIT,
    NULL_KEY,
    PARTIAL_KEY_CHANGE,
    TRUNCATED,
    UNREADABLE_VALUE,
    torn_key,
)
from tidemark.text import quoted
from tidemark.values.image_reader import UNREADABLE, field
from tidemark.values.images import read_images
from tidemark.values.table_columns import Image, TableColumn, any_of
from tidemark.values.types import spark_type

KEPT = ("position", "committed_at", "shape", "partial", "absent", "upsert", "batch", "file", "place", "row")
"""Columns of the change log that actions keep."""


def actions(events: DataFrame, plan: Plan, truncated: Truncates | None, kept: Sequence[str] = KEPT) -> DataFrame:
    """Read the images of row changes, and return what each change does to which key.

    An update whose key changed becomes two actions at the same position: one deletes the old key, and the other writes
    the new key.

    Args:
        events: row changes of the change log, of one table (no TRUNCATE).
        plan: the table's plan.
        truncated: TRUNCATEs; events below the newest one have no effect.
        kept: columns of the change log that stay.

    Returns:
        ``k0 .. kn``; ``c<n>`` (the columns outside the key, typed; where ``deleted``: null, or with soft deletes the
        values of the old image); ``deleted``; ``moved_away`` (the delete of an old key, or of a row that is
        kept back: its event is counted elsewhere); ``set_aside`` (the reason why
        the event takes no part, or null), ``detail``; ``half`` (the old half of an update in two events: it deletes its
        key); where the plan ``compares``: ``needs`` (``row_needs``); and ``kept``.
    """
    keyed = _with_keys(_read(events, plan, kept), plan)
    after, before = ([F.col(quoted(f"{side} {name}")) for name in key_names(plan)] for side in ("new", "old"))
    moved = F.coalesce(any_of([was != now for was, now in zip(before, after, strict=True)]), F.lit(False))
    # The old row's values in the columns that were not captured are unknown here. They must not silently become null.
    torn = moved & F.col("partial")
    writes = (F.col("operation") != Operation.DELETE) & ~F.col("half")
    late = F.lit(False)
    if truncated:
        late = F.coalesce(F.col("position") < truncated.position(plan, "new "), late)
    verdict = [(~writes).alias("deleted"), *_set_aside(after, _key_of(plan), torn, writes, late)]
    needs = [row_needs.needs(plan, moved), row_needs.number(row_needs.ROW)] if plan.compares else []
    new, old = ([each.alias("needs")] for each in needs) if needs else ([], [])
    stays = F.struct(F.lit(False).alias("moved_away"), *verdict, *new)
    leaves = F.struct(F.lit(True).alias("moved_away"), F.lit(True).alias("deleted"), *verdict[1:], *old)
    does, left = F.when(moved, F.array(stays, leaves)).otherwise(F.array(stays)), F.col("side.moved_away")
    if plan.row_checks:
        keyed, does = _judged(plan, keyed, writes), _kept_back(moved, verdict)
        left = F.col("side.of_old_key")
    sides, alive = keyed.withColumn("side", F.explode(does)), ~F.col("side.deleted")
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
    done = sides.select(*acted, *cells, "side.*", "half", *kept)
    return done.drop("of_old_key") if plan.row_checks else done


def _judged(plan: Plan, keyed: DataFrame, writes: Expression) -> DataFrame:
    """Return read events with the rule that their row fails (``failed``), and whether the row stays then."""
    numbers = {column.name: number for number, column in enumerate(plan.columns)}

    def value(name: str) -> Expression:
        return cell(plan, numbers[name])

    failed = F.when(writes, row_checks.failed(plan.row_checks, value))
    return keyed.withColumns({"failed": failed, "stays good": row_checks.stays(plan.row_checks, value)})


def _kept_back(moved: Expression, verdict: Sequence[Expression]) -> Expression:
    """Return what an event does where rows are kept back: its row is set aside, and what it takes away goes.

    The old key of a row that fails goes, because the source has it no more. The row itself goes from the table as a row
    goes that moves to another key: at the position of the event, counted with it. So a later event brings it back, and
    no earlier one does.
    """
    deleted, reason, detail = verdict
    fails = reason.isNull() & F.col("failed").isNotNull()
    aside = F.when(F.col("stays good"), CHECK_FAILED_KEPT_GOOD).otherwise(CHECK_FAILED)
    never, always = F.lit(False), F.lit(True)
    nothing = F.lit(None).cast("string")

    def side(moved_away: Expression, of_old: Expression, *outcome: Expression) -> Expression:
        names = ("moved_away", "of_old_key", "deleted", "set_aside", "detail")
        parts = (moved_away, of_old, *outcome)
        return F.struct(*(part.alias(name) for part, name in zip(parts, names, strict=True)))

    failed = F.concat(F.lit("the row fails "), F.col("failed"))
    own = side(never, never, deleted, F.when(fails, aside).otherwise(reason), F.when(fails, failed).otherwise(detail))
    leaves = F.when(moved, side(always, always, always, reason, detail))
    goes = F.when(fails & ~F.col("stays good"), side(always, never, always, nothing, nothing))
    return F.array_compact(F.array(own, leaves, goes))


def _key_of(plan: Plan) -> list[TableColumn]:
    return [plan.columns[number] for number in plan.key_numbers]


def _read(events: DataFrame, plan: Plan, kept: Sequence[str]) -> DataFrame:
    """Return the events with typed images: ``image``, ``old`` (the old key) and, with soft deletes, ``was``."""
    update = F.col("operation") == Operation.UPDATE
    whole_update = F.col("after").isNotNull() & update
    # In a projection of their own: the rows that are read no longer carry the images as they arrived, and most old
    # images are never looked at.
    texts = {
        "new text": F.coalesce("after", "before"),
        "old text": F.when(whole_update & ~_same_key(plan), F.col("before")),
        "half": F.col("after").isNull() & update,
    }
    if row_needs.tells_rows(plan):
        texts[row_needs.NO_OLD_ROW] = F.col("before").isNull()
    new, old = F.col("`new text`"), F.col("`old text`")
    images = [Image(new, plan.columns, "image"), Image(old, _key_of(plan), "old")]
    if plan.soft:  # apart from the old key: a value that does not fit is no reason to set an update aside
        images.append(Image(old, plan.columns, "was"))
    wanted = events.select("operation", *kept, *(text.alias(name) for name, text in texts.items()))
    if plan.found.partial:
        wanted = wanted.withColumn("partial", Captured(plan).is_in_part())
    return read_images(wanted, images, shapes=plan.found.shapes, names=plan.found.names, masks=plan.masks)


def _with_keys(read: DataFrame, plan: Plan) -> DataFrame:
    """Return the read events with their key after the change (``new k<n>``) and before it (``old k<n>``)."""
    in_old_image = [F.col(f"old.{field(place)}") for place in range(len(plan.key_numbers))]
    new_key = [
        F.coalesce(cell(plan, number), F.when(F.col("partial"), old))
        for number, old in zip(plan.key_numbers, in_old_image, strict=True)
    ]
    old_key = [F.coalesce(old, new) for old, new in zip(in_old_image, new_key, strict=True)]
    names = [f"{side} {name}" for side in ("new", "old") for name in key_names(plan)]
    # In a projection of their own, because they are used often and must be made once.
    return read.withColumns(dict(zip(names, [*new_key, *old_key], strict=True)))


def cell(plan: Plan, number: int, image: str = "image") -> Expression:
    """Return the value of a column in a read image.

    An event from before the column was added has the column's default, which its row got at the source.
    """
    column, value = plan.columns[number], F.col(f"{image}.{field(number)}")
    default = plan.defaults.get(column.name)
    if default is None:
        return value
    added_later = Captured(plan).is_from_before(column.name, default)
    return F.when(added_later, default_value(plan, column, default.fill)).otherwise(value)


def default_value(plan: Plan, column: TableColumn, fill: Fill) -> Expression:
    """Return what rows get in a column that was added, as a value of its type, which the plan made sure can hold it."""
    if column.name in plan.masks.kinds:
        return F.lit(plan.masks.shown(column.name, fill.text)).cast(spark_type(column.type))
    value = value_of(column, fill)
    literal = F.lit(base64.b64decode(value)) if isinstance(value, str) and column.type == "binary" else F.lit(value)
    return literal.cast(spark_type(column.type))


_LEADING = 4
"""How many members of an image, from its first, may be searched for the key."""

_PLAIN = re.compile(r'[^"\\:,\[\]{}\x00-\x1f]+')
"""A name that JSON writes without an escape, and that looks like nothing else of an image."""


def _same_key(plan: Plan) -> Expression:
    """Return whether the old image certainly has the same key as the new one, so that it need not be parsed.

    This works for tables whose key columns come first, as they usually do. False means that the key may have changed.
    The two images are compared as text, up to the name of the member behind the key: this costs less than any pattern.
    A comma and a quotation mark begin a member wherever a name and a colon follow them. That member belongs to the row,
    and not to a nested value, if no other bracket opens before it.
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
    late: Expression,
) -> list[Expression]:
    """Return the columns ``set_aside`` (why an action takes no part: a reason, or null) and ``detail``."""
    null = any_of([part.isNull() for part in key])
    unreadable = F.coalesce(F.col(f"image.{UNREADABLE}"), F.col(f"old.{UNREADABLE}"))
    reason = (
        F.when(writes & unreadable.isNotNull(), UNREADABLE_VALUE)
        .when(late, TRUNCATED)
        .when(null, NULL_KEY)
        .when(torn, PARTIAL_KEY_CHANGE)
    ).alias("set_aside")
    names = ", ".join(column.name for column in columns)
    detail = (
        F.when(writes & unreadable.isNotNull(), F.concat(F.lit(MISFIT), unreadable))
        .when(null, F.lit(f"the key is ({names}) and a part of it is null or missing"))
        .when(torn, F.lit(torn_key([column.name for column in columns])))
        .alias("detail")
    )
    return [reason, detail]
