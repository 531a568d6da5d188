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

from tidemark.ddl.changes import Name, RenameTable
from tidemark.ddl.history import RENAMED_TO, SchemaHistory
from tidemark.ddl.migrations import belongs_to
from tidemark.ddl.split_renames import Pair, Part, in_order, is_part
from tidemark.ddl.stated_tables import KnownTables, meant
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

    def renamed(self, table: TableId, position: str) -> None:
        self.closed.append(Segment(str(self.table), self.begins, position))
        self.table, self.begins = table, position


def is_by_tool(old: Name, new: Name) -> bool:
    """Return whether a table takes the name of one of a tool's own tables, or gives its name to it."""
    before, after = old.parts[-1], new.parts[-1]
    return any(
        made_for is not None and made_for.casefold() == other.casefold()
        for made_for, other in ((belongs_to(before), after), (belongs_to(after), before))
    )


def lineages(rows: Sequence[StatementRow], objects: Mapping[str, TableId]) -> Lineages:
    """Return the tables that renames made of the names of a source; none by tools that change a schema.

    Three kinds of statements are not followed, with none of their renames. One renames a table without known events:
    its rows are not known. One came in parts, and a part has not landed (``split_renames``). One has a name that is the
    name of two tables, but for the case: all renames are read without it.

    Args:
        rows: statements of the source.
        objects: the tables that have events, by their names in source files.
    """
    known = KnownTables(objects)
    held = {name.casefold(): _Open(table=table) for name, table in objects.items()}
    followed: set[tuple[str, str]] = set()
    for statement_rows, pairs in _statements(rows, known, objects):
        after = _moved(held, pairs)
        if after is None or any(len(known.alike(name)) > 1 for pair in pairs for name in (pair.old, pair.new)):
            continue
        followed |= {(row.position, row.statement) for row in statement_rows}
        position = statement_rows[0].position
        vacated = {name: _Open(table=held[name].table, begins=position) for name in held.keys() - after.keys()}
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


def renamed_in(row: StatementRow, objects: Mapping[str, TableId]) -> set[str]:
    """Return the tables with events that a statement gives another name, or whose names it gives to others."""
    known = KnownTables(objects)
    pairs = _pairs(row, known, objects)
    return {table for pair in pairs for name in (pair.old, pair.new) for table in known.alike(name)}


def may_rename(statement: str) -> bool:
    """Return whether a statement may rename a table: most do not, and need not be read for it."""
    words = statement.casefold()
    return "rename" in words or "schema" in words


def _statements(
    rows: Iterable[StatementRow], known: KnownTables, objects: Mapping[str, TableId]
) -> Iterator[tuple[list[StatementRow], list[Pair]]]:
    """Yield each statement that renames, once, with its renames in order; of one in parts, only if all are there."""
    candidates: dict[tuple[str, str], StatementRow] = {}
    for row in sorted(rows, key=lambda row: (row.position, not row.together, row.batch)):
        if may_rename(row.statement):
            candidates.setdefault((row.position, row.statement), row)
    for _, at_place in groupby(candidates.values(), lambda row: row.position):
        parts: list[Part] = []
        for row in at_place:
            pairs = list(_pairs(row, known, objects))
            if is_part(row, pairs):
                parts += (Part(row, pair) for pair in pairs)
            elif pairs:
                yield [row], pairs
        for chain in in_order(parts):
            yield [part.row for part in parts if part.pair in chain], chain


def _pairs(row: StatementRow, known: KnownTables, objects: Mapping[str, TableId]) -> Iterator[Pair]:
    """Yield the renames of a statement, in its order; none if a name in it may mean either of two tables."""
    from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    renames = [change for change in parse(row.statement, row.dialect) if isinstance(change, RenameTable)]
    renames = [change for change in renames if not is_by_tool(change.table, change.new)]
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
        yield Pair(before.casefold(), str(table).casefold(), table)


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
    """Return which table has which name after renames, one after another; None if one of them is not known."""
    after = dict(held)
    for pair in pairs:
        opened = after.pop(pair.old, None)
        if opened is None:
            return None
        after[pair.new] = opened
    return after
