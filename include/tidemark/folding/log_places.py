"""Places in the log: which part of a position comes from the log, and which part from the delivery of the event.

Spark expressions over the column ``position`` (``positions.placed``). Changes at one place of the log are ordered by
their deliveries. Copies of one event have the same place, rest and content, and different deliveries. A position
without a delivery is a place by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.positions import DELIVERY, DELIVERY_END, encode_position, loaded

_LOADED = f"{encode_position(loaded())}."
"""Beginning of the position of a row of a load that has no place in the log; its place in the dump follows."""

_FILES = f"{encode_position((0,))}."
"""Beginning of a place in a dump of files; a place of Kafka records begins with another number, and the partition."""

LOG_PLACE = "log place"
"""Column with the result of ``log_place``."""


def has_delivery(position: str = "position") -> Expression:
    """Return whether a position has a delivery."""
    return F.contains(position, F.lit(DELIVERY))


def log_place(position: str = "position") -> Expression:
    """Return the beginning of a position: the part from the log itself. Texts of places sort as the positions do."""
    return F.substring_index(position, DELIVERY, 1)


def rest() -> Expression:
    """Return what distinguishes the changes at one place, such as the number of the row in its log entry."""
    return F.when(has_delivery(), F.substring_index("position", DELIVERY_END, -1)).otherwise("")


def identity() -> Expression:
    """Return a position without its delivery (``positions.identity``)."""
    rest = F.substring_index("position", DELIVERY_END, -1)
    return F.when(has_delivery(), F.concat(log_place(), rest)).otherwise(F.col("position"))


def log_order() -> Expression:
    """Return the order of changes by the log and the transaction: a position without its place in the dump.

    For a position without a delivery, this is the whole position. Positions of one source compare by it part by part.
    """
    number = F.coalesce(number_in_transaction(), F.lit(""))
    return F.struct(log_place().alias("log"), number.alias("number"), rest().alias("rest"))


def number_in_transaction() -> Expression:
    """Return the encoded number of the event in its transaction, the first part of the delivery; ``010`` for none."""
    delivery = F.substr("position", F.length(log_place()) + len(DELIVERY) + 1)
    return F.when(has_delivery(), F.substring_index(delivery, ".", 1))


def is_read_after(position: str) -> Expression:
    """Return whether an event is a row of a load without a place in the log, delivered after the event at a position.

    Such rows of an incremental load rank below all changes, and may have been read after any of them. Deliveries show
    which came first where both are Kafka records of one partition, or both lines of files.
    """
    row = F.substr("position", F.lit(len(_LOADED) + 1))
    behind = F.substr(position, F.length(log_place(position)) + len(DELIVERY) + 1)
    end = F.length(F.substring_index(behind, DELIVERY_END, -1)) + len(DELIVERY_END)  # a file's name begins like an end
    delivery = F.left(behind, F.length(behind) - end)
    order = F.substr(delivery, F.length(F.substring_index(delivery, ".", 1)) + 2)
    one_partition = F.substring_index(row, ".", 2) == F.substring_index(order, ".", 2)
    files = F.startswith(row, F.lit(_FILES)) & F.startswith(order, F.lit(_FILES))
    comparable = has_delivery(position) & (one_partition | files)
    return F.startswith("position", F.lit(_LOADED)) & comparable & (row > order)


def content(columns: Sequence[str | Expression]) -> Expression:
    """Return a hash that is the same for the copies of one event at one place; null without a delivery.

    Args:
        columns: what the event says.
    """
    return F.when(has_delivery(), F.xxhash64(F.substring_index("position", DELIVERY_END, -1), *columns))
