"""Copies among the events of a table without a key, where copies of one event have different positions.

Pure ``DataFrame -> DataFrame`` functions. Events at one place of the log that have the same rest of the position and
the same rows are copies of one event, unless the place proves to be no identity: the log has different events there
that nothing but their delivery distinguishes. There, ``folding.redelivery`` decides.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding import log_places, redelivery
from tidemark.folding.log_places import LOG_PLACE
from tidemark.positions import encode_position

IS_COPY, IN_QUESTION, IS_GUESS = "is_copy", "in_question", "is_guess"
"""Columns of events: whether the event is a copy; whether only the order of the events at its place shows this; whether
it is taken for a copy because of the contents alone."""

_JUDGED = "position string, judged_copy boolean, judged_guess boolean"


def by_log_place(rows: DataFrame) -> DataFrame:
    """Return events with their place in the log; the events at one place go to one task."""
    return rows.withColumn(LOG_PLACE, log_places.log_place()).repartition(LOG_PLACE)


def marked(events: DataFrame) -> DataFrame:
    """Mark the copies among events.

    Args:
        events: the result of ``bags.once`` with ``LOG_PLACE`` (``by_log_place``).

    Returns:
        The same rows with ``IS_COPY``, ``IN_QUESTION`` and ``IS_GUESS``. Events that are set aside are no copies. Where
        an event is in question, the first is not settled: see ``settled``.
    """
    place = [LOG_PLACE, "set_aside"]
    same = [*place, "rest"]
    copies = Window.partitionBy(*same, "content").orderBy("position")
    of_identity, of_place = Window.partitionBy(*same), Window.partitionBy(*place)
    compared = events.withColumns(
        {
            "rest": log_places.rest(),
            "number": log_places.number_in_transaction(),
            "content": log_places.content(["old", "new"]),
        }
    )
    compared = compared.withColumns(
        {
            "copy": F.row_number().over(copies) > 1,
            # Without a rest, equal changes may be the rows of one COPY; and numbers tell equal changes apart.
            "differs": (F.col("rest") == "")
            | (F.min("content").over(of_identity) != F.max("content").over(of_identity))
            | (
                (F.min("number").over(of_identity) != F.max("number").over(of_identity))
                & (F.min("number").over(of_identity) != encode_position((0,)))
            ),
        }
    )
    sound = F.col("set_aside").isNull() & F.col("content").isNotNull()
    place_in_question = F.max(F.col("copy")).over(of_place) & F.max("differs").over(of_place)
    return compared.withColumns(
        {
            IS_COPY: sound & F.col("copy"),
            IN_QUESTION: F.coalesce(sound & place_in_question, F.lit(False)),
            IS_GUESS: F.lit(False),
        }
    ).drop("rest", "number", "copy", "differs")


def settled(events: DataFrame) -> DataFrame:
    """Settle the events in question, by the order of the events at each place.

    Args:
        events: the result of ``marked``, kept: it is read twice.
    """
    in_question = events.where(IN_QUESTION).select(LOG_PLACE, "position", "content")
    in_question = in_question.repartition(LOG_PLACE).sortWithinPartitions(LOG_PLACE)
    joined = events.join(in_question.mapInArrow(redelivery.judged, _JUDGED), "position", "left")
    verdicts = {IS_COPY: F.coalesce("judged_copy", IS_COPY), IS_GUESS: F.coalesce("judged_guess", IS_GUESS)}
    return joined.withColumns(verdicts).drop("judged_copy", "judged_guess")


def with_stored(events: DataFrame) -> DataFrame:
    """Mark the copies of events that were stored before positions had a delivery: their position was the identity.

    Args:
        events: the result of ``marked`` or ``settled``, kept: it is read twice.
    """
    sound = events.where(F.col("set_aside").isNull() & ~log_places.has_delivery())
    stored = sound.select(F.col("position").alias("identity"), F.lit(True).alias("is_stored"))
    identified = events.withColumn("identity", log_places.identity()).join(stored, "identity", "left")
    sound_copy = F.coalesce("is_stored", F.lit(False)) & log_places.has_delivery() & F.col("set_aside").isNull()
    return identified.withColumn(IS_COPY, F.col(IS_COPY) | sound_copy).drop("identity", "is_stored")
