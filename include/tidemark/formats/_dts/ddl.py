"""The text of DDL: the tables that a TRUNCATE empties, and changes of rows, which are none.

DTS gives the text, but often only the database of the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tidemark.errors import IncompleteMessageError, MalformedMessageError
from tidemark.events import TableId
from tidemark.formats._dts.names import names_in, table_of
from tidemark.formats._statements import row_change, statement_only
from tidemark.formats._truncations import empties, truncation_in

DIALECTS: Final[Mapping[str, str]] = {
    "MySQL": "mysql", "DRDS": "mysql", "Oracle": "oracle", "SQLServer": "tsql", "PostgreSQL": "postgres",
    "PPAS": "postgres",
}  # fmt: skip
"""By source type: the sqlglot dialect of its DDL."""


_NO_TABLE: Final = "\0"
"""Stands for the table in ``objectName`` where a DDL names the database alone. No table is called so."""


def subject_of(statement: str, name: str | None, tags: Mapping[bytes, bytes]) -> TableId | None:
    """Return the table of a DDL. Its ``objectName`` is often the database alone; the table's name is then empty.

    In PolarDB-X it is the logical table, which the tags name. ``objectName`` may name one of its shards.

    Args:
        statement: DDL text, never executed.
        name: ``objectName``.
        tags: of the Record.

    Raises:
        IncompleteMessageError: the statement is about a shard.
        MalformedMessageError: ``objectName`` or a tag is no name.
    """
    if not name:
        return None
    database, table = tags.get(b"l_db_name"), tags.get(b"l_tb_name")
    parts = name if "." in name else f"{name}.{_NO_TABLE}"
    subject = table_of(parts, database, table, None)
    if subject.name == _NO_TABLE:
        subject = TableId(subject.database, None, "")
    if database or table:
        _check_logical(statement, name, subject)
    return subject


def _check_logical(statement: str, name: str, subject: TableId) -> None:
    """Check that a statement names the logical table, and no shard: that has a part of the rows, and which is unknown.

    Raises:
        IncompleteMessageError: it does not.
    """
    logical = {part.casefold() for part in (subject.database, subject.name) if part}
    shards = {part.casefold() for part in names_in(name)} - logical
    if any(_names(statement, part) for part in shards) or not _names(statement, subject.name.casefold()):
        raise IncompleteMessageError(
            f"a statement about a shard ({name}) of {subject}, which has a part of its rows: {statement[:200]!r}; once "
            "all shards have it, load the table again"
        )


def _names(statement: str, name: str) -> bool:
    """Return whether a name stands in a statement, in any case; an empty name does."""
    return not name or re.search(rf"(?<![\w$@]){re.escape(name)}(?![\w$@])", statement.casefold()) is not None


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
        MalformedMessageError: the statement begins with TRUNCATE, but its tables cannot be found, or are others than
            the one that is named.
    """
    found = truncation_in(statement, dialect)
    if found is None:
        return []
    if found.rest.partition(";")[2].strip():
        raise MalformedMessageError(f"a TRUNCATE whose tables are not certain: {statement[:200]!r}")
    if named is not None and named.name:
        empties(named, statement, dialect, says_so=False)
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
