"""Numbers that would be rounded in a column of doubles, found in images.

A double needs no more than 17 digits, so a number with more was none at the source. A whole number with fewer may be
none either: a producer writes ``9007199254740993`` for an integer, and never for a double.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FOUND = pa.schema([("name", pa.string())])

_DIGITS = 17
"""The most significant digits that any writer needs for a double."""

_SURE = 15
"""Every number of so many digits is another double."""

_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?")

_SIMPLE = re.compile(r"[A-Za-z0-9_ .$#-]+", re.ASCII)
"""Names that all producers write in the same way."""

_SUSPICIOUS = rf'"\s*:\s*"?[+-]?(?:[0.]*[1-9](?:\.?[0-9]){{{_DIGITS - 1},}}\.?[1-9]|0*[1-9][0-9]{{{_SURE},}}"?\s*[,}}])'
"""A number with more digits than a double has, or a long whole number, and what is in front of it."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def columns_of(batches: Iterable[pa.RecordBatch], *, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield for each batch the columns in which it has a number that a double would round.

    Args:
        batches: images in their only column: JSON objects, or null.
        columns: the columns to look at, as the images have them.
    """
    for batch in batches:
        found = [name for name in columns if _has_rounded(batch.column(0), name)]
        yield pa.RecordBatch.from_pydict({"name": found}, schema=FOUND)


def _has_rounded(images: pa.Array, name: str) -> bool:
    """Return whether an image has such a number. Compiled code finds the suspicious images, most of which have one."""
    prefix = f'"{re.escape(name)}' if _SIMPLE.fullmatch(name) else ""
    suspicious = pc.match_substring_regex(images, prefix + _SUSPICIOUS).fill_null(fill_value=False)
    rows = np.flatnonzero(suspicious).tolist()
    return any(_is_rounded_in(images[row].as_py(), name) for row in rows)


def _is_rounded_in(image: str, name: str) -> bool:
    try:
        raw = _members.decode(image).get(name)
    except (msgspec.MsgspecError, RecursionError):
        return False  # the image as a whole is unreadable
    return raw is not None and is_rounded(bytes(raw).decode().strip('"'))


def is_rounded(written: str) -> bool:
    """Return whether a double is another number than the one that is written; False for what is no number.

    >>> is_rounded("12345678901234567890.12"), is_rounded("0.10000000000000001"), is_rounded("1.5e300")
    (True, False, False)
    >>> is_rounded("9007199254740993"), is_rounded("9007199254740992"), is_rounded("1000000000000000000000")
    (True, False, False)
    """
    if not _NUMBER.fullmatch(written):
        return False
    mantissa, exponent, _ = written.lower().partition("e")
    digits = mantissa.lstrip("+-").replace(".", "").strip("0")
    if "." in mantissa or exponent:
        return len(digits) > _DIGITS
    if len(digits) <= _SURE:
        return False
    double = float(written)
    return Decimal(written) not in {Decimal(double), Decimal(repr(double))}
