"""The statements that rename or drop tables, each with what it does to names, in its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

import msgspec

from tidemark.ddl.changes import Change, DropTable, RenameTable
from tidemark.ddl.split_renames import Part, RenamePair, in_order, is_part
from tidemark.ddl.stated_tables import KnownTables, meant
from tidemark.ddl.swaps import Swaps
from tidemark.events import TableId
from tidemark.ledger.rows import StatementRow

Step: TypeAlias = RenamePair | str
"""A rename, or the name of a table that is dropped, in small letters."""


class RenameStatement(NamedTuple):
    """A statement that renames or drops tables."""

    rows: list[StatementRow]
    steps: Sequence[Step] = ()
    copies: frozenset[str] = frozenset()
    """Names that a tool's swap takes from its copies, in small letters."""
    aside: frozenset[str] = frozenset()
    """Names that a tool's swap gives to the tables that it puts aside, in small letters."""

    @property
    def pairs(self) -> list[RenamePair]:
        """What the statement renames."""
        return [step for step in self.steps if isinstance(step, RenamePair)]


def named_in(row: StatementRow, objects: Mapping[str, TableId], known: KnownTables) -> set[str]:
    """Return the tables with events that a statement drops, or gives another name, or whose names it gives to others.

    Args:
        row: the statement.
        objects: the tables that have events, by their names in source files.
        known: the same tables.
    """
    pairs = _pairs(row, _renames(row), known, objects)
    names = {name for pair in pairs for name in (pair.old, pair.new)}
    names |= {name for drop in _drops(row) for name in _dropped(drop, row, known)}
    return {table for name in names for table in known.alike(name)}


def drops_any(row: StatementRow) -> bool:
    """Return whether a statement drops a table, with events or without."""
    return bool(_drops(row))


def may_rename(statement: str) -> bool:
    """Return whether a statement may rename a table: most do not, and need not be read for it."""
    words = statement.casefold()
    return "rename" in words or "schema" in words


def may_rename_or_drop(statement: str) -> bool:
    """Return whether a statement may rename a table, or drop one."""
    words = statement.casefold()
    return may_rename(statement) or "drop" in words or "replace" in words


def statements(
    rows: Iterable[StatementRow], known: KnownTables, objects: Mapping[str, TableId], swaps: Swaps
) -> Iterator[RenameStatement]:
    """Yield each statement once, with its renames in order; of one in parts, only if all are there."""
    candidates: dict[tuple[str, str], StatementRow] = {}
    for row in sorted(rows, key=lambda row: (row.position, not row.together, row.batch)):
        if may_rename_or_drop(row.statement):
            candidates.setdefault((row.position, row.statement), row)
    for _, at_place in groupby(candidates.values(), lambda row: row.position):
        parts: list[Part] = []
        for row in at_place:
            whole = RenameStatement([row], list(_steps(row, known, objects, swaps)), *swaps.names_of(row))
            if is_part(row, whole.pairs):
                parts += (Part(row, pair) for pair in whole.pairs)
                whole = whole._replace(steps=())
            yield whole
        for chain in in_order(parts):
            yield RenameStatement([part.row for part in parts if part.pair in chain], chain)


def _steps(row: StatementRow, known: KnownTables, objects: Mapping[str, TableId], swaps: Swaps) -> Iterator[Step]:
    """Yield what a statement renames and drops, in its order, without a tool's swap."""
    renames = [change for change in _renames(row) if not swaps.has(row, change)]
    pairs = dict(zip(renames, _pairs(row, renames, known, objects), strict=False))
    for change in _changes(row):
        if isinstance(change, RenameTable) and change in pairs:
            yield pairs[change]
        elif isinstance(change, DropTable):
            yield from _dropped(change, row, known)


def _changes(row: StatementRow) -> Sequence[Change]:
    from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    return parse(row.statement, row.dialect)


def _renames(row: StatementRow) -> list[RenameTable]:
    return [change for change in _changes(row) if isinstance(change, RenameTable)]


def _drops(row: StatementRow) -> list[DropTable]:
    return [change for change in _changes(row) if isinstance(change, DropTable)]


def _dropped(drop: DropTable, row: StatementRow, known: KnownTables) -> list[str]:
    """Return the name of a table that is dropped, in small letters, if it is certain; it may have no events."""
    tables = known.claimants(drop.table, row) or (str(meant(drop.table, row)),)
    return [tables[0].casefold()] if len(tables) == 1 else []


def _pairs(
    row: StatementRow, renames: Sequence[RenameTable], known: KnownTables, objects: Mapping[str, TableId]
) -> Iterator[RenamePair]:
    """Yield renames of a statement, in its order; none if a name in them may mean either of two tables."""
    if row.database is None:
        unsure = len({table.database for table in objects.values()}) > 1
        if unsure and any(len(named.parts) == 1 for change in renames for named in (change.table, change.new)):
            return
    if row.database is None or not row.name:
        row = _completed(row, renames, known, objects)
    claims = [[known.claimants(named, row, renames=True) for named in (each.table, each.new)] for each in renames]
    if any(len(tables) > 1 for pair in claims for tables in pair):
        return
    for change, (old, new) in zip(renames, claims, strict=True):
        table = objects[new[0]] if new else meant(change.new, row)
        before = old[0] if old else str(meant(change.table, row))
        yield RenamePair(before.casefold(), str(table).casefold(), table, change.conditional)


def _completed(
    row: StatementRow, renames: Iterable[RenameTable], known: KnownTables, objects: Mapping[str, TableId]
) -> StatementRow:
    """Return a statement whose message names no table, with the database and the schema of a table that it renames."""
    for change in renames:
        old = known.claimants(change.table, row, renames=True)
        if len(old) == len(change.table.parts) == 1:
            return msgspec.structs.replace(row, database=objects[old[0]].database, schema=objects[old[0]].schema)
    return row
