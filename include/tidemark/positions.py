"""The position of an event: its place in the total order of the events of one table.

It is a tuple, compared part by part, or the text of it (``encode_position``), which sorts likewise byte by byte.
Formats make tuples; stages compare texts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

Position = tuple[int | str, ...]


def changed(*sequence: int | str) -> Position:
    """Return the beginning of a change's position. It ranks above every row of an initial load without a position."""
    return (1, *sequence)


def loaded(*sequence: int | str) -> Position:
    """Return the beginning of the position of a row of an initial load that has no position of its own."""
    return (0, *sequence)


def placed(log_place: Position, delivery: Position, rest: Position = ()) -> Position:
    """Return the position of a change at a place of the log that other changes may have too.

    ``log_place`` is all that the log says of the order. ``delivery`` orders the changes at one place, by number in the
    transaction (0: none) and place in the dump, so it differs between copies. ``rest`` is what else tells them apart.
    """
    return (*log_place, "", *delivery, "", *rest)


_LOG_NUMBER = re.compile(r"[0-9]{1,18}$")

_LOG_DATE = re.compile(r"(?<![0-9])(20[0-9]{2})([-_.]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12][0-9]|3[01]))?(?![0-9])")

_AFTER_LOG_NUMBERS = 10**18
"""A date stands before the number of a file."""


@functools.lru_cache(maxsize=64)
def log_number(file: str | None) -> int | None:
    """Return a number that rises with the files of MySQL's binary log (3 for ``mysql-bin.000003``); None without one.

    Where the base name has a year and a month (``binlog-202601.000003``), the date comes first: with the next month's
    base name, the numbers start again.
    """
    number = _LOG_NUMBER.search(file or "")
    if number is None or file is None:
        return None
    date = _LOG_DATE.search(file[: number.start()])
    day = f"{date[1]}{date[3]}{date[4] or '00'}" if date else "0"
    return int(day) * _AFTER_LOG_NUMBERS + int(number[0])


DELIVERY, DELIVERY_END = ".~.", ".~"
"""A delivery in the text of a position stands between the first of these and the last. No text part holds a dot."""


def identity(position: str) -> str:
    """Return an encoded position without its delivery. The copies of an event have the same identity."""
    place, has_delivery, rest = position.partition(DELIVERY)
    return place + rest.rpartition(DELIVERY_END)[2] if has_delivery else place


_IN_DUMP = {5: "011", 6: "010"}
"""By count of parts: how a place in the dump begins behind two parts (``Message.order``)."""


def is_by_time(position: str) -> bool:
    """Return whether an encoded position is one number, a time mostly, and the place in the dump."""
    parts = position.split(".")
    return len(parts) in _IN_DUMP and parts[2] == _IN_DUMP[len(parts)]


_ESCAPES = str.maketrans({character: f"%{ord(character):02X}" for character in map(chr, [*range(0x30), 0x25])})
"""Escapes of the percent sign and of every character that would sort at or below the separator."""


def encode_position(position: Iterable[int | str]) -> str:
    """Return a position as text that sorts, byte by byte, as the position compares part by part.

    A number is written as the count of its digits (two characters) and its digits, so that numbers of up to 99 digits
    compare as numbers. A text is escaped, so that no character of it is read as the separator ``.``. Texts sort by
    their characters. There is one exception: a text comes before its own beginning if it goes on with a character that
    is escaped (``a-2`` before ``a``). Stored positions are written so, and it stays.

    Raises:
        ValueError: a number is negative or has more than 99 digits.
    """
    return ".".join([_SMALL.get(part) or _encode_part(part) for part in position])


def _encode_part(part: int | str) -> str:
    if type(part) is not int:
        return _encode_text(str(part))
    digits = str(part)
    if len(digits) > 99 or digits[0] == "-":
        raise ValueError(f"a position holds numbers of 0 to 99 digits, not {digits[:120]}")
    return _COUNTS[len(digits)] + digits


@functools.lru_cache(maxsize=64)
def _encode_text(part: str) -> str:
    """Return the encoded text. It is cached, because it is mostly the name of a file, which many positions share."""
    return f"~{part.translate(_ESCAPES)}"


_COUNTS = tuple(f"{count:02d}" for count in range(100))
_SMALL: dict[int | str, str] = {"": "~", **{number: f"{len(str(number)):02d}{number}" for number in range(1000)}}
"""Encoded numbers below 1000, and the empty text, which most positions have."""
OLD_HALF, NEW_HALF = encode_position((0,)), encode_position((1,))  # last parts of the positions of an update in halves
