"""Column types of a DTS Record: from ``dataTypeNumber``, for each kind of source, and from the branch of the value.

MySQL's numbers are the type codes of its binary log, Oracle's are the codes of its catalog, and PostgreSQL's are the
OIDs of ``pg_type``. The lists of MySQL and Oracle are closed: any other number is an error. The list of OIDs is open,
because extensions and enumerations have OIDs of their own. For other sources no list is known. Where a number is not
listed, the value gives the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from tidemark.errors import UnknownTypeError
from tidemark.events import Column, Encoding
from tidemark.values import bounds

BY_VALUE: Final = "by value"
"""Declared type of a column whose values are text or bytes: only each value shows which."""

_LARGE: Final = "decimal(38, 18)"

_UNSIGNED_LONG: Final = "decimal(20, 0)"

MYSQL: Mapping[int, str] = {
    **dict.fromkeys((0, 246), "decimal"),
    **dict.fromkeys((1, 2, 9, 13), "int"),  # tinyint, smallint, mediumint, year: unsigned or not
    **dict.fromkeys((3, 8), "long"),  # unsigned is not marked, and an unsigned int needs more than 31 bits
    4: "float",
    5: "double",
    **dict.fromkeys((7, 17), "timestamptz"),
    **dict.fromkeys((10, 14), "date"),
    **dict.fromkeys((11, 19), "string"),  # time: may be negative or above 24 h
    **dict.fromkeys((12, 18), "timestamp"),
    **dict.fromkeys((6, 15, 249, 250, 251, 252, 253, 254, 255), BY_VALUE),
    16: _UNSIGNED_LONG,  # bit
    **dict.fromkeys((245, 247, 248), "string"),  # json, enum, set
}

_MYSQL_RANGES: Mapping[int, str] = {
    number: bounds.between(-(2 ** (bits - 1)), 2**bits - 1) for number, bits in ((1, 8), (2, 16), (9, 24))
}
"""Numbers of small integer types to what they allow, signed or not: no message says whether a column is signed."""

_POSTGRESQL_RANGES: Mapping[int, str] = {21: bounds.whole(16, unsigned=False)}

ORACLE: Mapping[int, str] = {
    **dict.fromkeys((1, 8, 58, 69, 96, 112, 182, 183, 208), "string"),
    2: _LARGE,
    12: "timestamp",  # Oracle's DATE has a time of day
    **dict.fromkeys((23, 24, 113), "binary"),
    100: "float",
    101: "double",
    114: BY_VALUE,  # bfile
    180: "timestamp",
    **dict.fromkeys((181, 231), "timestamptz"),
}

POSTGRESQL: Mapping[int, str] = {
    16: "boolean",
    17: "binary",
    20: "long",
    **dict.fromkeys((21, 23), "int"),
    26: "long",  # oid
    **dict.fromkeys((18, 19, 25, 1042, 1043, 2275), "string"),
    **dict.fromkeys((114, 142, 650, 774, 790, 829, 869, 1560, 1562, 2950, 3614, 3615, 3802, 4072), "string"),
    700: "float",
    701: "double",
    1082: "date",
    **dict.fromkeys((1083, 1186, 1266), "string"),
    1114: "timestamp",
    1184: "timestamptz",
    1700: _LARGE,
}

JSONB: Final = 3802
"""OID of jsonb. Its values are ``BinaryObject`` with UTF-8 text."""

FAMILIES: Mapping[str, Mapping[int, str]] = {
    "MySQL": MYSQL, "DRDS": MYSQL, "Oracle": ORACLE, "PostgreSQL": POSTGRESQL, "PPAS": POSTGRESQL,
}  # fmt: skip
"""Source type to its numbers. PolarDB-X (DRDS) uses MySQL's numbers, and PPAS uses PostgreSQL's."""

NULL, INTEGER, TEXT, DECIMAL, FLOAT, INSTANT, DATETIME, BINARY, NONE = range(9)
"""The kind of a value, as far as it decides the type of the column. NONE: not captured."""

UNTYPED, DATE, TIME, YEAR = range(9, 13)
"""UNTYPED: a number beyond the declared type of its column, or not a number (``NaN``). It is passed on as text, and the
table's type accepts or refuses it."""

MEASURED: Final = 128
"""Kinds from here on are decimals with the precision and scale of their column; see ``measured``."""

_BY_KIND: Mapping[int, str] = {
    INTEGER: "long", TEXT: "string", DECIMAL: _LARGE, FLOAT: "double", DATETIME: "timestamp", DATE: "date",
    TIME: "string", YEAR: "int",
}  # fmt: skip


def measured(precision: int, scale: int) -> int:
    """Return the kind of a decimal. Kinds with the same scale rise with the precision."""
    return MEASURED + scale * 128 + precision


def column(source: str, name: str, number: int, kind: int) -> Column:
    """Return the column ``name``, with the type that fits a value of ``kind``.

    If only values show the type of a column, a null leaves it open.

    Raises:
        UnknownTypeError: MySQL or Oracle has no such type number.
    """
    declared = _declared(source, name, number)
    if kind == BINARY:
        return Column(name=name, type="binary", encoding=Encoding.BASE64)
    if kind == INSTANT:
        return Column(name=name, type="timestamptz", encoding=Encoding.TEXT)
    if kind >= MEASURED:
        scale, precision = divmod(kind - MEASURED, 128)
        type_: str | None = f"decimal({precision}, {scale})" if precision <= 38 else "string"
    elif kind == UNTYPED:
        type_ = None
    elif kind in {NULL, NONE}:
        type_ = None if declared in {None, "decimal", "timestamptz", BY_VALUE} else declared
    else:
        type_ = _typed(declared, kind)
    encoding = Encoding.BASE64 if type_ == "binary" else Encoding.TEXT
    return Column(name=name, type=type_, encoding=encoding, bounds=_bounds(source, number) if type_ == "int" else UNSET)


def _bounds(source: str, number: int) -> str | UnsetType:
    """Return what a type allows beyond what the type of its column does."""
    numbers = FAMILIES.get(source)
    ranges = _MYSQL_RANGES if numbers is MYSQL else _POSTGRESQL_RANGES if numbers is POSTGRESQL else {}
    return ranges.get(number, UNSET)


def _declared(source: str, name: str, number: int) -> str | None:
    numbers = FAMILIES.get(source)
    if numbers is None:
        return None
    if number not in numbers and numbers is not POSTGRESQL:
        known = ", ".join(map(str, sorted(numbers)))
        raise UnknownTypeError(f"column '{name}' has dataTypeNumber {number}; {source} has {known}")
    return numbers.get(number)


def _typed(declared: str | None, kind: int) -> str:
    """Return the declared type if values of ``kind`` can have it, or else the type of such values."""
    if declared in {None, BY_VALUE, "binary", "timestamptz"}:
        return _BY_KIND[kind]
    return _LARGE if declared == "decimal" else str(declared)
