"""The columns of a table, from ``mysqlType`` of a message."""

from __future__ import annotations

import functools
import re

import msgspec

from tidemark.events import Column
from tidemark.formats import _mysql
from tidemark.formats._canal.incomplete import TidbExtension
from tidemark.formats._json import NULL, RowLayout, members, read, untyped

_VARCHAR = 12
"""The number of ``java.sql.Types`` that TiCDC writes for a vector, which is the text of a list there. In MySQL a vector
is bytes."""

_VECTOR = re.compile(rb"\bvector\b", re.IGNORECASE)

_types = msgspec.json.Decoder(dict[str, str])

_numbers = msgspec.json.Decoder(dict[str, int])


def layout_of(types: msgspec.Raw, numbers: msgspec.Raw, tidb: TidbExtension | None) -> RowLayout | None:
    """Return the columns in ``mysqlType``, None for null; the same object for the same bytes.

    Args:
        types: ``mysqlType``.
        numbers: ``sqlType``; it is looked at if there are vectors.
        tidb: the extension, which only TiCDC writes.

    Raises:
        MalformedMessageError: not an object whose values are texts.
        UnknownTypeError: MySQL has no such type.
    """
    text = bytes(types)
    layout = _layout(text)
    if layout is None or not layout.latin1 or not _VECTOR.search(text):
        return layout
    return _with_vectors(text, bytes(numbers), tidb=tidb is not None)


def examined(image: bytes, typed: RowLayout | None) -> tuple[RowLayout, tuple[str, ...]]:
    """Return the layout of ``image`` and the columns of ``mysqlType`` that it lacks."""
    if typed is not None and typed.fits(image):
        return typed, ()
    found = members(image)
    if typed is None:
        return untyped(tuple(found)), ()
    return typed.widened(found), typed.missing(found)


@functools.lru_cache(maxsize=1024)
def _layout(types: bytes) -> RowLayout | None:
    if types == NULL:
        return None
    members(types)
    return RowLayout(_mysql.column(name, text) for name, text in read(_types, types).items())


@functools.lru_cache(maxsize=1024)
def _with_vectors(types: bytes, numbers: bytes, *, tidb: bool) -> RowLayout:
    """Return the columns, with the vectors of TiDB as text."""
    type_codes = read(_numbers, numbers) if numbers and numbers != NULL else {}

    def column(name: str, text: str) -> Column:
        if text.lower().startswith("vector") and (tidb or type_codes.get(name) == _VARCHAR):
            return Column(name=name, type="string")
        return _mysql.column(name, text)

    return RowLayout(column(name, text) for name, text in read(_types, types).items())
