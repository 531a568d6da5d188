"""The types and encodings that a source file declares for its tables, found by the table's name.

Spark's workers import this module, and Airflow imports it with every source file. So it imports nothing slow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from tidemark.events import Column, Encoding, Shape

DeclaredEncodings = Mapping[str, tuple[str, str]]
"""By column: its type string and its encoding."""

T = TypeVar("T")


def entry_for(tables: Mapping[str, T], name: str) -> T | None:
    """Return the entry under the table's exact name, else the first whose pattern matches; else None."""
    found = entry_name_for(tables, name)
    return None if found is None else tables[found]


def entry_name_for(tables: Mapping[str, object], name: str) -> str | None:
    """Return the name of a table's entry: the table's own, else the first pattern that matches; None for none."""
    return name if name in tables else next((pattern for pattern in tables if matched(pattern, name)), None)


def is_expression(name: str) -> bool:
    r"""Return whether the name of an entry is a regular expression: it has a group or a backslash.

    >>> is_expression(r"shop_(\d+).orders"), is_expression("shop_*.orders")
    (True, False)
    """
    return "(" in name or "\\" in name


def is_pattern(name: str) -> bool:
    """Return whether the name of an entry may match several tables."""
    return is_expression(name) or "*" in name or "?" in name


def matched(pattern: str, name: str) -> re.Match[str] | None:
    """Return the match of a whole name with a pattern: a regular expression, or a text with ``*`` and ``?``."""
    if is_expression(pattern):
        return re.fullmatch(pattern, name)
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), name, re.DOTALL)


def may_match_longer(pattern: str, begin: str) -> bool:
    """Return whether a pattern may match a name that begins so; of a regular expression nobody can tell, so it may.

    >>> [may_match_longer("shop.*_log", begin) for begin in ("shop.a", "shop.a_log_b", "hr.a")]
    [True, True, False]
    """
    return is_expression(pattern) or any(matched(pattern[:end], begin) for end in range(len(pattern) + 1))


_TIMES = ("date", "timestamp", "timestamptz", "string")

_NUMBERS = ("int", "long", "float", "double", "decimal(p, s)", "string")

_TYPES_FOR: Mapping[Encoding, Sequence[str]] = {
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
"""The column types that may hold values of an encoding. An encoding that is not listed here fits every type."""


def types_for(encoding: Encoding, kind: str) -> Sequence[str] | None:
    """Return the types that may hold values of an encoding; None where the type ``kind`` is one of them.

    >>> types_for(Encoding.EPOCH_MILLIS, "date"), types_for(Encoding.MICROS_OF_DAY, "long")
    (None, ('string',))
    """
    name = "decimal(p, s)" if kind.startswith("decimal(") else kind
    allowed = _TYPES_FOR.get(encoding, (name,))
    return None if name in allowed else allowed


def as_declared(shape: Shape, written: DeclaredEncodings) -> Shape:
    """Return the shape with the source file's type and encoding in each column whose encoding the messages do not give.

    A schema that calls a column text does not give its encoding: the text may be bytes in hexadecimal digits.
    """
    return Shape(tuple(_as_declared(column, written) for column in shape.columns))


def _as_declared(column: Column, written: DeclaredEncodings) -> Column:
    is_described = column.encoding is not Encoding.PLAIN or column.type not in {None, "string"}
    if column.name not in written or is_described:
        return column
    kind, encoding = written[column.name]
    return Column(column.name, kind, Encoding(encoding))
