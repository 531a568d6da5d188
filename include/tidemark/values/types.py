"""Column types: Iceberg type strings, what Spark calls them, and which one holds the values of two.

Type strings are those of source files and shapes: ``boolean int long float double date timestamp timestamptz string
binary decimal(p, s)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from tidemark.errors import ConfigurationError, IncompatibleSchemaError

_PRIMITIVES: Mapping[str, tuple[PrimitiveType, str]] = {
    "boolean": (BooleanType(), "boolean"),
    "int": (IntegerType(), "int"),
    "long": (LongType(), "bigint"),
    "float": (FloatType(), "float"),
    "double": (DoubleType(), "double"),
    "date": (DateType(), "date"),
    "timestamp": (TimestampType(), "timestamp_ntz"),
    "timestamptz": (TimestamptzType(), "timestamp"),
    "string": (StringType(), "string"),
    "binary": (BinaryType(), "binary"),
}

_DECIMAL = re.compile(r"decimal\((\d{1,2}), ?(\d{1,2})\)")

_WIDER: Mapping[tuple[str, str], str] = {("int", "long"): "long", ("float", "double"): "double"}
"""The promotions that Iceberg can make without touching a file, beside a decimal's precision."""


def decimal_parts(text: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal's type string; None for other types."""
    match = _DECIMAL.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def iceberg_type(text: str) -> PrimitiveType:
    """The Iceberg type of a type string.

    Raises:
        ConfigurationError: the text names none.
    """
    if parts := decimal_parts(text):
        return DecimalType(*parts)
    if text not in _PRIMITIVES:
        raise ConfigurationError(f"unknown type {text!r}: use one of {', '.join(_PRIMITIVES)}, decimal(p, s)")
    return _PRIMITIVES[text][0]


def spark_type(text: str) -> str:
    """What Spark's SQL calls the type of a type string."""
    if parts := decimal_parts(text):
        return f"decimal({parts[0]},{parts[1]})"
    return _PRIMITIVES[text][1]


def wider(old: str, new: str) -> str | None:
    """The narrower of the types that hold every value of both without touching a file; None when there is none.

    >>> wider("int", "long"), wider("long", "int"), wider("string", "int")
    ('long', 'long', None)
    """
    if old == new:
        return old
    if promoted := _WIDER.get((old, new)) or _WIDER.get((new, old)):
        return promoted
    before, after = decimal_parts(old), decimal_parts(new)
    if before and after and before[1] == after[1]:
        return f"decimal({max(before[0], after[0])}, {before[1]})"
    return None


_DIGITS = {"int": 10, "long": 19}


def common_number(old: str, new: str) -> str | None:
    """The narrowest type of numbers that holds every value of both; None when none holds them all exactly.

    >>> joined("int", "decimal(8, 2)"), joined("decimal(8, 2)", "decimal(8, 4)"), joined("long", "double")
    ('decimal(12, 2)', 'decimal(10, 4)', None)
    """
    if promoted := wider(old, new):
        return promoted
    if {old, new} <= {"int", "float", "double"}:
        return "double"
    parts = [decimal_parts(kind) or ((_DIGITS[kind], 0) if kind in _DIGITS else None) for kind in (old, new)]
    if None in parts:
        return None
    scale = max(part[1] for part in parts if part)
    precision = max(part[0] - part[1] for part in parts if part) + scale
    return f"decimal({precision}, {scale})" if precision <= 38 else None


def declared(table: str, column: str, old: str | None, new: str) -> str | None:
    """The type of a column that was declared as ``new`` by DDL, where no message tells it and it was ``old`` so far.

    A declaration is no value: a narrower one changes nothing, and how dates, times and bytes are written in messages it
    does not tell.

    Returns:
        A type string; None where the messages have to tell it.

    Raises:
        IncompatibleSchemaError: numbers became text.
    """
    if old is None:
        return new if is_number(new) or new in {"string", "boolean"} else None
    if is_number(old) and new == "string":
        raise IncompatibleSchemaError(
            f"{table}: column {column!r} changed from {old} to {new}, which would lose data. The table stays as it is; "
            f"give the type in the source file (`columns: {{{column}: ...}}`) or rebuild the table."
        )
    return (common_number(old, new) if is_number(old) and is_number(new) else None) or old


def is_number(text: str) -> bool:
    """Whether a type string is one of a number.

    >>> is_number("decimal(8, 2)"), is_number("boolean")
    (True, False)
    """
    return text in {"int", "long", "float", "double"} or decimal_parts(text) is not None
