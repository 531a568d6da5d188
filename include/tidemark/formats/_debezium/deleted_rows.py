"""Rows that a DELETE names: what the message has of them, and what only their key has."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tidemark.errors import MissingKeyError
from tidemark.formats import _connect
from tidemark.formats._connect import Struct
from tidemark.formats._debezium import cells, hbase
from tidemark.formats._debezium.options import Options
from tidemark.formats._debezium.unlogged import has_as_text
from tidemark.formats._json import ABSENT, NULL, RowLayout, members, untyped


def key_alone(key: Struct | None, typed: RowLayout | None, options: Options) -> tuple[bytes, RowLayout]:
    """Return the image of a deleted row of which a message has the key only, and its layout.

    Args:
        key: the struct of the record key.
        typed: the layout of old rows in the message's schema.
        options: of the source.

    Raises:
        MissingKeyError: there is no such struct.
    """
    key = cells.key_of(key)
    if key is None:
        raise MissingKeyError("a delete with neither `before` nor columns in a record key: which row, nobody can tell")
    of_key = _connect.layout_of_key(key)
    layout = typed.widened(key.names, of_key) if typed else of_key or untyped(key.names)
    return key.image, hbase.of_columns(layout.names) if hbase.has(layout, options) else layout


def with_key(row: bytes, key: bytes, names: Collection[str]) -> bytes:
    """Return the image of a deleted row with those key columns that only its key has.

    Args:
        row: the image.
        key: the object that has the key.
        names: the key columns.
    """
    return row if has_as_text(row, key) else completed(row, key, names)


def completed(row: bytes, key: bytes, names: Collection[str]) -> bytes:
    """Return the same as ``with_key``, for a row that does not have the key as it is written."""
    found, values = members(row), members(key)
    lacking = {name: values[name] for name in names if bytes(found.get(name, ABSENT)) in {b"", NULL}}
    return msgspec.json.encode({**found, **lacking}) if lacking else row
