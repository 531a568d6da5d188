"""What SharePlex says twice in a message: the row, in ``data`` and ``key``, and the number of an operation."""

from __future__ import annotations

import re

import msgspec

from tidemark.errors import MalformedMessageError, MissingKeyError
from tidemark.formats._json import NULL, members
from tidemark.formats._scalars import differ

Number = int | str | None

_INDEX = re.compile(r"\s*([0-9]{1,18})\s*/\s*([0-9]{1,18})\s*")

_encode = msgspec.json.Encoder().encode


def overlaid(key: bytes | None, data: bytes | None, *, is_one: bool) -> tuple[bytes, tuple[str, ...]]:
    """Return ``key`` overlaid by the members of ``data``, with their values as written, and the names of both.

    ``is_one``: both are the same row, so they have no column with two values.
    """
    if key is None or data is None:
        row = data or key
        if row is None:
            raise MissingKeyError("neither `data` nor `key` holds a column: which row, nobody can tell")
        return row, tuple(members(row))
    old, new = members(key), members(data)
    folded = {name.casefold() for name in old}
    for name, value in new.items():
        there = old.get(name)
        if is_one:
            contradicts = there is not None and there != value and _contradict(bytes(there), bytes(value))
        else:
            contradicts = there is None and name.casefold() in folded
        if contradicts:
            raise MalformedMessageError(
                f"`data` and `key` contradict each other in {name[:60]!r}: which of them is right?"
            )
    merged = {**old, **new}
    return _encode(merged), tuple(merged)


def _contradict(one: bytes, other: bytes) -> bool:
    return (one == NULL) != (other == NULL) or differ(one, other)


def sequence(seq: Number, size: Number, idx: str | None) -> tuple[int | None, int | None]:
    """Return the number of an operation in its transaction, and how many the transaction has; ``idx`` has both.

    Raises:
        MalformedMessageError: one of them is no number, or they contradict each other.
    """
    number, count = number_of(seq, "seq"), number_of(size, "size")
    index = _INDEX.fullmatch(idx) if idx else None
    if index is not None:
        numbers = (int(index[1]), int(index[2]))
        if number not in {None, numbers[0]} or count not in {None, numbers[1]}:
            raise MalformedMessageError(f"`idx` is {idx!r}, and `seq` {number} of `size` {count}: which is right?")
        number, count = numbers
    elif idx and (number is None or count is None):
        raise MalformedMessageError(f"`idx` is {idx!r}, not seq/size")
    if number == 0 or (number is not None and count and number > count):  # a size of 0 is not known
        raise MalformedMessageError(f"`seq` is {number}, and a transaction counts from 1 to `size`, which is {count}")
    return number, count


def number_of(value: Number, name: str) -> int | None:
    """Return a number, also from its digits; None for null and an empty text."""
    if value is None or value == "":
        return None
    text = str(value)
    if not (text.isascii() and text.isdecimal() and len(text) <= 40):
        raise MalformedMessageError(f"`{name}` is {text[:60]!r}, not a number")
    return int(text)
