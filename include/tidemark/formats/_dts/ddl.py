"""The text of DDL: the tables that a TRUNCATE empties, and changes of rows, which are none.

DTS gives the text, but often only the database of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemark.errors import MalformedMessageError
from tidemark.events import TableId
from tidemark.formats._statements import row_change, statement_only
from tidemark.formats._truncations import truncation_in

DIALECTS: Final[Mapping[str, str]] = {
    "MySQL": "mysql", "DRDS": "mysql", "Oracle": "oracle", "SQLServer": "tsql", "PostgreSQL": "postgres",
    "PPAS": "postgres",
}  # fmt: skip
"""By source type: the sqlglot dialect of its DDL."""


def refuse_row_change(statement: str, dialect: str) -> None:
    """Refuse text that changes rows: they would be lost.

    PostgreSQL's rows come from its log, whatever the text says: a trigger takes all that the client sent
    (``current_query()``), where other statements may stand before the DDL.

    Raises:
        IncompleteMessageError: a log of MySQL in STATEMENT or MIXED format has the text in place of the rows.
        MalformedMessageError: no such log is known of the source.
    """
    verb = None if dialect == "postgres" else row_change(statement, dialect)
    if verb is not None and dialect == "mysql":
        raise statement_only(verb, statement)
    if verb is not None:
        raise MalformedMessageError(f"a DDL whose text changes rows, without the rows ({verb}): {statement[:200]!r}")


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
