"""The text that stands for a value, in three SQL dialects and in Python. Equal values have equal text, and only they.

A row is the texts of its columns with bars between. In text, ``~`` is written ``~0`` and a bar ``~1``; null is ``~2``.
So no two different rows have one text, and null is not the empty text.

The templates are SQL text without any name or value in it: ``x`` stands for the column, and its expression takes the
place of it in the parsed tree.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache

import sqlglot
from sqlglot import exp

from tidemark.reconciliation.kinds import Pair, ValueKind
from tidemark.values.plain_types import Value

LAKE = "duckdb"

NULL = "~2"

_MOST_ARGUMENTS = 50
"""Most texts that one call joins. PostgreSQL allows a hundred arguments."""

_FRACTION_TRIMMED = "TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM DATE_FORMAT(x, '%Y-%m-%d %H:%i:%s.%f')))"

_MYSQL_NUMBER = (
    "CASE WHEN LOCATE('.', CAST(x + 0 AS CHAR)) > 0 "
    "THEN TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST(x + 0 AS CHAR))) ELSE CAST(x + 0 AS CHAR) END"
)
"""``x + 0``: without the leading zeros of ZEROFILL, and a BIT as a number."""

_TEMPLATES: Mapping[str, Mapping[ValueKind, str]] = {
    # The session has UTC, dates as ISO 8601 writes them, and nothing but the catalog in its search path.
    "postgres": {
        ValueKind.BOOLEAN: "CAST(CAST(x AS INT) AS TEXT)",
        ValueKind.NUMBER: "CAST(TRIM_SCALE(CAST(x AS DECIMAL)) AS TEXT)",
        ValueKind.DOUBLE: (
            "CASE WHEN x = 'NaN' THEN 'NaN' "
            "ELSE CAST(CAST('x' || ENCODE(FLOAT8SEND(x + CAST(0 AS DOUBLE PRECISION)), 'hex') AS BIT(64)) AS TEXT) END"
        ),
        ValueKind.DATE: "CAST(x AS TEXT)",
        ValueKind.WALL: "CAST(x AS TEXT)",
        ValueKind.INSTANT: "CAST(x AT TIME ZONE 'UTC' AS TEXT)",
        ValueKind.TEXT: "CAST(x AS TEXT)",
        ValueKind.PADDED: "RTRIM(CAST(x AS TEXT), ' ')",
        ValueKind.BYTES: "ENCODE(x, 'hex')",
    },
    "mysql": {
        ValueKind.BOOLEAN: "CAST((x <> 0) AS CHAR)",
        ValueKind.NUMBER: _MYSQL_NUMBER,
        ValueKind.DATE: "CAST(x AS CHAR)",
        ValueKind.WALL: _FRACTION_TRIMMED,
        ValueKind.INSTANT: _FRACTION_TRIMMED,
        ValueKind.TEXT: "CONVERT(x USING utf8mb4)",
        ValueKind.BYTES: "LOWER(HEX(x))",
    },
    LAKE: {
        ValueKind.BOOLEAN: "CAST(CAST(x AS INT) AS TEXT)",
        ValueKind.NUMBER: (
            "CASE WHEN CONTAINS(CAST(x AS TEXT), '.') THEN RTRIM(RTRIM(CAST(x AS TEXT), '0'), '.') "
            "ELSE CAST(x AS TEXT) END"
        ),
        ValueKind.DOUBLE: (
            "CASE WHEN ISNAN(CAST(x AS DOUBLE)) THEN 'NaN' "
            "ELSE CAST(CAST(CAST(x AS DOUBLE) + CAST(0 AS DOUBLE) AS BIT) AS TEXT) END"
        ),
        ValueKind.DATE: "STRFTIME(x, '%Y-%m-%d')",
        ValueKind.WALL: "RTRIM(RTRIM(STRFTIME(x, '%Y-%m-%d %H:%M:%S.%f'), '0'), '.')",
        ValueKind.INSTANT: "RTRIM(RTRIM(STRFTIME(x, '%Y-%m-%d %H:%M:%S.%f'), '0'), '.')",
        ValueKind.TEXT: "CAST(x AS TEXT)",
        ValueKind.PADDED: "RTRIM(CAST(x AS TEXT), ' ')",
        ValueKind.BYTES: "LOWER(HEX(x))",
    },
}

_DIGESTS: Mapping[str, str] = {
    "postgres": "MD5(CONVERT_TO(x, 'UTF8'))",
    "mysql": "MD5(CONVERT(x USING utf8mb4))",
    LAKE: "MD5(x)",
}
"""MD5 of the text in UTF-8. It is no defence against anybody who chooses values to collide; it finds accidents."""

_NUMBERS: Mapping[str, str] = {
    "postgres": "CAST(CAST('x' || SUBSTRING(x, 1, 15) AS BIT(60)) AS BIGINT)",
    "mysql": "CAST(CONV(SUBSTRING(x, 1, 15), 16, 10) AS UNSIGNED)",
    LAKE: "CAST('0x' || SUBSTRING(x, 1, 15) AS BIGINT)",
}
"""The first sixty bits of a digest as a number. Their sum over a bucket is its checksum, whatever the order."""

_ESCAPED = "REPLACE(REPLACE(x, '~', '~0'), '|', '~1')"

_WRITTEN = frozenset({ValueKind.TEXT, ValueKind.PADDED})
"""Kinds whose text may contain any character."""


@cache
def _parsed(template: str, dialect: str) -> exp.Expression:
    # Within a query: alone, MySQL's REPLACE would be a statement.
    return _expression(sqlglot.parse_one(f"SELECT {template}", read=dialect, into=exp.Select).selects[0])


def _filled(template: str, dialect: str, given: exp.Expression) -> exp.Expression:
    """Return the tree of a template, with an expression in the place of ``x``."""

    def fill(node: exp.Expression) -> exp.Expression:
        is_place = isinstance(node, exp.Column) and node.name == "x" and not node.this.quoted
        return given.copy() if is_place else node

    return _expression(_parsed(template, dialect).transform(fill))


def _expression(node: object) -> exp.Expression:
    if not isinstance(node, exp.Expression):
        raise TypeError(f"no expression: {type(node).__name__}")
    return node


def cell(dialect: str, kind: ValueKind, column: exp.Expression) -> exp.Expression:
    """Return the expression of the text of one column within the text of its row; never null."""
    text = _filled(_TEMPLATES[dialect][kind], dialect, column)
    if kind in _WRITTEN:
        text = _filled(_ESCAPED, dialect, text)
    return exp.Coalesce(this=text, expressions=[exp.Literal.string(NULL)])


def joined(cells: Sequence[exp.Expression]) -> exp.Expression:
    """Return the expression of the text of several columns."""
    parts = list(cells)
    while len(parts) > 1:
        parts = [_bars(parts[at : at + _MOST_ARGUMENTS]) for at in range(0, len(parts), _MOST_ARGUMENTS)]
    return parts[0]


def _bars(cells: Sequence[exp.Expression]) -> exp.Expression:
    if len(cells) == 1:
        return cells[0]
    return exp.Anonymous(this="CONCAT_WS", expressions=[exp.Literal.string("|"), *cells])


def digest(dialect: str, text: exp.Expression) -> exp.Expression:
    """Return the expression of the digest of a text: 32 hexadecimal digits."""
    return _filled(_DIGESTS[dialect], dialect, text)


def number(dialect: str, digest_: exp.Expression) -> exp.Expression:
    """Return the expression of a digest as a number."""
    return _filled(_NUMBERS[dialect], dialect, digest_)


def text_of(kind: ValueKind, value: Value) -> str:
    """Return the text of a value that ``values.plain`` read, not escaped yet; of a key, so never of a double."""
    match kind:
        case ValueKind.BOOLEAN:
            return str(int(value in {True, "1"}))
        case ValueKind.NUMBER:
            digits = format(Decimal(str(value)), "f")
            digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
            return "0" if digits == "-0" else digits
        case ValueKind.WALL | ValueKind.INSTANT:
            whole = str(value).replace("T", " ").removesuffix("Z")
            return whole.rstrip("0").rstrip(".") if "." in whole else whole
        case ValueKind.BYTES:
            return base64.b64decode(str(value)).hex()
        case ValueKind.PADDED:
            return str(value).rstrip(" ")
    return str(value)


def key_of(pairs: Sequence[Pair], values: Mapping[str, Value]) -> str:
    """Return the text of a key by the columns of the lake, as ``joined`` makes it in SQL.

    >>> key_of([Pair(source="a", lake="a", kind=ValueKind.TEXT)], {"a": "x|~"})
    'x~1~0'
    """
    texts = [(pair.kind, text_of(pair.kind, values[pair.lake])) for pair in pairs]
    return "|".join(text.replace("~", "~0").replace("|", "~1") if kind in _WRITTEN else text for kind, text in texts)


def key_cells(text: str) -> list[str]:
    """Return the texts of the columns of a key.

    >>> key_cells("x~1~0|7")
    ['x|~', '7']
    """
    return [cell.replace("~1", "|").replace("~0", "~") for cell in text.split("|")]


def given(kind: ValueKind, text: str) -> str:
    """Return the text of a key's column as people write it, and as ``text_of`` takes it: bytes as Base64."""
    return base64.b64encode(bytes.fromhex(text)).decode() if kind is ValueKind.BYTES else text
