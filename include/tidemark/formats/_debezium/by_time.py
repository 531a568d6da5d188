"""Positions of changes that have no sequence in a log: their time, then their place in the dump.

Two kinds of position in one table cannot be compared: a time is above nearly all sequences, and a missing time is below
all. So a change that lacks what other changes of its kind have gets no position.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tidemark.errors import MalformedMessageError
from tidemark.formats._debezium import log_places
from tidemark.formats._debezium.log_places import Number
from tidemark.positions import Position, changed

TIME: Final = "ts_ms"

FLINK_CDC: Final = "flink-cdc"
"""Stands for the connector where ``file`` is an empty text: Flink CDC writes it for a place that it does not know."""

_BEGINS: Final = {
    "mysql": "file",
    "mariadb": "file",
    "postgresql": "lsn",
    "oracle": "scn",
    "sqlserver": "commit_lsn",
    "db2": "commit_lsn",
}
"""By connector: the field of ``source`` without which there is no sequence. Of all others it is the time."""

FIELDS: Final[Mapping[str, Collection[str] | None]] = {"debezium": None, "lindorm": (TIME,)}
"""By dialect: the fields of ``source`` that order the changes; None for those of the connector that it names."""


def by_time(connector: str | None, ts_ms: Number, order: Position, fields: Collection[str] | None) -> Position:
    """Return the position of a change without a sequence.

    Args:
        connector: of the change, or ``FLINK_CDC``.
        ts_ms: time of the change. Without it the place in the dump is the order, where no change of its kind has one.
        order: place of the message in the dump.
        fields: the fields of ``source`` that all changes of its kind have; None for all that its connector writes.

    Raises:
        MalformedMessageError: the change lacks one of them, or its time cannot be read.
    """
    millis = log_places.number(ts_ms, "source.ts_ms") or 0
    begins = _BEGINS.get(connector or "", TIME)
    if fields is None:
        fields = (begins, TIME) if connector else ()
    for field in (begins, TIME):
        if field in fields and (field != TIME or not millis):
            raise _missing(field)
    return changed(millis, *order)


def _missing(field: str) -> MalformedMessageError:
    return MalformedMessageError(
        f"a change without `source.{field}`, which orders the changes of its connector: nothing ranks it among them; "
        "deliver it as the connector wrote it, or load the table again"
    )
