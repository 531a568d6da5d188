"""Tables without a key: bags of rows, where equal rows are counted and nothing else distinguishes them.

Pure ``DataFrame -> DataFrame`` functions. The values of all columns identify a row (null equals null, NaN equals NaN).
An event puts in its new row, and takes out one row that equals its old row: the oldest, if there is any. So the rows
that remain of equal ones are the newest insertions. Their number is the count that the events lead to in the order of
position. Both are functions of the set of events, and so are the positions that the rows show.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Operation
from tidemark.folding.actions import cell
from tidemark.tables.plan import Plan
from tidemark.tables.reasons import INCOMPLETE_IMAGE, MISFIT, TRUNCATED, UNREADABLE_VALUE
from tidemark.tables.schemas import COMMITTED_AT, POSITION
from tidemark.text import quoted
from tidemark.values.image_reader import UNREADABLE, field
from tidemark.values.images import by_table_name, read_images
from tidemark.values.table_columns import Image

_ORIGIN = ("batch", "file", "place", "row")


def read_rows(events: DataFrame, plan: Plan, truncated: str | None) -> DataFrame:
    """Read the images of row changes, and return which row each event takes out and which row it puts in.

    Args:
        events: row changes of the change log, of one table (no TRUNCATE).
        plan: the table's plan, with every shape that occurs.
        truncated: position of the newest TRUNCATE; older events have no effect.

    Returns:
        ``position``, ``committed_at``, the origin (``batch``, ``file``, ``place``, ``row``); ``set_aside`` (the reason
        why the event takes no part, or null), ``detail``; ``old`` and ``new``, structs of ``c0 .. cn`` with the types
        of the plan's columns (null: no such row).
    """
    absent = F.coalesce("absent", F.array().cast("array<string>"))
    read = events.withColumns(
        {"in_old_image": _by_table_names(plan, F.json_object_keys("before")), "absent": _by_table_names(plan, absent)}
    )
    images = [Image(F.col(image), plan.columns, f"{image}_image") for image in ("after", "before")]
    read = read_images(read, images, shapes=plan.found.shapes, names=plan.found.names, masks=plan.masks)
    unreadable = F.coalesce(F.col(f"after_image.{UNREADABLE}"), F.col(f"before_image.{UNREADABLE}"))
    # In a projection of their own, because each is used twice.
    judged = read.withColumns({"unreadable": unreadable, "unknown": _unknown(plan)})
    late = F.lit(False) if truncated is None else F.col("position") < truncated
    reason = (
        F.when(F.col("unreadable").isNotNull(), UNREADABLE_VALUE)
        .when(late, TRUNCATED)
        .when(F.col("unknown").isNotNull(), INCOMPLETE_IMAGE)
    )
    detail = F.when(F.col("unreadable").isNotNull(), F.concat(F.lit(MISFIT), F.col("unreadable"))).otherwise(
        F.concat(F.lit("the table has no key, and the old row is incomplete: "), F.col("unknown"))
    )
    columns = list(enumerate(column.name for column in plan.columns))
    old = F.struct(*(_old(plan, number, name).alias(field(number)) for number, name in columns))
    new = F.struct(*(_new(plan, number, name).alias(field(number)) for number, name in columns))
    return judged.select(
        "position",
        "committed_at",
        *_ORIGIN,
        reason.alias("set_aside"),
        detail.alias("detail"),
        F.when(F.col("before").isNotNull() & ~_is_insertion(), old).alias("old"),
        F.when(F.col("after").isNotNull(), new).alias("new"),
    )


def _by_table_names(plan: Plan, names: Expression) -> Expression:
    """Return the names of an image's columns as the table calls them today."""
    if not plan.found.names:
        return names
    pairs = [
        F.struct(F.concat(F.lit(f"{shape} "), F.lit(old)), F.lit(new))
        for shape, today in plan.found.names.items()
        for old, new in today.items()
    ]
    called = F.map_from_entries(F.array(*pairs))
    return F.transform(
        names, lambda name: F.coalesce(F.try_element_at(called, F.concat("shape", F.lit(" "), name)), name)
    )


def _is_insertion() -> Expression:
    return F.col("operation").isin(Operation.INSERT, Operation.SNAPSHOT)


def _old(plan: Plan, number: int, name: str) -> Expression:
    """Return a cell of the old row.

    A column that the old row of an update lacks is unchanged. A column that an old row without a new one lacks is null.
    """
    has = F.col("after").isNull() | F.array_contains("in_old_image", F.lit(name))
    return F.when(has, cell(plan, number, "before_image")).otherwise(cell(plan, number, "after_image"))


def _new(plan: Plan, number: int, name: str) -> Expression:
    """Return a cell of the new row. A column that was not captured has the value of the old row."""
    absent = F.array_contains("absent", F.lit(name))
    return F.when(absent, cell(plan, number, "before_image")).otherwise(cell(plan, number, "after_image"))


def _unknown(plan: Plan) -> Expression:
    """Return the names of the columns whose old value is unknown, joined by commas; null if all are known.

    Where no names can be given, the text says what the message lacks.
    """
    some = F.col("partial") & (F.size("absent") == 0)
    lone_after, lone_before = F.col("before").isNull(), F.col("after").isNull()
    by_shape = (
        F.when(F.col("shape") == shape_id, F.array(*(F.lit(name) for name, _ in columns)))
        for shape_id, columns in (
            (shape_id, by_table_name(shape_id, shape, plan.found.names))
            for shape_id, shape in plan.found.shapes.items()
        )
    )
    pairs_updates = plan.pairs_updates
    all_columns = F.coalesce(F.lit(None).cast("array<string>"), *by_shape)
    # Where an update arrives as two messages, each shows its whole row, and a column that it lacks is null.
    missing = F.when(lone_before, F.array().cast("array<string>") if pairs_updates else all_columns).otherwise(
        F.col("absent")
    )
    names = F.array_join(F.array_except(missing, F.col("in_old_image")), ", ")
    return (
        F.when(_is_insertion(), F.lit(None))
        .when(some, F.lit("the source logs only some of its columns"))
        .when(lone_after, F.lit(None) if pairs_updates else F.lit("the message has no old row"))
        .when(names != "", names)
    )


