"""What a source file tells of the values of its tables, found by the tables' names.

Read on workers too, and by Airflow with every source file: nothing that takes long to import.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tidemark.events import Column, Encoding, Shape

DeclaredEncodings = Mapping[str, tuple[str, str]]
"""Column -> type string and encoding."""

T = TypeVar("T")


def entry_for(tables: Mapping[str, T], name: str) -> T | None:
    """The entry of a table: that of its exact name, else of the first pattern (``*`` and ``?``) that matches it."""
    if name in tables:
        return tables[name]
    return next((entry for pattern, entry in tables.items() if _matches(pattern, name)), None)


def _matches(pattern: str, name: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, name, re.DOTALL) is not None


_TIMES = ("date", "timestamp", "timestamptz", "string")

_NUMBERS = ("int", "long", "float", "double", "decimal(p, s)", "string")

_HELD_BY: Mapping[Encoding, Sequence[str]] = {
    **dict.fromkeys(
        (
            Encoding.EPOCH_SECONDS,
            Encoding.EPOCH_MILLIS,
            Encoding.EPOCH_MICROS,
            Encoding.EPOCH_NANOS,
            Encoding.EPOCH_DAYS,
        ),
        _TIMES,
    ),
    **dict.fromkeys((Encoding.MILLIS_OF_DAY, Encoding.MICROS_OF_DAY, Encoding.NANOS_OF_DAY), ("string",)),
    **dict.fromkeys((Encoding.UNSCALED_BASE64, Encoding.SCALED_STRUCT), _NUMBERS),
}
"""Types of columns by the encoding of their values; those not named here may hold whatever text or bytes come."""


def held_by(encoding: Encoding, kind: str) -> Sequence[str] | None:
    """None where a type may hold values of an encoding; else the types that may.

    >>> held_by(Encoding.EPOCH_MILLIS, "date"), held_by(Encoding.MICROS_OF_DAY, "long")
    (None, ('string',))
    """
    name = "decimal(p, s)" if kind.startswith("decimal(") else kind
    allowed = _HELD_BY.get(encoding, (name,))
    return None if name in allowed else allowed


def as_declared(shape: Shape, written: DeclaredEncodings) -> Shape:
    """The shape with the types and encodings of the source file, in columns of which its message tells neither."""
    return Shape(tuple(_as_declared(column, written) for column in shape.columns))


def _as_declared(column: Column, written: DeclaredEncodings) -> Column:
    if column.name not in written or column.type is not None or column.encoding is not Encoding.PLAIN:
        return column
    kind, encoding = written[column.name]
    return Column(column.name, kind, Encoding(encoding))
