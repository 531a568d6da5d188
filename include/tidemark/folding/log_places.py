"""Places in the log: which part of a position the log tells, and which part the delivery of the event.

Spark expressions over the column ``position`` (``events.placed``). Changes at one place of the log are ordered by their
deliveries. Copies of one event have the same place, rest and content, and different deliveries. A position without a
delivery is a place by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import DELIVERY, DELIVERY_END

LOG_PLACE = "log place"
"""Column with the result of ``log_place``."""


def has_delivery(position: str = "position") -> Expression:
    """Return whether a position has a delivery."""
    return F.contains(position, F.lit(DELIVERY))


def log_place(position: str = "position") -> Expression:
    """Return the beginning of a position: all that the log itself tells. Texts of places sort as the positions do."""
    return F.substring_index(position, DELIVERY, 1)


def rest() -> Expression:
    """Return what distinguishes the changes at one place, such as the number of the row in its log entry."""
    return F.when(has_delivery(), F.substring_index("position", DELIVERY_END, -1)).otherwise("")


def identity() -> Expression:
    """Return a position without its delivery (``events.identity``)."""
    rest = F.substring_index("position", DELIVERY_END, -1)
    return F.when(has_delivery(), F.concat(log_place(), rest)).otherwise(F.col("position"))


def number_in_transaction() -> Expression:
    """Return the encoded number of the event in its transaction, the first part of the delivery; ``010`` for none."""
    delivery = F.substr("position", F.length(log_place()) + len(DELIVERY) + 1)
    return F.when(has_delivery(), F.substring_index(delivery, ".", 1))


def content(columns: Sequence[str | Expression]) -> Expression:
    """Return a hash that is the same for the copies of one event at one place; null without a delivery.

    Args:
        columns: what the event says.
    """
    return F.when(has_delivery(), F.xxhash64(F.substring_index("position", DELIVERY_END, -1), *columns))
