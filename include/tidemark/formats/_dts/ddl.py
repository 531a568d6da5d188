"""The tables that a TRUNCATE empties. For DDL, DTS gives the text, but often only the database of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemark.errors import MalformedMessageError
from tidemark.events import TableId
from tidemark.formats._truncations import truncation_in

DIALECTS: Final[Mapping[str, str]] = {
    "MySQL": "mysql", "DRDS": "mysql", "Oracle": "oracle", "SQLServer": "tsql", "PostgreSQL": "postgres",
    "PPAS": "postgres",
}  # fmt: skip
"""By source type: the sqlglot dialect of its DDL."""


def truncated(statement: str, dialect: str, named: TableId | None) -> list[TableId]:
    """Return the tables that ``statement`` empties; an empty list if it is not a TRUNCATE.

    Args:
        statement: DDL text, never executed.
        dialect: one of ``DIALECTS``.
        named: the table in ``objectName``. Its name is empty if ``objectName`` is a database.

    Raises:
        MalformedMessageError: the statement begins with TRUNCATE, but its tables cannot be found.
    """
    found = truncation_in(statement, dialect)
    if found is None:
        return []
    if found.rest.partition(";")[2].strip():
        raise MalformedMessageError(f"a TRUNCATE whose tables are not certain: {statement[:200]!r}")
    if named is not None and named.name:
        return [named]
    return [_table(parts, dialect, named) for parts in found.tables]


def _table(parts: tuple[str, ...], dialect: str, named: TableId | None) -> TableId:
    """Return the table of a name. A single name before it is the database in MySQL, and the schema elsewhere."""
    *before, name = parts
    database = named.database if named is not None else None
    if len(before) == 2:
        return TableId(before[0], before[1], name)
    if dialect == "mysql":
        return TableId(before[0] if before else database, None, name)
    return TableId(database, before[0] if before else None, name)
