"""Which table of the source a statement means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidemark.ddl.changes import Change, Name, RenameTable
from tidemark.events import TableId
from tidemark.ledger.rows import StatementRow


def meant(named: Name | None, row: StatementRow) -> TableId:
    """Return the table that a statement names; the message completes the parts of its name that are missing."""
    of_message = TableId(row.database, row.schema, row.name or "")
    if named is None:
        return of_message
    parts = named.parts
    if len(parts) == 3:
        return TableId(*parts)
    if len(parts) == 1:
        return TableId(of_message.database, of_message.schema, parts[0])
    return TableId(parts[0], None, parts[1]) if row.dialect == "mysql" else TableId(of_message.database, *parts)


def known_table(named: Name | None, row: StatementRow, known: Mapping[str, str]) -> str | None:
    """Return the table that a statement means, as source files name it; None if there is no such table.

    Args:
        named: the name in the statement.
        row: the statement with its message.
        known: the tables that have events, by their names in small letters.
    """
    found = known.get(str(meant(named, row)).casefold())
    if found is not None or named is None or row.name:
        return found
    # The message names no table: take the known table of this name, if there is exactly one.
    ending = "." + ".".join(named.parts).casefold()
    candidates = [name for folded, name in known.items() if f".{folded}".endswith(ending)]
    return candidates[0] if len(candidates) == 1 else None


def perhaps_meant(row: StatementRow, known: Mapping[str, str]) -> list[str]:
    """Return the known tables that a statement may concern whose table is not known.

    If its message names no table either, they are those that the text names, else those of a database or an owner that
    it names, else all.
    """
    if row.name:
        return []
    words = set(_NAMES.findall(row.statement.casefold()))
    named = [name for folded, name in known.items() if folded.rpartition(".")[2] in words]
    owned = [name for folded, name in known.items() if not words.isdisjoint(folded.split(".")[:-1])]
    return owned if _OF_A_DATABASE.match(row.statement) else named or owned or list(known.values())


_NAMES = re.compile(r"[\w$#]+")

_OF_A_DATABASE = re.compile(r"\s*drop\s+(?:database|schema)\b", re.IGNORECASE)


def renamed_by(later: Iterable[Change], named: Name | None, row: StatementRow) -> Name | None:
    """Return the name that a table has behind the rest of a statement, which may rename it, too.

    Events from the statement's position on have that name, and the changes of the statement are for these.
    """
    for change in later:
        if (
            isinstance(change, RenameTable)
            and str(meant(change.table, row)).casefold() == str(meant(named, row)).casefold()
        ):
            named = change.new
    return named
