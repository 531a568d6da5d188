"""The position of a DTS Record: a place in MySQL's log, or the place in the dump, and which of the two it is.

PolarDB-X writes the log position of the shard. Each shard is a MySQL server with a log of its own, so positions of two
shards cannot be compared, and a row may move from one to the other. Most of its Records name MySQL as their source:
only the tags with the logical names show where they are from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tidemark.errors import MalformedMessageError
from tidemark.events import Message
from tidemark.formats import Placing
from tidemark.formats._dts.record import Record
from tidemark.formats._positions import of_offsets
from tidemark.positions import Position, changed

_POSITION: Final = re.compile(r"([0-9]{1,19})@([0-9]{1,19})")

_PHYSICAL: Final = "<->"
"""Stands in positions from readers of physical logs."""


def position_of(record: Record, message: Message, order: str, *last: int) -> Position:
    """Return log and offset of a MySQL position, then the place in the dump; for other sources, the place alone.

    Args:
        record: the Record.
        message: that it came in.
        order: the option: with ``dump``, ``sourcePosition`` does not count.
        last: what follows the place in the dump.

    Raises:
        MalformedMessageError: the position of MySQL has another form.
    """
    if order == "dump" or record.source != "MySQL" or is_physical(record.position) or is_of_shard(record):
        return changed(*message.order, *last)
    match = _POSITION.fullmatch(record.position)
    if match is None:
        raise MalformedMessageError(
            f"`sourcePosition` is {record.position[:60]!r}, and MySQL's is offset@log; see the option `order`"
        )
    return changed(int(match[2]), int(match[1]), *message.order, *last)


def is_physical(position: str) -> bool:
    """Return whether a reader of physical logs wrote a position. It counts nanoseconds, whatever the source."""
    return _PHYSICAL in position


def is_of_shard(record: Record) -> bool:
    """Return whether a Record is from a shard of PolarDB-X: a tag names its logical database or table."""
    return bool(record.tags.get(b"l_db_name") or record.tags.get(b"l_tb_name"))


def placing_of(parts: Sequence[str]) -> Placing:
    """Return what an encoded position can be compared with: it has log and offset, or the place in the dump alone.

    A position begins with its rank. Two parts of the log follow, or none. Then come three parts of a Kafka record, or
    four of a file, the third of which is text. Of a statement, its number in the message is the last part.
    """
    if len(parts) != _EITHER:
        return Placing.LOG if len(parts) > _EITHER else Placing.DUMP
    return Placing.DUMP if parts[3].startswith("~") else Placing.LOG


_EITHER: Final = 6
"""Parts of the position of a statement from a file without a place in the log, and of a row from Kafka with one."""


def ranks_by_commit(parts: Sequence[str]) -> bool:
    """Return whether a position rises with the commits: log and offset do, and offsets of Kafka."""
    return placing_of(parts) is Placing.LOG or of_offsets(parts)
