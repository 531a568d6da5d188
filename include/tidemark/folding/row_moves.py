"""Rows that move to another key, and whose new image lacks large values that did not change.

Pure ``DataFrame -> DataFrame`` functions. Debezium writes a change of the key as a DELETE and an INSERT at one place of
the source's log. An INSERT with placeholders is therefore the second half of such a pair: an inserted row is always
logged whole. The values that it lacks are the values that the moved row had at its delete. Such a value is never
null, because only large values are replaced. So what is found is null exactly where it is not known.

Only the last life of the row under its old key counts: what was written there since the key's row last went, or since
another row came to the key.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Operation
from tidemark.folding import log_places
from tidemark.folding.captured import Captured
from tidemark.folding.frames import key_names, value_numbers
from tidemark.folding.truncates import Truncates
from tidemark.tables.plan import Plan
from tidemark.tables.reasons import PARTIAL_KEY_CHANGE
from tidemark.values.image_reader import field
from tidemark.values.masking import Mask
from tidemark.values.table_columns import any_of

LACKS, SPOT = "lacks", "spot"
"""Columns of change events: whether it is an INSERT with placeholders; the place of the log that a pair shares."""

_UNKNOWN = "the row came from another key, or from none that is known, and these columns were not captured: "


class Moves(NamedTuple):
    """The INSERTs with placeholders that have a DELETE at their place."""

    rows: DataFrame
    """``lookup`` (identity of the INSERT), ``came`` (its position), ``came_in`` (its first batch), ``k0 .. kn`` (its
    key), ``o0 .. on`` (key of the DELETE), ``until`` (position of the DELETE). Copies of an event are one event."""


def marked(changes: DataFrame) -> DataFrame:
    """Return change events with ``LACKS`` and ``SPOT``."""
    held = F.coalesce(F.json_object_keys("after"), F.array().cast("array<string>"))
    named = F.exists(F.coalesce("absent", F.array().cast("array<string>")), lambda name: F.array_contains(held, name))
    lacks = (F.col("operation") == Operation.INSERT) & F.col("partial") & named
    # The last two parts are the number in the transaction, or in the event, and which half it is.
    identity = log_places.identity()
    place = F.left(identity, F.length(identity) - F.length(F.substring_index(identity, ".", -2)))
    spot = F.concat_ws(" ", place, "object", "transaction_id")
    return changes.withColumns({LACKS: F.coalesce(lacks, F.lit(False)), SPOT: spot})


def near(changes: DataFrame) -> DataFrame:
    """Return the events at places where there is an INSERT with placeholders; of ``marked``."""
    spots = changes.where(LACKS).select(SPOT).distinct()
    pairs = changes.where(F.col(LACKS) | (F.col("operation") == Operation.DELETE))
    return pairs.join(F.broadcast(spots), SPOT, "left_semi")


def pairs(acted: DataFrame, plan: Plan) -> Moves:
    """Return the pairs; a place with more than one DELETE or INSERT has none.

    The order of a pair is the order in the log, not the order of delivery: its two records have different keys, so they
    may be in different partitions, files and runs.

    Args:
        acted: ``actions.actions`` of ``near``, of the whole change log.
        plan: the table's.
    """
    keys = key_names(plan)
    event = F.struct("position", *keys, log_places.log_order().alias("order"))
    one = F.struct(log_places.identity(), *keys)
    grouped = acted.where(F.col("set_aside").isNull()).groupBy(SPOT)
    counted = grouped.agg(
        F.count_distinct(F.when(F.col("deleted"), one)).alias("deletes"),
        F.count_distinct(F.when(~F.col("deleted"), one)).alias("writes"),
        F.min(F.when(F.col("deleted"), event)).alias("old"),
        F.max(F.when(F.col(LACKS), event)).alias("new"),
        F.max(F.when(F.col(LACKS), _lookup())).alias("lookup"),
        F.min(F.when(F.col(LACKS), F.col("batch"))).alias("came_in"),
    )
    alone = (F.col("deletes") == 1) & (F.col("writes") == 1) & (F.col("old.order") < F.col("new.order"))
    olds = [F.col(f"old.{key}").alias(old) for key, old in zip(keys, _old_names(plan), strict=True)]
    rows = counted.where(alone).select("lookup", "came_in", "new.*", *olds, F.col("old.position").alias("until"))
    return Moves(rows.drop("order").withColumnRenamed("position", "came"))


def _lookup() -> Expression:
    """Return what identifies an INSERT among the INSERTs of all logs that are read together."""
    return F.concat_ws(" ", log_places.identity(), SPOT)


def _old_names(plan: Plan) -> list[str]:
    return [f"o{place}" for place in range(len(plan.key))]


def lookups(acted: DataFrame, found: Moves, plan: Plan) -> DataFrame:
    """Return where the values that INSERTs lack are looked up; an INSERT without its DELETE is not among them.

    Returns:
        ``lookup`` (identity of the INSERT), ``k0 .. kn`` and ``until``: the row of this key as the events before this
        position left it.
    """
    keys = key_names(plan)
    lacking = acted.where(F.col(LACKS) & F.col("set_aside").isNull()).select(_lookup().alias("lookup")).distinct()
    olds = [F.col(old).alias(key) for key, old in zip(keys, _old_names(plan), strict=True)]
    return found.rows.select("lookup", *olds, _just_after("until").alias("until")).join(lacking, "lookup", "left_semi")


def _just_after(position: str) -> Expression:
    """Return a text above a position, and below all positions that are above it."""
    return F.concat(F.col(position), F.lit(" "))


def behind(missing: DataFrame, found: Moves, plan: Plan) -> DataFrame:
    """Return where to look further: the key that a row moved from, which moved again.

    Args:
        missing: ``lookups`` for which values are missing still, with ``begun`` (``events_of``).
        found: all pairs.
        plan: the table's.
    """
    keys = key_names(plan)
    earlier = found.rows.withColumnRenamed("until", "gone").drop("lookup")
    joined = missing.join(F.broadcast(earlier), keys).where(F.col("came") < F.col("until"))
    joined = joined.where(F.col("begun").isNull() | (F.col("came") >= F.col("begun")))
    last = F.max_by(F.struct("gone", *_old_names(plan)), "came").alias("last")
    newest = joined.groupBy("lookup").agg(last)
    olds = [F.col(f"last.{old}").alias(key) for key, old in zip(keys, _old_names(plan), strict=True)]
    return newest.select("lookup", *olds, _just_after("last.gone").alias("until"))


def events_of(acted: DataFrame, wanted: DataFrame, plan: Plan, truncates: Truncates) -> DataFrame:
    """Return the actions that the rows which are looked up consist of: the actions of each row's last life.

    Args:
        acted: ``actions.actions`` of the whole change log, with soft deletes.
        wanted: ``lookups`` or ``behind``.
        plan: the table's.
        truncates: all of the whole change log.

    Returns:
        The actions with their ``lookup`` and with ``begun``: where the last life of the row began, because the row
        before it went, or an INSERT with placeholders brought another one; null where no event shows it.
    """
    keys = key_names(plan)
    sound = acted.where(F.col("set_aside").isNull())
    joined = sound.join(F.broadcast(wanted.select("lookup", "until", *keys)), keys)
    events = joined.where((F.col("position") < F.col("until")) & ~log_places.is_read_after("until"))
    is_last = _just_after("position") == F.col("until")
    begins = F.col(LACKS) | (F.col("deleted") & ~is_last)
    begun = F.max(F.when(begins, F.col("position"))).over(Window.partitionBy("lookup"))
    if truncates:
        over = F.filter(truncates.positions(plan), lambda position: position < F.col("until"))
        begun = F.greatest(begun, F.array_max(over))
    with_begun = events.withColumn("begun", begun)
    first = (F.col("position") == F.col("begun")) & F.col(LACKS)
    own = F.col("begun").isNull() | (F.col("position") > F.col("begun")) | first | log_places.is_read_after("begun")
    return with_begun.where(own).drop("until")


def late(acted: DataFrame, found: Moves, plan: Plan, after: int, taken: Expression) -> DataFrame:
    """Return new events of rows before they moved, where the INSERT came in an earlier batch, and was filled or not.

    Args:
        acted: ``actions.actions`` of the whole change log.
        found: all pairs.
        plan: the table's.
        after: the batch that the table stands at.
        taken: whether the table has taken in an event of ``acted``. Of copies of an event, one is enough.
    """
    keys = key_names(plan)
    olds = [F.col(old).alias(key) for key, old in zip(keys, _old_names(plan), strict=True)]
    earlier = found.rows.where(F.col("came_in") <= after).select(*olds, "until")
    sound = acted.where(F.col("set_aside").isNull()).withColumn("taken", taken)
    before = sound.join(F.broadcast(earlier), keys).where(F.col("position") <= F.col("until"))
    return before.groupBy(*keys, "position").agg(F.max("taken").alias("taken")).where(~F.col("taken"))


def moved_after(found: Moves, position: str, after: int) -> DataFrame:
    """Return the pairs behind a position whose INSERT came in a batch up to ``after``."""
    return found.rows.where((F.col("came_in") <= after) & (F.col("until") > position))


def filled(acted: DataFrame, found: DataFrame, plan: Plan) -> DataFrame:
    """Return actions whose INSERTs with placeholders have the values that were found; others are set aside.

    The row of the INSERT's own key, if there is one, is another row: none of the values is taken from it.

    Args:
        acted: ``actions.actions`` of ``marked`` events.
        found: ``lookup`` (identity of the INSERT) and ``f<n>``: values; of INSERTs that have their DELETE.
        plan: the table's.
    """
    joined = acted.join(F.broadcast(found), _lookup() == F.col("lookup"), "left")
    numbers = value_numbers(plan)
    captured = Captured(plan)
    lacks = {n: F.col(LACKS) & ~F.col("deleted") & captured.lacks(n) for n in numbers}
    unknown = {n: lacks[n] & F.col(f"f{n}").isNull() for n in _known_by_value(plan)}
    torn = F.col("set_aside").isNull() & any_of([F.lit(False), *unknown.values()])
    names = F.array_compact(F.array(*(F.when(no, F.lit(plan.columns[n].name)) for n, no in unknown.items())))
    cells: dict[str, Expression] = {
        field(n): F.when(lacks[n], F.col(f"f{n}")).otherwise(F.col(field(n))) for n in numbers
    }
    cells["set_aside"] = F.when(torn, PARTIAL_KEY_CHANGE).otherwise(F.col("set_aside"))
    cells["detail"] = F.when(torn, F.concat(F.lit(_UNKNOWN), F.array_join(names, ", "))).otherwise(F.col("detail"))
    cells["partial"] = F.col("partial") & ~F.col(LACKS)
    return joined.withColumns(cells).drop(*found.columns)


def _known_by_value(plan: Plan) -> list[int]:
    """Return the numbers of the columns in which null means unknown: not so where a mask makes every value null."""
    return [n for n in value_numbers(plan) if plan.masks.kinds.get(plan.columns[n].name) is not Mask.NULL]


def is_complete(plan: Plan) -> Expression:
    """Return whether every value was found, of rows with ``f<n>``."""
    return reduce(and_, [F.col(f"f{n}").isNotNull() for n in _known_by_value(plan)], F.lit(True))
