"""Softly deleted rows with late events: they are folded again from the change log.

What a deleted row shows is the row as it was just before its delete. The table does not keep what that row was made of.
So an event that is older than the delete, and that comes later, is placed among all events of its key.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import MapType, StringType

from tidemark.compaction import moved_rows, truncation
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.event_log import Events
from tidemark.events import Operation
from tidemark.folding import frames, keyed
from tidemark.lake.statistics import greatest
from tidemark.spark.session import checkpointed
from tidemark.spark.tuning import sent
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import COMMITTED_AT, DELETED, POSITION
from tidemark.text import quoted
from tidemark.values.image_reader import field

_VERSIONS = MapType(StringType(), StringType())


def late_keys(prepared: Prepared, folded: DataFrame, oldest: str | None) -> DataFrame | None:
    """Return the keys of deleted rows that have an event older than what the table holds.

    Args:
        prepared: a table with soft deletes; what TRUNCATEs empty is marked.
        folded: ``folding.keyed.fold`` of its new events.
        oldest: no event is older.

    Returns:
        ``k0 .. kn``; ``moved_away``: whether the newest action of the key is counted as an event of another key, or
        the key has none. None if there are no such keys.
    """
    keys = frames.key_names(prepared.plan)
    stored = prepared.stored().select(*frames.key_columns(prepared.plan), POSITION, DELETED)
    found = []
    newest = greatest(prepared.current(), POSITION, prepared.tip())
    if oldest is not None and (newest is None or newest >= oldest):
        is_late = F.col("first") < F.col(POSITION)
        is_newer = F.col("position") > F.col(POSITION)
        gone = F.when(is_newer, F.col("deleted")).otherwise(F.col(DELETED))
        mine = folded.join(stored, keys).where(is_late & gone)
        found.append(mine.select(*keys, "moved_away"))
    if (truncated := _first_new_truncate(prepared)) is not None and (newest is None or newest > truncated):
        # Rows that were written in parts, and deleted, since a TRUNCATE that comes late: it emptied some of the parts.
        beyond = stored.where(F.col(DELETED) & (F.col(POSITION) > truncated))
        beyond = beyond.join(folded.select(*keys, "moved_away"), keys, "left")
        found.append(beyond.select(*keys, F.coalesce("moved_away", F.lit(True)).alias("moved_away")))
    if not found:
        return None
    late = reduce(DataFrame.unionByName, found).groupBy(*keys).agg(F.every("moved_away").alias("moved_away"))
    late = checkpointed(late)
    return None if late.isEmpty() else late


def _first_new_truncate(prepared: Prepared) -> str | None:
    """Return the position of the first TRUNCATE that is new to a table with partial images."""
    found = prepared.plan.found
    if not (found.truncates or truncation.new_emptyings(found)) or not prepared.log.whole().plan.found.partial:
        return None
    return truncation.first_new(prepared.log)


def rows(prepared: Prepared, late: DataFrame) -> DataFrame:
    """Return the rows of some keys as all events of the change log make them.

    Args:
        prepared: a table with soft deletes.
        late: ``late_keys``.

    Returns:
        As ``folding.cells.combine``: a row changes where the table has it otherwise; each was written whole.
    """
    plan, changes = prepared.log.whole()
    # The state keeps the newest of each cut, and a row may have been written between two of them.
    truncates = truncation.of_whole_log(plan.found, changes)
    changes = changes.where(F.col("operation") != Operation.TRUNCATE)
    sound = moved_rows.acted(prepared.log, Events(plan, changes), None).where(F.col("set_aside").isNull())
    keys = frames.key_names(plan)
    folded = keyed.fold(sound.join(sent(late.select(*keys)), keys, "left_semi"), plan, truncates=truncates)
    if truncates:
        folded = keyed.truncated_softly(folded, plan, truncates)
    folded = folded.where(F.col("position").isNotNull()).drop("moved_away").join(late, keys)
    return checkpointed(_compared(folded, prepared.stored(), plan))


def _compared(folded: DataFrame, stored: DataFrame, plan: Plan) -> DataFrame:
    values = {plan.columns[number].name: field(number) for number in frames.value_numbers(plan)}
    held = {**values, POSITION: "position", COMMITTED_AT: "committed_at", DELETED: "deleted"}
    names = {name: f"t{place}" for place, name in enumerate(held)}
    stored = stored.select(
        *frames.key_columns(plan), F.lit(True).alias("exists"), *(F.col(quoted(n)).alias(t) for n, t in names.items())
    )
    keys = frames.key_names(plan)
    # NaN is NaN, and null is null: a row that stays as it is counts as no change.
    differs = reduce(or_, [~F.col(own).eqNullSafe(F.col(names[name])) for name, own in held.items()])
    changes = F.col("exists").isNull() | differs
    return folded.join(stored, keys, "left").select(
        *keys,
        "position",
        "committed_at",
        "deleted",
        "moved_away",
        *values.values(),
        F.lit(None).cast(_VERSIONS).alias("versions"),
        changes.alias("changes"),
        changes.alias("writes"),
        F.lit(False).alias("lacks"),
    )
