"""The text that stands for a value, in three SQL dialects and in Python. Equal values have equal text, and only they.

A row is the texts of its columns with bars between. In text, ``~`` is written ``~0`` and a bar ``~1``; null is ``~2``.
So no two different rows have one text, and null is not the empty text. Where long values are shortened, ``~3`` and a
digest stand for each.

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

from tidemark.reconciliation.kinds import ColumnPair, ValueKind
from tidemark.values.plain_types import Value

LAKE = "duckdb"

NULL = "~2"

LONG = 1000
"""Most bytes of a text or of bytes that ``short_cell`` writes out."""

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


_SHORTENED: Mapping[str, Mapping[ValueKind, str]] = {
    # A text that one of these makes need not fit into a packet, as those of CAST, REPLACE and HEX must.
    "mysql": {
        ValueKind.TEXT: (
            f"CASE WHEN LENGTH(CONVERT(x USING utf8mb4)) > {LONG} THEN CONCAT('~3', MD5(CONVERT(x USING utf8mb4))) END"
        ),
        ValueKind.BYTES: f"CASE WHEN LENGTH(x) > {LONG} THEN CONCAT('~3', MD5(x)) END",
    },
    LAKE: {
        ValueKind.TEXT: f"CASE WHEN STRLEN(x) > {LONG} THEN '~3' || MD5(x) END",
        ValueKind.BYTES: f"CASE WHEN OCTET_LENGTH(x) > {LONG} THEN '~3' || MD5(x) END",
    },
}
"""What stands for a long value; null for any other."""

_OF_NULL = f"CASE WHEN x IS NULL THEN '{NULL}' END"
"""A value without a text has none in the row either: with that of null it would equal a null on the other side."""


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


def short_cell(dialect: str, kind: ValueKind, column: exp.Expression) -> exp.Expression:
    """Return the same as ``cell``, but the digest of a value that is long; null for a value without a text.

    MySQL gives null for a text that would be longer than ``max_allowed_packet``, 4 MiB in older versions: a row with a
    long value would have no text, or the text of a row with null.
    """
    text = cell(dialect, kind, column)
    template = _SHORTENED.get(dialect, {}).get(kind)
    if template is None:
        return text
    text.set("expressions", [_filled(_OF_NULL, dialect, column)])
    return exp.Coalesce(this=_filled(template, dialect, column), expressions=[text])


def joined(cells: Sequence[exp.Expression], *, with_null: bool = False) -> exp.Expression:
    """Return the expression of the text of several columns.

    Args:
        cells: the texts of the columns.
        with_null: whether the text is null if one of a column is; else such a column is left out.
    """
    parts = list(cells)
    while len(parts) > 1:
        some = [parts[at : at + _MOST_ARGUMENTS] for at in range(0, len(parts), _MOST_ARGUMENTS)]
        parts = [_bars(each, with_null=with_null) for each in some]
    return parts[0]


def _bars(cells: Sequence[exp.Expression], *, with_null: bool) -> exp.Expression:
    bar = exp.Literal.string("|")
    if len(cells) == 1:
        return cells[0]
    if with_null:
        between = [each for cell_ in cells for each in (bar.copy(), cell_)]
        return exp.Anonymous(this="CONCAT", expressions=between[1:])
    return exp.Anonymous(this="CONCAT_WS", expressions=[bar, *cells])


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


def key_of(pairs: Sequence[ColumnPair], values: Mapping[str, Value]) -> str:
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
