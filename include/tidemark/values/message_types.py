"""The types that messages declare, where they go beyond the types of columns: decimals of any precision and scale.

A shape keeps such a type as the message has it, because the scale says how the value is written. ``table_type`` gives
the type of the column. The decoders and Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import functools
import re

from tidemark.events import Column, Encoding

_DECIMAL = re.compile(r"decimal\( *([0-9]{1,5}) *, *(-?[0-9]{1,5}) *\)")

DIGITS = 38
"""The most digits of a decimal in Iceberg."""


@functools.lru_cache(maxsize=1024)
def decimal_declared(text: str | None) -> tuple[int, int] | None:
    """Return the precision and scale of a decimal type of any size; None for other types.

    >>> decimal_declared("decimal(20, -2)"), decimal_declared("long")
    ((20, -2), None)
    """
    match = _DECIMAL.fullmatch(text or "")
    return (int(match[1]), int(match[2])) if match else None


def table_type(declared: str) -> str:
    """Return the type of a column that messages declare with a type: text where no decimal of Iceberg is wide enough.

    >>> table_type("decimal(20, -2)"), table_type("decimal(65, 30)"), table_type("decimal(18, 2)")
    ('decimal(22, 0)', 'string', 'decimal(18, 2)')
    """
    parts = decimal_declared(declared)
    if parts is None:
        return declared
    precision, scale = parts
    if scale < 0:
        precision, scale = precision - scale, 0
    if max(precision, scale) > DIGITS:
        return "string"
    return f"decimal({precision}, {scale})" if parts[1] < 0 else declared


def is_open_ended(column: Column) -> bool:
    """Return whether a column holds numbers of any size, so that it is text unless somebody gives it another type."""
    if column.encoding is Encoding.SCALED_STRUCT:
        return column.type == "string"
    return decimal_declared(column.type) is not None and table_type(column.type or "") == "string"
