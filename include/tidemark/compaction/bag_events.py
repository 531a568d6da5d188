"""The events of a table without a key: read, each once, and together with the events that came before them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import structlog
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.candidate import Prepared
from tidemark.events import Operation
from tidemark.folding import bag_copies, bags, log_places
from tidemark.folding.bag_copies import IN_QUESTION, IS_COPY, IS_GUESS
from tidemark.folding.log_places import LOG_PLACE
from tidemark.positions import DELIVERY
from tidemark.spark.session import checkpointed, named
from tidemark.spark.tuning import sent
from tidemark.tables.plan import Plan

log = structlog.get_logger(__name__)


class Reach(NamedTuple):
    """What new events are compared with."""

    first: str
    """The lowest of their positions."""
    high: str
    """The highest position seen before."""
    truncated: str | None
    """The position of the newest TRUNCATE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """New events that met the events before them."""

    unseen: DataFrame | None = None
    """New events that are no copies. None: nothing was met."""
    touched: DataFrame | None = None
    """Events with the values that have to be folded again."""
    distinct: int = 0
    """How many events are unseen."""
    duplicates: int = 0
    """How many new events are copies of others, earlier or new."""
    insertions: int = 0
    """How many unseen events put a row in."""
    removals: int = 0
    """How many unseen events take a row out."""
    late: int = 0
    """How many events may change what earlier events led to."""


NOTHING_MET = Met()


def place_of(position: str) -> str:
    """Return the place in the log of a position (``log_places.log_place``)."""
    return position.partition(DELIVERY)[0]


def rows(changes: DataFrame, plan: Plan, truncated: str | None) -> DataFrame:
    """Return the rows that row changes put in and take out (``bags.read_rows``)."""
    return bags.read_rows(changes.where(F.col("operation") != Operation.TRUNCATE), plan, truncated)


def once(read: DataFrame, plan: Plan) -> DataFrame:
    """Return each event once, kept, with the columns of ``bag_copies.marked``."""
    if plan.has_deliveries:
        return checkpointed(bag_copies.marked(bags.once(bag_copies.by_log_place(read), LOG_PLACE)))
    events = bags.once(read).withColumn(LOG_PLACE, F.col("position"))
    return checkpointed(events.withColumns({name: F.lit(False) for name in (IS_COPY, IN_QUESTION, IS_GUESS)}))


def with_stored(events: DataFrame) -> DataFrame:
    """Return events, kept, where copies of events whose positions have no delivery are marked too."""
    return checkpointed(bag_copies.with_stored(events))


def settled(events: DataFrame, table: str) -> DataFrame:
    """Settle the events in question, and return all events, kept; a guess is logged."""
    found = checkpointed(bag_copies.settled(events))
    if guesses := found.where(IS_GUESS).count():
        hint = "set provide.transaction.metadata in the connector, which numbers them, or give the table a key"
        log.warning("taken_for_sent_again", object=table, events=guesses, known_by="equal contents alone", hint=hint)
    return found


def copies_beyond_the_first() -> Expression:
    """Return how many copies a row of ``once`` stands for, without the one that counts as the event."""
    return F.when(F.col(IS_COPY), F.col("copies")).otherwise(F.col("copies") - 1)


def judged(changes: DataFrame, plan: Plan, truncated: str | None) -> DataFrame:
    """Return the sound events among row changes, with the copies marked."""
    events = once(rows(changes, plan, truncated), plan).where(F.col("set_aside").isNull())
    if plan.has_deliveries and not events.where(IN_QUESTION).isEmpty():
        events = settled(events, plan.found.object)
    return with_stored(events) if plan.has_deliveries else events


def meet(prepared: Prepared, sound: DataFrame, reach: Reach, views: ExitStack) -> Met:
    """Look new events up in the change log, where their places are not above what was seen before.

    An earlier event that went to quarantine took no part: one that is sent again at its place is new.

    Args:
        prepared: the table.
        sound: its new events (``once``), without those that are set aside.
        reach: their lowest position, and what they are compared with.
        views: keeps the names that frames are read by until the table is built.
    """
    seen = prepared.log.taken_between(place_of(reach.first), reach.high)
    if not prepared.plan.has_deliveries:
        before = seen.rows.select("position", F.lit(True).alias("was_seen")).distinct()
        matched = sound.join(before, "position", "left").withColumn("is_new", F.col("was_seen").isNull())
        is_late = F.col("is_new") & (F.col("position") <= reach.high)
        repeated = F.when(F.col("is_new"), F.col("copies") - 1).otherwise(F.col("copies"))
        unseen = named(matched.where("is_new"), views)
        return Met(unseen=unseen, touched=unseen, **_counted(matched, F.col("is_new"), is_late, repeated))
    columns = ["position", "set_aside", LOG_PLACE, "copies", "committed_at", "old", "new"]
    late = sound.where(F.col(LOG_PLACE) <= reach.high)
    places = late.select(LOG_PLACE).union(late.select(log_places.identity())).distinct()
    near = seen.rows.withColumn(LOG_PLACE, log_places.log_place()).join(sent(places), LOG_PLACE, "left_semi")
    read = bag_copies.by_log_place(rows(near, seen.plan, reach.truncated))
    earlier = checkpointed(bags.once(read, LOG_PLACE).where(F.col("set_aside").isNull()))
    again = sound.join(earlier.select("position"), "position", "left_semi").agg(F.sum("copies")).first()
    new = sound.join(earlier.select("position"), "position", "left_anti").select(*columns)
    frames = [new.withColumn("is_new", F.lit(True)), earlier.select(*columns).withColumn("is_new", F.lit(False))]
    together = reduce(DataFrame.unionByName, frames).repartition(LOG_PLACE)
    events = checkpointed(bag_copies.marked(together))
    met = _met(events, reach.high, seen.plan.found.object)
    return replace(met, duplicates=met.duplicates + int((again[0] if again else None) or 0))


def _met(events: DataFrame, high: str, table: str) -> Met:
    """Return what became of new events among earlier ones."""
    if not events.where(IN_QUESTION).isEmpty():
        events = settled(events, table)
    events = with_stored(events)
    is_late = F.col(LOG_PLACE) <= high
    unseen = F.col("is_new") & ~F.col(IS_COPY)
    late = is_late & (unseen | (F.col("is_new") & F.col(IN_QUESTION)))
    repeated = F.when(F.col("is_new"), copies_beyond_the_first())
    touched = events.where(F.col("is_new") | is_late)
    return Met(unseen=events.where(unseen), touched=touched, **_counted(events, unseen, late, repeated))


def _counted(events: DataFrame, unseen: Expression, late: Expression, repeated: Expression) -> dict[str, int]:
    """Return the counts of ``Met`` by name; ``repeated``: how many copies an event stands for that count as none."""
    wanted = {
        "distinct": F.count_if(unseen),
        "late": F.count_if(late),
        "duplicates": F.sum(repeated),
        "insertions": F.count_if(unseen & F.col("new").isNotNull()),
        "removals": F.count_if(unseen & F.col("old").isNotNull()),
    }
    row = events.agg(*(count.alias(name) for name, count in wanted.items())).first()
    return {name: int((row[name] if row else None) or 0) for name in wanted}
