"""What statements declare of the values of columns that they added: a length, a range, labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET, UnsetType

from tidemark.ddl.changes import AddColumn, Change, ChangeType, RenameTable, Unparsed
from tidemark.ddl.stated_tables import KnownTables
from tidemark.ledger.rows import StatementRow
from tidemark.values.bounds import Bounds, widest

_Told = dict[str, list[str | UnsetType]]
"""Column in small letters -> what each statement about it declares, in the order of the log."""


def stated_bounds(rows: Iterable[StatementRow], objects: Iterable[str]) -> dict[str, dict[str, Bounds]]:
    """Return by table, and by column in small letters, the widest bounds that statements declared.

    A column has bounds if a statement added it, and each later statement about it declared some. Tables that were
    renamed have none. Tables of a statement that was not understood, or that may mean several, have none either:
    it may have changed the type.

    Args:
        rows: the DDL of the source.
        objects: the tables that have events, as the source names them; other tables are left out.
    """
    stated = sorted(rows, key=lambda row: (row.position, row.batch))
    if not stated:
        return {}
    from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    known = KnownTables(objects)
    by_table: dict[str, _Told] = {}
    unsure: set[str] = set()
    for row in stated:
        for change in parse(row.statement, row.dialect):
            tables = _concerned(change, row, known)
            if isinstance(change, Unparsed) and not tables:
                return {}  # it may concern any table
            if isinstance(change, Unparsed | RenameTable) or len(tables) > 1:
                unsure |= tables
            for name in tables:
                _note(by_table.setdefault(name, {}), change)
    found = {name: _agreed(columns) for name, columns in by_table.items() if name not in unsure}
    return {name: columns for name, columns in found.items() if columns}


def _concerned(change: Change, row: StatementRow, known: KnownTables) -> set[str]:
    if isinstance(change, RenameTable):
        return {found for name in (change.table, change.new) for found in known.claimants(name, row, renames=True)}
    return set(known.claimants(change.table, row))


def _note(columns: _Told, change: Change) -> None:
    match change:
        case AddColumn():
            columns.setdefault(change.name.casefold(), []).append(change.bounds or UNSET)
        case ChangeType():
            # What a column was before its first statement is not known.
            columns.setdefault(change.name.casefold(), [UNSET]).append(change.bounds or UNSET)


def _agreed(columns: Mapping[str, Sequence[str | UnsetType]]) -> dict[str, Bounds]:
    return {name: bounds for name, texts in columns.items() if (bounds := widest(texts)) is not None}
