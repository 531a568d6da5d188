"""Columns that PostgreSQL does not log of a deleted row: without ``REPLICA IDENTITY FULL``, all but those of the key.

Debezium writes null into such a column. Where the column is NOT NULL it cannot, so it writes the column's default, or
else a zero in the form of the type: 0, an empty text, 1970-01-01. Nothing in the message shows that this is no value of
the row. So a null says nothing of a deleted row, and neither does such a value.
"""

from __future__ import annotations

import re

import msgspec

from tidemark.formats import _connect
from tidemark.formats._connect import Absence
from tidemark.formats._debezium.source import Source
from tidemark.formats._json import members

_ZERO = re.compile(
    rb'0|false|""|\[\]|\{\}|"\{\}"|"AA=="|("?)-?0(?:\.0+)?(?:[eE][+-]?\d+)?\1'  # numbers, texts, arrays, maps, decimals
    rb'|"1970-01-01(?:T00:00:00)?Z"|"00:00:00Z"|"P0Y0M0DT0H0M0(?:\.0+)?S"'
    rb'|\{"scale":0,"value":"AA=="\}|\{"x":0\.0,"y":0\.0,.*\}'
)
"""What PostgreSQL's connector writes for a value of a NOT NULL column that it does not have, in all of its modes."""


def without_unlogged(
    image: bytes | None, record_key: bytes | None, source: Source, schema: msgspec.Raw | bytes | None
) -> bytes | None:
    """Return the image of a deleted row without the columns whose value may be none of the row.

    Args:
        image: the row.
        record_key: of its record. A row without one is logged whole, or it could not be deleted. Where a key is all
            zeros, another index than the primary key identifies rows, and its columns may be any.
        source: the block of this name.
        schema: of the message.
    """
    if image is None or record_key is None or source.connector != "postgresql":
        return image
    key = _connect.key_struct(record_key)
    if key is None or all(_ZERO.fullmatch(bytes(raw)) for raw in members(key.image).values()):
        return image
    absences = _connect.absences(bytes(schema)) if schema else {}
    found = members(image)
    kept = {
        name: raw
        for name, raw in found.items()
        if name in key.names or not _may_be_none(bytes(raw), absences.get(name))
    }
    return image if len(kept) == len(found) else msgspec.json.encode(kept)


def _may_be_none(value: bytes, absence: Absence | None) -> bool:
    """Return whether a value may stand for one that is not known."""
    if absence is not None and value == absence.default:
        return True
    return (absence is None or not absence.optional) and _ZERO.fullmatch(value) is not None
