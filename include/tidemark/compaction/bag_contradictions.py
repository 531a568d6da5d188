"""New events of a table without a key that contradict its rows or each other; the entries show no value of a row."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import contradictions
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Contradiction
from tidemark.events import Operation
from tidemark.folding import bags, frames, log_places
from tidemark.folding.captured import Captured
from tidemark.ledger.contradiction_rows import INCOMPLETE_ROWS, MISSING_ROWS
from tidemark.sources.choices import Consequence
from tidemark.spark.session import checkpointed
from tidemark.values.table_columns import any_of


def missing_rows(prepared: Prepared, unseen: DataFrame, rows: DataFrame, start: int) -> list[Contradiction]:
    """Return the events that take out a row which is not there, at most one entry.

    Args:
        prepared: the table, whose new events are all later than those before.
        unseen: its new events (``bag_events.once``).
        rows: ``folding.bags.read_rows`` of its new events, with their origins.
        start: the snapshot that they were merged into.
    """
    if prepared.run.source.invariants.missing_rows is Consequence.OFF:
        return []
    sides = bags.sides(unseen)
    before = bags.stored_sides(prepared.stored_at(start), prepared.plan)
    stored = bags.of_values(before, sides.where(F.col("delta") < 0))
    known = contradictions.known(prepared)
    is_certain = F.lit(known.emptied) | (F.unix_micros("committed_at") > F.lit(known.loaded).cast("bigint"))
    if prepared.plan.has_deliveries:  # a copy of an event without one takes out a row of its own
        is_certain &= log_places.has_delivery()
    missing = checkpointed(bags.missing(sides.unionByName(stored)).where(is_certain).select("position"))
    count = missing.count()
    if not count:
        return []
    return [contradictions.entry(rows.join(missing, "position", "left_semi"), MISSING_ROWS, count, prepared)]


def incomplete(prepared: Prepared, rows: DataFrame) -> list[Contradiction]:
    """Return the INSERTs that lack columns of the table, at most one entry.

    Args:
        prepared: the table.
        rows: ``folding.bags.read_rows`` of its new events.
    """
    plan = prepared.plan
    if not plan.found.partial or prepared.run.source.invariants.incomplete_rows is Consequence.OFF:
        return []
    captured = Captured(plan)
    lacks = any_of([~captured.writes(number) for number in frames.value_numbers(plan)])
    inserted = prepared.log.changes().where(F.col("operation") == Operation.INSERT).withColumn("deleted", F.lit(False))
    sound = rows.where(F.col("set_aside").isNull()).select("position")
    lacking = inserted.where(lacks).join(sound, "position", "left_semi").select("position", "file", "place")
    lacking = checkpointed(lacking)
    count = lacking.count()
    return [contradictions.entry(lacking, INCOMPLETE_ROWS, count, prepared)] if count else []


def different_copies(prepared: Prepared, rows: DataFrame) -> list[Contradiction]:
    """Return the copies of events that say something else than the event, at most one entry.

    Args:
        prepared: the table.
        rows: ``folding.bags.read_rows`` of its new events.
    """
    sound = rows.where(F.col("set_aside").isNull()).withColumn("content", bags.content())
    return contradictions.different_copies(prepared, sound, ["position"])
