"""MySQL's type texts, as Canal's ``mysqlType`` and MySQL's catalog write them: in any case, with or without lengths.

Source of the types: https://dev.mysql.com/doc/refman/8.4/en/data-types.html. Source of how Canal writes their values:
``MQMessageUtils.messageConverter`` of https://github.com/alibaba/canal.
"""

from __future__ import annotations

import re

from msgspec import UNSET, UnsetType

from tidemark.errors import UnknownTypeError
from tidemark.events import Column, Encoding
from tidemark.values import bounds

_TYPE = re.compile(r"\s*(?:national\s+)?([a-z][a-z0-9_]*)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE)

_STRING = ("string", Encoding.PLAIN)

_INT = ("int", Encoding.TEXT)

_LONG = ("long", Encoding.TEXT)

_UNSIGNED_LONG = ("decimal(20, 0)", Encoding.TEXT)

_DOUBLE = ("double", Encoding.TEXT)

_TIMESTAMP = ("timestamp", Encoding.TEXT)

_BINARY = ("binary", Encoding.LATIN1)

_TYPES: dict[str, tuple[str, Encoding]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "integer", "bool", "boolean", "year"), _INT),
    **dict.fromkeys(("int1", "int2", "int3", "int4", "middleint"), _INT),
    **dict.fromkeys(("bigint", "int8"), _LONG),
    # BIT(64) needs twenty digits. Canal writes the number, whatever the width.
    **dict.fromkeys(("serial", "bit"), _UNSIGNED_LONG),
    **dict.fromkeys(("float", "float4"), ("float", Encoding.TEXT)),
    **dict.fromkeys(("double", "real", "float8"), _DOUBLE),
    "date": ("date", Encoding.TEXT),
    **dict.fromkeys(("datetime", "timestamp"), _TIMESTAMP),
    **dict.fromkeys(("char", "character", "varchar", "nchar", "nvarchar", "varcharacter", "long"), _STRING),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), _STRING),
    # TIME may be negative or above 24 h.
    **dict.fromkeys(("time", "enum", "set", "json", "uuid", "inet4", "inet6", "xmltype"), _STRING),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"), _BINARY),
    **dict.fromkeys(("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"), _BINARY),
    **dict.fromkeys(("multipolygon", "geometrycollection", "geomcollection"), _BINARY),
}

_DECIMALS = frozenset({"decimal", "numeric", "dec", "fixed"})

_MOST_FIGURES = 10
"""Most figures of a length. The longest text has 4294967295 bytes."""

_FOUR_BYTES = frozenset({"int", "integer", "int4"})

_EIGHT_BYTES = frozenset({"bigint", "int8"})

_BITS = {
    **dict.fromkeys(("tinyint", "int1"), 8),
    **dict.fromkeys(("smallint", "int2"), 16),
    **dict.fromkeys(("mediumint", "int3", "middleint"), 24),
    **dict.fromkeys(_FOUR_BYTES, 32),
    **dict.fromkeys(_EIGHT_BYTES, 64),
}
"""Bits of whole numbers."""

_OF_A_FLOAT = 24
"""Most binary digits of a FLOAT; one of more is a DOUBLE."""

_CHARACTERS = frozenset({"char", "character", "varchar", "nchar", "nvarchar", "varcharacter"})

_LABEL = re.compile(r"'((?:[^']|'')*)'")


def column(name: str, text: str) -> Column:
    """Return the column ``name`` of the MySQL type ``text`` (``int unsigned``, ``DECIMAL(8,3)``, ``enum('a','b')``).

    Values of all types arrive as text (``"12.50"``). A decimal without a length is ``decimal(38, 18)``. A decimal of
    more than 38 digits is a ``string``, because Iceberg has no such decimal. Messages do not name the time zone of a
    TIMESTAMP, so it is a wall-clock time.

    Raises:
        UnknownTypeError: MySQL has no such type.
    """
    match = _TYPE.match(text)
    word = match[1].lower() if match else ""
    decimal = _decimal(name, match[2], match[3]) if match and word in _DECIMALS else None
    if decimal is not None:
        return decimal
    if match is None or word not in _TYPES or len(match[2] or "") > _MOST_FIGURES:
        raise UnknownTypeError(f"column '{name}' has the type '{text[:80]}', which is no type of MySQL")
    type_, encoding = _TYPES[word]
    if word == "float" and match[2] and not match[3] and int(match[2]) > _OF_A_FLOAT:
        type_, encoding = _DOUBLE
    modifiers = text[match.end() :].lower().split()
    # ZEROFILL implies UNSIGNED
    unsigned = "unsigned" in modifiers or "zerofill" in modifiers
    if unsigned:
        type_ = "long" if word in _FOUR_BYTES else "decimal(20, 0)" if word in _EIGHT_BYTES else type_
    return Column(name=name, type=type_, encoding=encoding, bounds=_bounds(word, text, match[2], unsigned=unsigned))


def _bounds(word: str, text: str, size: str | None, *, unsigned: bool) -> str | UnsetType:
    """Return what a type allows beyond what the type of its column does."""
    if word in _CHARACTERS and size:
        return bounds.length(int(size))
    if word == "enum" and (labels := _LABEL.findall(text)):
        return bounds.one_of([label.replace("''", "'") for label in labels])
    if (bits := _BITS.get(word)) and (unsigned or bits < 32):
        return bounds.whole(bits, unsigned=unsigned)
    return UNSET


def _decimal(name: str, precision: str | None, scale: str | None) -> Column | None:
    """Return the column of a decimal; None where MySQL has none of this size."""
    if max(len(precision or ""), len(scale or "")) > _MOST_FIGURES:
        return None
    # MySQL reads a precision of 0 as 10.
    digits, places = (int(precision) or 10, int(scale or 0)) if precision else (38, 18)
    if places > digits:
        return None
    if digits > 38:
        return Column(name=name, type="string")
    return Column(name=name, type=f"decimal({digits}, {places})", encoding=Encoding.TEXT)
