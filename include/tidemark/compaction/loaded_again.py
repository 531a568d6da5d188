"""Loaded rows of keys that were loaded before: the sign of a second load, where messages do not mark loads.

The rows of all loads rank below all changes there, so a second load leaves rows that it does not bring. One load reads
a key once. A key that was read at two times, or at no time and with two contents, was loaded twice, or is no key. It is
looked for only where the ledger and the fold do not rule it out.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import contradictions
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Contradiction
from tidemark.folding import frames
from tidemark.folding.keyed import Totals
from tidemark.folding.row_needs import is_placed
from tidemark.lake.filters import among
from tidemark.ledger.contradiction_rows import LOADED_AGAIN
from tidemark.sources.choices import Consequence
from tidemark.spark.session import checkpointed
from tidemark.tables.schemas import COMMITTED_AT, POSITION
from tidemark.text import quoted
from tidemark.values.image_reader import field
from tidemark.values.types import spark_type


def found(prepared: Prepared, acted: DataFrame, totals: Totals, start: int) -> list[Contradiction]:
    """Return the keys with new loaded rows that were loaded before, at most one entry.

    Args:
        prepared: a table with a key.
        acted: ``folding.actions.actions`` of its new events.
        totals: of their fold: whether any key has two events.
        start: the snapshot that they were merged into.
    """
    if not prepared.plan.found.loads or prepared.run.source.invariants.loaded_again is Consequence.OFF:
        return []
    if prepared.run.source.traits.marks_loads:
        return []
    run = prepared.run
    spans = run.ledger.spans(among("object", prepared.plan.found.objects))
    came_before = any(row.unplaced and row.batch <= prepared.plan.found.published_batch for row in spans)
    if not (came_before or totals.overtaken or totals.duplicates):
        return []
    keys = [*frames.key_names(prepared.plan), "load"]
    content = frames.content(prepared.plan).alias("content")
    loaded = acted.where(F.col("set_aside").isNull() & ~F.col("moved_away") & ~is_placed("position"))
    loaded = loaded.withColumn("load", _load("position")).select(
        *keys, "position", "committed_at", content, "batch", "file", "place"
    )
    times = loaded.select(*keys, "committed_at", "content", "batch")
    if came_before:
        times = times.unionByName(_stored(prepared, start).join(loaded.select(*keys).distinct(), keys, "left_semi"))
    counts = {
        "times": F.count_distinct("committed_at"),
        "contents": F.count_distinct("content"),
        "newest": F.max("batch"),
    }
    read = times.groupBy(*keys).agg(*(count.alias(name) for name, count in counts.items()))
    twice = read.where((F.col("times") > 1) | ((F.col("times") == 0) & (F.col("contents") > 1)))
    again = checkpointed(twice.where(F.col("newest") > run.standing.batch).select(*keys))
    count = again.count()
    rows = loaded.where(F.col("batch") > run.standing.batch).join(again, keys, "left_semi")
    return [contradictions.entry(rows, LOADED_AGAIN, count, prepared)] if count else []


def _load(position: str) -> Expression:
    """Return the first part of a position: rows of one load have one, and each of ``reloads`` has another one."""
    return F.substring_index(position, ".", 1)


def _stored(prepared: Prepared, start: int) -> DataFrame:
    """Return the rows of the table that a load brought and that no change has met."""
    plan = prepared.plan
    rows = prepared.stored_at(start).where(~is_placed(POSITION))
    cells = {
        field(number): F.col(quoted(plan.columns[number].name)).cast(spark_type(plan.columns[number].type))
        for number in frames.value_numbers(plan)
    }
    loaded = rows.select(
        *frames.key_columns(plan), _load(POSITION).alias("load"), F.col(COMMITTED_AT).alias("committed_at"),
        F.lit(False).alias("deleted"), F.lit(0).alias("batch"), *(cell.alias(name) for name, cell in cells.items()),
    )  # fmt: skip
    return loaded.select(
        *frames.key_names(plan), "load", "committed_at", frames.content(plan).alias("content"), "batch"
    )
