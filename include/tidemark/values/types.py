"""Column types: Iceberg type strings, Spark's names for them, and the type that holds the values of two types.

Source files and shapes use the same type strings: ``boolean int long float double date timestamp timestamptz string
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

from tidemark.errors import ConfigurationError

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
"""The promotions that Iceberg makes without rewriting files. It can also raise the precision of a decimal."""


def decimal_parts(text: str) -> tuple[int, int] | None:
    """Return the precision and scale of a decimal's type string; None for other types."""
    match = _DECIMAL.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def iceberg_type(text: str) -> PrimitiveType:
    """Return the Iceberg type of a type string.

    Raises:
        ConfigurationError: the text names no type.
    """
    if parts := decimal_parts(text):
        return DecimalType(*parts)
    if text not in _PRIMITIVES:
        raise ConfigurationError(f"unknown type {text!r}: use one of {', '.join(_PRIMITIVES)}, decimal(p, s)")
    return _PRIMITIVES[text][0]


def spark_type(text: str) -> str:
    """Return the name of the type in Spark's SQL."""
    if parts := decimal_parts(text):
        return f"decimal({parts[0]},{parts[1]})"
    return _PRIMITIVES[text][1]


def wider(old: str, new: str) -> str | None:
    """Return the narrowest type that holds every value of both and needs no file rewritten; None when there is none.

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
    """Return the narrowest number type that holds every value of both exactly; None when there is none.

    >>> common_number("int", "decimal(8, 2)"), common_number("decimal(8, 2)", "decimal(8, 4)")
    ('decimal(12, 2)', 'decimal(10, 4)')
    >>> common_number("long", "double") is None
    True
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


def declared(old: str | None, new: str) -> str | None:
    """Return the type of a column that DDL declares as ``new``, where the messages declare no type.

    The column had the type ``old`` so far. A narrower declaration changes nothing, because the values that exist stay.
    A number or boolean that becomes text is text, which holds the values of both as their messages write them. A
    declaration does not say how messages write dates, times and bytes, so such a type is not taken from DDL.

    Returns:
        A type string; None where only the messages can give the type, and where a boolean becomes a number.
    """
    if old is None:
        return new if is_number(new) or new in {"string", "boolean"} else None
    if old == "boolean" and is_number(new):
        return None
    if new == "string" and (is_number(old) or old == "boolean"):
        return "string"
    return (common_number(old, new) if is_number(old) and is_number(new) else None) or old


def is_number(text: str) -> bool:
    """Return whether a type string names a number type.

    >>> is_number("decimal(8, 2)"), is_number("boolean")
    (True, False)
    """
    return text in {"int", "long", "float", "double"} or decimal_parts(text) is not None
