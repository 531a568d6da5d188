"""The tables that a TRUNCATE empties. For DDL, DTS gives the text, but often only the database of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tidemark.errors import MalformedMessageError
from tidemark.events import TableId

DIALECTS: Final[Mapping[str, str]] = {
    "MySQL": "mysql", "DRDS": "mysql", "Oracle": "oracle", "SQLServer": "tsql", "PostgreSQL": "postgres",
    "PPAS": "postgres",
}  # fmt: skip
"""By source type: the sqlglot dialect of its DDL."""

_GAP: Final = r"(?:\s|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n)"

_NAME: Final = r'(?:`(?:[^`]|``)+`|"(?:[^"]|"")+"|\[(?:[^]]|\]\])+\]|[\w$#]+)'

_TABLE: Final = rf"{_NAME}(?:{_GAP}*\.{_GAP}*{_NAME}){{0,2}}"

_TRUNCATE: Final = re.compile(rf"{_GAP}*truncate\b", re.IGNORECASE | re.DOTALL)

_TABLES: Final = re.compile(
    rf"{_GAP}*truncate{_GAP}+(?:table{_GAP}+)?(?:only{_GAP}+)?(?P<tables>{_TABLE}(?:{_GAP}*,{_GAP}*{_TABLE})*)"
    rf"(?P<rest>[^;]*);?\s*",
    re.IGNORECASE | re.DOTALL,
)

_EACH: Final = re.compile(_TABLE, re.DOTALL)

_PART: Final = re.compile(_NAME, re.DOTALL)

_NOT_THE_WHOLE: Final = re.compile(r"\bpartitions?\b", re.IGNORECASE)


def truncated(statement: str, dialect: str, named: TableId | None) -> list[TableId]:
    """Return the tables that ``statement`` empties; an empty list if it is not a TRUNCATE.

    Args:
        statement: DDL text, never executed.
        dialect: one of ``DIALECTS``.
        named: the table in ``objectName``. Its name is empty if ``objectName`` is a database.

    Raises:
        MalformedMessageError: the statement begins with TRUNCATE, but its tables cannot be found.
    """
    if not _TRUNCATE.match(statement):
        return []
    match = _TABLES.fullmatch(statement) if len(statement) <= 10_000 else None
    if match is None or _NOT_THE_WHOLE.search(match["rest"]) or match["tables"].lower() == "cluster":
        raise MalformedMessageError(f"a TRUNCATE of what cannot be told: {statement[:200]!r}")
    if named is not None and named.name:
        return [named]
    return [_table(found[0], dialect, named) for found in _EACH.finditer(match["tables"])]


def _table(text: str, dialect: str, named: TableId | None) -> TableId:
    """Return the table of a name. A single name before it is the database in MySQL, and the schema elsewhere."""
    *before, name = [_unquoted(found[0], dialect) for found in _PART.finditer(text)]
    database = named.database if named is not None else None
    if len(before) == 2:
        return TableId(before[0], before[1], name)
    if dialect == "mysql":
        return TableId(before[0] if before else database, None, name)
    return TableId(database, before[0] if before else None, name)


def _unquoted(name: str, dialect: str) -> str:
    """Return a name as the catalog has it. Unquoted names are in upper case in Oracle, in lower case in PostgreSQL."""
    quote = name[0]
    if quote == "[":
        return name[1:-1].replace("]]", "]")
    if quote in '`"':
        return name[1:-1].replace(quote * 2, quote)
    return name.upper() if dialect == "oracle" else name.lower() if dialect == "postgres" else name
