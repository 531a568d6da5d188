"""Columns that PostgreSQL does not log of a row that goes: without ``REPLICA IDENTITY FULL``, all but those of the key.

Debezium writes null into such a column. Where the column is NOT NULL it cannot, so it writes the column's default, or
else a zero in the form of the type: 0, an empty text, 1970-01-01. Nothing in the message shows that this is no value of
the row. So a null says nothing of a deleted row, and neither does such a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from tidemark.formats import _connect
from tidemark.formats._connect import Absence
from tidemark.formats._json import members

_ZERO = re.compile(
    rb'0|false|""|\[\]|\{\}|"\{\}"|"AA=="|("?)-?0(?:\.0+)?(?:[eE][+-]?\d+)?\1'  # numbers, texts, arrays, maps, decimals
    rb'|"1970-01-01(?:[T ]00:00:00(?:\.0+)?)?Z?"|"00:00:00Z"|"P0Y0M0DT0H0M0(?:\.0+)?S"'
    rb'|\{"scale":0,"value":"AA=="\}|\{"x":0\.0,"y":0\.0,.*\}'
)
"""What PostgreSQL's connector writes for a value of a NOT NULL column that it does not have, in all of its modes.

CDL writes times in a form of its own."""


def without_unlogged(
    image: bytes, record_key: bytes | None, connector: str | None, schema: msgspec.Raw | bytes | None
) -> bytes:
    """Return the image of a deleted row without the columns whose value may be none of the row.

    Args:
        image: the row.
        record_key: of its record; of CDL, ``unique``. A row without one is logged whole, or it could not be deleted.
            Where a key is all zeros, another index than the primary key identifies rows, and its columns may be any.
        connector: which wrote the message.
        schema: of the message.
    """
    if record_key is None or connector != "postgresql":
        return image
    found = members(image)
    doubtful = _doubtful(found, _connect.absences(bytes(schema)) if schema else {})
    if not doubtful:
        return image
    key = _connect.key_struct(record_key)
    if key is None or all(_ZERO.fullmatch(bytes(raw)) for raw in members(key.image).values()):
        return image
    unlogged = doubtful.difference(key.names)
    kept = {name: raw for name, raw in found.items() if name not in unlogged}
    return msgspec.json.encode(kept) if unlogged else image


def moved_without_unlogged(
    before: bytes, record_key: bytes | None, connector: str | None, schema: msgspec.Raw | bytes | None
) -> bytes:
    """Return the image of a row before an UPDATE; of one that moved to another key, as ``without_unlogged`` of it.

    CDL writes a change of the key as one UPDATE. The log has as much of its old row as of a deleted one.

    Args:
        before: the row.
        record_key: with the values after the UPDATE; of CDL, ``unique``.
        connector: which wrote the message.
        schema: of the message.
    """
    if record_key is None or connector != "postgresql":
        return before
    if has_as_text(before, record_key):
        return before
    key = _connect.key_struct(record_key)
    if key is None:
        return before
    now, was = members(key.image), members(before)
    old = {name: was[name] for name in key.names if name in was}
    if all(raw == now[name] for name, raw in old.items()):
        return before
    return without_unlogged(before, msgspec.json.encode(old), connector, schema)


def has_as_text(row: bytes, key: bytes) -> bool:
    """Return whether a row has the members of a key beside each other, as they are written; False may mean not known.

    A quotation mark within a value has a backslash, so the text is no part of one. Nor is it a part of an object in the
    row, if no brace stands in front.
    """
    ahead, _, behind = row.partition(key[1:-1] or b"{")
    return ahead[-1:] in b"{," and behind[:1] in {b",", b"}"} and ahead.find(b"{", 1) < 0


def _doubtful(row: Mapping[str, msgspec.Raw], absences: Mapping[str, Absence]) -> set[str]:
    """Return the columns of a row whose value may stand for one that is not known."""
    doubtful = set()
    for name, raw in row.items():
        value, absence = bytes(raw), absences.get(name)
        is_default = absence is not None and value == absence.default
        if is_default or ((absence is None or not absence.optional) and _ZERO.fullmatch(value)):
            doubtful.add(name)
    return doubtful
