"""Reads the parts of places in the logs of databases, as ``source`` blocks hold them.

Null means that a part is missing. A part that is there and cannot be read sets its message aside: any other place would
rank the change among others that it does not belong to.
"""

from __future__ import annotations

import re

from tidemark.errors import MalformedMessageError

Number = int | str | None
"""A 64-bit number. Converters write it as a JSON number or as a string."""

LIMIT = 1 << 96
"""Numbers from here on are no places and no times."""

_DIGITS = re.compile(r"[0-9]{1,28}")
"""Every number of so many digits is below the limit."""

_SIGNED = re.compile(r"-?[0-9]{1,30}", re.ASCII)

_WRAP = 1 << 32
"""Offsets in a binary log file have 32 bits."""

_RECORD = re.compile(r"\s*(?:0x)?([0-9a-f]{1,16})\.([0-9a-f]{1,16})\.([0-9a-f]{1,16})\s*", re.IGNORECASE | re.ASCII)

_LSN = re.compile(r"[0-9a-fA-F]{8}:[0-9a-fA-F]{8}:[0-9a-fA-F]{4}(?:[0-9a-fA-F]{12})?")
"""SQL Server has ten bytes, Db2 sixteen. All texts of one database are equally long."""


def unreadable(member: str, value: object, expected: str) -> MalformedMessageError:
    """Return the error of a part that is there and cannot be read."""
    return MalformedMessageError(f"`{member}` is {str(value)[:80]!r}, which is no {expected}")


def number(value: Number, member: str) -> int | None:
    """Return a number that orders events, also from its text; None for null.

    Raises:
        MalformedMessageError: it is below zero, too large or no number.
    """
    if value is None:
        return None
    if isinstance(value, str):
        if _DIGITS.fullmatch(value):
            return int(value)
    elif 0 <= value < LIMIT:
        return value
    raise unreadable(member, value, "number that orders events")


def offset(pos: Number) -> int:
    """Return an offset in a binary log file; 0 for null.

    The log writes offsets with 32 bits, so they wrap in a file of more than 4 GiB. Producers show the offset of the
    entry that passes this limit below zero: the end that was written, less the length. Others write any offset of 2 GiB
    and more as a signed number. Both are right again once 4 GiB are added.

    Raises:
        MalformedMessageError: it is no offset.
    """
    if type(pos) is int and 0 <= pos < LIMIT:
        return pos
    if pos is None:
        return 0
    text = str(pos)
    place = int(text) if _SIGNED.fullmatch(text) else -_WRAP
    if not -_WRAP < place < LIMIT:
        raise unreadable("source.pos", text, "offset in a binary log")
    return place if place >= 0 else place + _WRAP


def scn(value: Number, member: str) -> int | None:
    """Return a system change number of Oracle; None for null. The connector writes a missing one as the text ``null``.

    Raises:
        MalformedMessageError: it is no such number.
    """
    if type(value) is str and _DIGITS.fullmatch(value):  # nearly all of them end here
        return int(value)
    return None if value == "null" else number(value, member)


def redo_record(rs_id: str | None) -> tuple[int, int, int]:
    """Return the three numbers of ``0x0004d2.00003039.0124``, a place in Oracle's redo log; zeros without one.

    Raises:
        MalformedMessageError: it is no such place.
    """
    if rs_id is None or not rs_id.strip():
        return (0, 0, 0)
    record = _RECORD.fullmatch(rs_id)
    if record is None:
        raise unreadable("source.rs_id", rs_id, "place in a redo log")
    return (int(record[1], 16), int(record[2], 16), int(record[3], 16))


def lsn(text: Number, member: str) -> int:
    """Return ``00000025:00000d98:00a2`` as one number; 0 for null.

    Raises:
        MalformedMessageError: the parts do not have all their hexadecimal digits. Such texts do not compare as numbers.
    """
    if text is None:
        return 0
    if type(text) is not str or not _LSN.fullmatch(text):
        raise unreadable(member, text, "log sequence number: 00000025:00000d98:00a2")
    return int(text.replace(":", ""), 16)