def once(rows: DataFrame, *more: str) -> DataFrame:
    """Join the copies of each event that share its position into one row.

    Args:
        rows: the result of ``read_rows``.
        more: columns that depend on the position alone, and stay.

    Returns:
        ``position``, ``set_aside``, ``more``, ``copies``, ``unequal`` (whether they say different things),
        ``committed_at``, ``old``, ``new``: one row for each pair of ``position`` and ``set_aside``.
    """
    event = F.max_by(F.struct("committed_at", "old", "new"), F.struct("file", "place", "row"))
    counts = [F.count("*").alias("copies"), (F.min(content()) != F.max(content())).alias("unequal")]
    counted = rows.groupBy(*more, "position", "set_aside").agg(*counts, event.alias("event"))
    return counted.select("position", "set_aside", *more, "copies", "unequal", "event.*")


def content() -> Expression:
    """Return a hash of what an event says."""
    return F.xxhash64("old", "new")


def sides(events: DataFrame) -> DataFrame:
    """Split each event into its sides: the row that it takes out and the row that it puts in.

    Args:
        events: the result of ``once``, without the events that are set aside.

    Returns:
        ``value`` (struct of ``c0 .. cn``), ``position``, ``committed_at``, ``delta`` (-1 or 1), ``stored`` (false).
    """
    both = F.array(
        F.struct(F.lit(-1).alias("delta"), F.col("old").alias("value")),
        F.struct(F.lit(1).alias("delta"), F.col("new").alias("value")),
    )
    apart = events.select("position", "committed_at", F.explode(both).alias("side"))
    present = apart.where(F.col("side.value").isNotNull())
    return present.select("side.value", "position", "committed_at", "side.delta", F.lit(False).alias("stored"))


def stored_sides(stored: DataFrame, plan: Plan) -> DataFrame:
    """Return the rows of the table as sides, with ``stored`` true: each row is the insertion at its position."""
    cells = (F.col(quoted(column.name)).alias(field(number)) for number, column in enumerate(plan.columns))
    return stored.select(
        F.struct(*cells).alias("value"),
        F.col(POSITION).alias("position"),
        F.col(COMMITTED_AT).alias("committed_at"),
        F.lit(1).alias("delta"),
        F.lit(True).alias("stored"),
    )


def marked(sides: DataFrame, stored: DataFrame) -> DataFrame:
    """Return the sides of the change log, with ``stored`` true where the table has the row: a position inserts one row.

    Args:
        sides: the sides of the change log.
        stored: the rows of the table (``stored_sides``).
    """
    same = sides.unionByName(stored).groupBy("position", "delta")
    event = F.max_by(F.struct("value", "committed_at"), "stored")
    return same.agg(event.alias("event"), F.max("stored").alias("stored")).select(
        "event.*", "position", "delta", "stored"
    )


def of_values(sides: DataFrame, wanted: DataFrame) -> DataFrame:
    """Return the sides whose value is among the wanted values."""
    return sides.join(wanted.select("value"), "value", "left_semi")


def missing(sides: DataFrame) -> DataFrame:
    """Return the sides that take out a row which was not there.

    Args:
        sides: as ``changed`` takes them: rows at some time, and all sides of their values since then.
    """
    oldest_first = Window.partitionBy("value").orderBy("position", "delta")
    so_far = oldest_first.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    counted = sides.withColumn("balance", F.sum("delta").over(so_far))
    before = oldest_first.rowsBetween(Window.unboundedPreceding, -1)
    with_lowest = counted.withColumn("lowest", F.least(F.lit(0), F.coalesce(F.min("balance").over(before), F.lit(0))))
    return with_lowest.where((F.col("delta") < 0) & (F.col("balance") < F.col("lowest"))).drop("balance", "lowest")


def changed(sides: DataFrame) -> DataFrame:
    """Fold sides, and return the rows that must be added to the table or removed from it.

    The balance of a value at a side is the sum of ``delta`` from that side to the newest one: the number of rows that
    these sides would leave if they began with none. The largest balance is the number of rows at the end, because a row
    that is not there cannot be taken out.

    Args:
        sides: sides. Of each value that occurs, either all its sides, or its rows at some time (``stored_sides``) and
            all its sides since then.

    Returns:
        ``c0 .. cn``, ``position``, ``committed_at`` of each row that comes or goes; ``deleted``: whether it goes.
    """
    value = Window.partitionBy("value")
    newest_first = value.orderBy(F.desc("position"), F.desc("delta")).rowsBetween(
        Window.unboundedPreceding, Window.currentRow
    )
    inserted = F.when(F.col("delta") > 0, 1).otherwise(0)
    counted = sides.withColumns(
        {"balance": F.sum("delta").over(newest_first), "inserted": F.sum(inserted).over(newest_first)}
    )
    left = counted.withColumn("left", F.max("balance").over(value))
    stays = F.col("inserted") <= F.col("left")
    moved = left.where((F.col("delta") > 0) & (stays != F.col("stored")))
    return moved.select("value.*", "position", "committed_at", F.col("stored").alias("deleted"))
