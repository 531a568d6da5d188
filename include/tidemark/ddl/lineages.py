"""The names that tables had: a table keeps its rows when it is renamed, so its events came under several names.

A *lineage* is one table through its renames. The event of a name belongs to the lineage that had the name at the
position of the event. Statements alone say which one had it. So what a lineage takes in depends neither on the order of
a delivery nor on its split into runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import msgspec

from tidemark.ddl.changes import Change, DropTable, RenameTable
from tidemark.ddl.history import RENAMED_TO, SchemaHistory
from tidemark.ddl.split_renames import Pair, Part, in_order, is_part
from tidemark.ddl.stated_tables import KnownTables, meant
from tidemark.ddl.swaps import Swaps
from tidemark.events import TableId
from tidemark.ledger.rows import StatementRow


class Segment(NamedTuple):
    """The events that came under one name, from a position on, before another one."""

    object: str
    """As source files name it."""
    begins: str
    ends: str | None
    """None: to the end."""


class Lineage(NamedTuple):
    """A table that had several names, or that has a name which another table had before."""

    table: TableId
    """Under its last name."""
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineages:
    """The tables that are not simply all events of one name."""

    tables: Mapping[str, Lineage] = field(default_factory=dict)
    """By the last name of each."""
    followed: frozenset[tuple[str, str]] = frozenset()
    """Positions and texts of the statements whose renames they follow."""

    def names_of(self, table: str) -> list[str]:
        """Return the names that the events of a table came under."""
        lineage = self.tables.get(table)
        return [table] if lineage is None else list(dict.fromkeys(segment.object for segment in lineage.segments))


@dataclass(slots=True, kw_only=True)
class _Open:
    """A table while statements are read."""

    table: TableId
    closed: list[Segment] = field(default_factory=list)
    begins: str = ""
    there: bool | None = None
    """Whether it is certain that the source has, or has not, such a table: no statement says that it was created."""

    def renamed(self, table: TableId, position: str) -> None:
        self.closed.append(Segment(str(self.table), self.begins, position))
        self.table, self.begins, self.there = table, position, True


def lineages(
    rows: Sequence[StatementRow], objects: Mapping[str, TableId], every: Sequence[StatementRow] = ()
) -> Lineages:
    """Return the tables that renames made of the names of a source; none by tools that change a schema.

    Four kinds of statements are not followed, with none of their renames. One renames a table without known events:
    its rows are not known. One came in parts, and a part has not landed (``split_renames``). One has a name that is the
    name of two tables, but for the case: all renames are read without it. One gives a table the name that another one
    has, which no database does: what happened between is not known.

    Args:
        rows: statements of the source.
        objects: the tables that have events, by their names in source files.
        every: the same, with those whose place is not certain: they too show what is a tool's swap (``swaps``).
    """
    known = KnownTables(objects)
    held = {name.casefold(): _Open(table=table) for name, table in objects.items()}
    followed: set[tuple[str, str]] = set()
    swaps = Swaps(every or rows, known)
    for statement_rows, pairs, dropped in _statements(rows, known, objects, swaps):
        for name in dropped & held.keys():
            held[name].there = False
        after = _moved(held, pairs)
        if after is None or any(len(known.alike(name)) > 1 for pair in pairs for name in (pair.old, pair.new)):
            continue
        followed |= {(row.position, row.statement) for row in statement_rows}
        position = statement_rows[0].position
        vacated = {
            name: _Open(table=held[name].table, begins=position, there=False) for name in held.keys() - after.keys()
        }
        for name, opened in after.items():
            if held.get(name) is not opened:
                new = next(pair.table for pair in reversed(pairs) if pair.new == name)
                opened.renamed(new, position)
        held = after | vacated
    found = {str(each.table): each for each in held.values() if each.closed or each.begins}
    return Lineages(
        tables={
            name: Lineage(each.table, (*each.closed, Segment(name, each.begins, None))) for name, each in found.items()
        },
        followed=frozenset(followed),
    )


def history_of(known: Mapping[str, SchemaHistory], segments: Sequence[Segment]) -> SchemaHistory:
    """Return the history of a renamed table: of each name, what statements and loads did while it had the name."""
    notes = known.get(segments[-1].object, SchemaHistory()).notes  # they have no place
    parts = [known.get(segment.object, SchemaHistory()).between(segment.begins, segment.ends) for segment in segments]
    return SchemaHistory(
        tuple(each for part in parts for each in part.renamings),
        tuple(each for part in parts for each in part.additions),
        tuple(each for part in parts for each in part.emptyings),
        tuple(note for note in notes if not note.text.startswith(RENAMED_TO)),
        tuple(each for part in parts for each in part.keys),
    )


def named_in(row: StatementRow, objects: Mapping[str, TableId], known: KnownTables) -> set[str]:
    """Return the tables with events that a statement drops, or gives another name, or whose names it gives to others.

    Args:
        row: the statement.
        objects: the tables that have events, by their names in source files.
        known: the same tables.
    """
    pairs = _pairs(row, _renames(row), known, objects)
    names = {name for pair in pairs for name in (pair.old, pair.new)} | _dropped(row, known)
    return {table for name in names for table in known.alike(name)}


def may_rename(statement: str) -> bool:
    """Return whether a statement may rename a table: most do not, and need not be read for it."""
    words = statement.casefold()
    return "rename" in words or "schema" in words


def may_rename_or_drop(statement: str) -> bool:
    """Return whether a statement may rename a table, or drop one."""
    words = statement.casefold()
    return may_rename(statement) or "drop" in words or "replace" in words


class _Statement(NamedTuple):
    """A statement that renames or drops tables."""

    rows: list[StatementRow]
    pairs: Sequence[Pair] = ()
    dropped: frozenset[str] = frozenset()
    """Names in small letters."""


def _statements(
    rows: Iterable[StatementRow], known: KnownTables, objects: Mapping[str, TableId], swaps: Swaps
) -> Iterator[_Statement]:
    """Yield each statement once, with its renames in order; of one in parts, only if all are there."""
    candidates: dict[tuple[str, str], StatementRow] = {}
    for row in sorted(rows, key=lambda row: (row.position, not row.together, row.batch)):
        if may_rename_or_drop(row.statement):
            candidates.setdefault((row.position, row.statement), row)
    for _, at_place in groupby(candidates.values(), lambda row: row.position):
        parts: list[Part] = []
        for row in at_place:
            renames = [change for change in _renames(row) if not swaps.has(row, change)]
            pairs, dropped = list(_pairs(row, renames, known, objects)), _dropped(row, known)
            if is_part(row, pairs):
                parts += (Part(row, pair) for pair in pairs)
            elif pairs or dropped:
                yield _Statement([row], pairs, dropped)
        for chain in in_order(parts):
            yield _Statement([part.row for part in parts if part.pair in chain], chain)


def _changes(row: StatementRow) -> Sequence[Change]:
    from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    return parse(row.statement, row.dialect)


def _renames(row: StatementRow) -> list[RenameTable]:
    return [change for change in _changes(row) if isinstance(change, RenameTable)]


def _dropped(row: StatementRow, known: KnownTables) -> frozenset[str]:
    """Return the names of the tables that a statement drops, in small letters."""
    drops = [known.claimants(change.table, row) for change in _changes(row) if isinstance(change, DropTable)]
    return frozenset(tables[0].casefold() for tables in drops if len(tables) == 1)


def _pairs(
    row: StatementRow, renames: Sequence[RenameTable], known: KnownTables, objects: Mapping[str, TableId]
) -> Iterator[Pair]:
    """Yield renames of a statement, in its order; none if a name in them may mean either of two tables."""
    if row.database is None:
        unsure = len({table.database for table in objects.values()}) > 1
        if unsure and any(len(named.parts) == 1 for change in renames for named in (change.table, change.new)):
            return
        row = _with_database(row, renames, known, objects)
    claims = [[known.claimants(named, row, renames=True) for named in (each.table, each.new)] for each in renames]
    if any(len(tables) > 1 for pair in claims for tables in pair):
        return
    for change, (old, new) in zip(renames, claims, strict=True):
        table = objects[new[0]] if new else meant(change.new, row)
        before = old[0] if old else str(meant(change.table, row))
        yield Pair(before.casefold(), str(table).casefold(), table, change.conditional)


def _with_database(
    row: StatementRow, renames: Iterable[RenameTable], known: KnownTables, objects: Mapping[str, TableId]
) -> StatementRow:
    """Return a statement whose message names no database, with the database of a table that it renames."""
    for change in renames:
        old = known.claimants(change.table, row, renames=True)
        if len(old) == len(change.table.parts) == 1:
            return msgspec.structs.replace(row, database=objects[old[0]].database, schema=objects[old[0]].schema)
    return row


def _moved(held: Mapping[str, _Open], pairs: Iterable[Pair]) -> dict[str, _Open] | None:
    """Return which table has which name after renames, one after another; None if one of them is not certain.

    A name that a table has cannot be given to another. So a rename with IF EXISTS did nothing there, if its table had
    been renamed before.
    """
    after = dict(held)
    for pair in pairs:
        opened = after.pop(pair.old, None)
        if opened is None:
            return None
        standing = after.get(pair.new)
        taken = standing.there if standing else False
        if pair.conditional and opened.there is False and taken is not False:
            if taken is None:
                return None
            after[pair.old] = opened
        elif taken:
            return None
        else:
            after[pair.new] = opened
    return after
