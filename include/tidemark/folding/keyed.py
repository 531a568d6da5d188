"""Fold actions to one row a key: its newest action, and the newest value of each cell."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding.actions import writes_cell
from tidemark.folding.frames import key_names, value_numbers
from tidemark.tables.plan import Plan
from tidemark.text import quoted
from tidemark.values.table_columns import field


def fold(acted: DataFrame, plan: Plan, apart: Sequence[str] = ()) -> DataFrame:
    """Fold actions to one row a key.

    Args:
        acted: ``actions``, without those set aside; ``halves.settled`` where updates come in two events.
        plan: the table's.
        apart: columns of ``acted`` that tell tables apart which are folded together.

    Returns:
        ``apart``; ``k0 .. kn``; ``position``, ``committed_at``, ``deleted``, ``moved_away`` of the key's newest action;
        ``c<n>``, the newest value of each column outside the key (a delete writes null; with soft deletes one that is
        the newest action leaves what its old image holds); with partial images also ``whole_at``, the position at which
        the row was last written whole (null: never), and ``p<n>``, the position a column was written at (null: no event
        wrote it); ``events`` and ``distinct_events``, without the deletes of old keys. Of a key with idle halves alone
        there are the counts, and no position.
    """
    keys = [*apart, *key_names(plan)]
    return _by_cell(acted, plan, keys) if plan.found.partial else _newest(acted, plan, keys)


_LONGEST_PATH = 1 << 16


def _newest(acted: DataFrame, plan: Plan, keys: Sequence[str]) -> DataFrame:
    """The newest action of each key: whole images leave nothing of the older ones."""
    cells = [field(number) for number in value_numbers(plan)]
    payload = ["position", "committed_at", "deleted", "moved_away", *cells]
    # All of a key's actions meet in one task, sorted; those of a hot key go to the disk where memory ends.
    order = Window.partitionBy(*keys).orderBy(*map(F.desc, ("position", "own file", "place", "row")))
    of_key = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    own = ~F.col("moved_away")
    steps = {
        "age": F.row_number().over(order),
        "is_copy": F.coalesce(F.lead(F.when(own, F.col("position"))).over(order) == F.col("position"), F.lit(False)),
    }
    counts = {
        "events": F.count_if(own).over(of_key),
        "distinct_events": F.count_if(own & ~F.col("is_copy")).over(of_key),
    }
    # What all paths begin with would be a quarter of the bytes that are shuffled and sorted.
    own_file = F.substring("file", plan.found.common_path + 1, _LONGEST_PATH)
    ordered = acted.withColumn("own file", own_file).withColumns(steps)
    newest = ordered.withColumns(counts).where(F.col("age") == 1)
    # As SQL: PySpark asks the JVM for each column of a `select` four times.
    return newest.selectExpr(*map(quoted, [*keys, *payload, *counts]))


def _by_cell(acted: DataFrame, plan: Plan, keys: Sequence[str]) -> DataFrame:
    """The newest action of each key, and of each of its cells."""
    acted = acted if "idle" in acted.columns else acted.withColumn("idle", F.lit(False))
    own = F.when(~F.col("moved_away"), 1).otherwise(0)
    place = F.struct("file", "place", "row")
    payload = ["committed_at", "deleted", "moved_away", "shape", "partial", "absent", "idle"]
    cells = [field(number) for number in value_numbers(plan)]
    # Copies of one event have one position. All of a key's actions meet in one task, sorted: the two groupings and
    # whatever hot key there is stream through it.
    once = (
        acted.repartition(*keys)
        .groupBy(*keys, "position")
        .agg(F.sum(own).alias("copies"), F.max_by(F.struct(*payload, *cells), place).alias("event"))
    )
    newest = [
        F.max(_acts_at()).alias("position"),
        F.max_by(F.struct("event.committed_at", "event.deleted", "event.moved_away"), _acts_at()).alias("newest"),
        F.sum("copies").alias("events"),
        F.sum(F.when(F.col("copies") > 0, 1).otherwise(0)).alias("distinct_events"),
        F.max(F.when(~F.col("event.partial") | F.col("event.deleted"), _acts_at())).alias("whole_at"),
    ]
    folded = once.groupBy(*keys).agg(*newest, *(_last_written(plan, number) for number in value_numbers(plan)))
    values = [
        column
        for number in value_numbers(plan)
        for column in (
            _shown(plan, number).alias(field(number)),
            F.col(f"w{number}.position").alias(f"p{number}"),
        )
    ]
    return folded.select(*keys, "position", "newest.*", *values, "events", "distinct_events", "whole_at")


def _acts_at() -> Expression:
    """Position of an event that does something."""
    return F.when(~F.col("event.idle"), F.col("position"))


def totals(plan: Plan) -> list[Expression]:
    """What the ledger, and the way a batch is written, ask of ``fold``: aggregates over its rows."""
    return [
        F.sum("events").alias("events"),
        F.sum("distinct_events").alias("distinct"),
        F.sum(F.when(F.col("moved_away"), 1).otherwise(0)).alias("away"),
        F.count_if("deleted").alias("deletes"),
        F.count_if(F.col("deleted") & ~F.col("moved_away") & F.lit(plan.soft)).alias("marks"),
        F.unix_micros(F.max("committed_at")).alias("committed_at"),
        F.min("position").alias("oldest"),
    ]


def _shown(plan: Plan, number: int) -> Expression:
    value = F.col(f"w{number}.value")
    if not plan.soft:
        return value
    # What a delete saw of the row is shown as long as the row is deleted, and revives with no part of it.
    return F.when(F.col("newest.deleted") | ~F.col(f"w{number}.deleted"), value)


def _last_written(plan: Plan, number: int) -> Expression:
    value = [F.col("position"), F.col(f"event.{field(number)}").alias("value")]
    if plan.soft:
        value.append(F.col("event.deleted"))
    written = writes_cell(plan, number, "event.")
    return F.max_by(F.struct(*value), F.when(written, _acts_at())).alias(f"w{number}")


def truncated_softly(folded: DataFrame, plan: Plan, truncated: str, at: int | None) -> DataFrame:
    """Let a TRUNCATE delete, at its position, every key with an event before it: what soft deletes make of it.

    Args:
        folded: ``fold``, of all events, those before the TRUNCATE too.
        plan: the table's.
        truncated: position of the newest TRUNCATE.
        at: when the source committed it, epoch µs, UTC.
    """
    over, dead = F.lit(truncated), F.col("position") < truncated
    steps = {
        "committed_at": F.when(dead, F.timestamp_micros(F.lit(at).cast("bigint"))).otherwise(F.col("committed_at")),
        "deleted": F.col("deleted") | dead,
        "position": F.when(F.col("position").isNotNull(), F.greatest("position", over)),
    }
    if plan.found.partial:
        steps["whole_at"] = F.greatest("whole_at", over)
    for number in value_numbers(plan):
        kept = F.col(f"p{number}") >= over if plan.found.partial else ~dead
        steps[field(number)] = F.when(kept, F.col(field(number)))
        if plan.found.partial:
            steps[f"p{number}"] = F.greatest(f"p{number}", over)
    return folded.withColumns(steps)
