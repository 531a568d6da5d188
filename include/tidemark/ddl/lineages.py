"""The names that tables had: a table keeps its rows when it is renamed, so its events came under several names.

A *lineage* is one table through its renames. The event of a name belongs to the lineage that had the name at the
position of the event. Statements alone say which one had it. So what a lineage takes in depends neither on the order of
a delivery nor on its split into runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidemark.ddl.extents import Extents
from tidemark.ddl.history import RENAMED_TO, SchemaHistory
from tidemark.ddl.rename_statements import RenameStatement, statements
from tidemark.ddl.stated_tables import KnownTables
from tidemark.ddl.swaps import Swaps
from tidemark.events import TableId
from tidemark.ledger.order_rows import SpanRow
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
        return list(dict.fromkeys(segment.object for segment in self.segments_of(table)))

    def segments_of(self, table: str) -> tuple[Segment, ...]:
        """Return the names that the events of a table came under; of most tables it is one, all along."""
        lineage = self.tables.get(table)
        return (Segment(table, "", None),) if lineage is None else lineage.segments


@dataclass(slots=True, kw_only=True)
class _Open:
    """A table while statements are read."""

    table: TableId
    closed: list[Segment] = field(default_factory=list)
    begins: str = ""
    since: str = ""
    """Where a tool's swap took what came under the name before: those are no rows of the table that has it now."""

    put_aside: bool = False
    """Whether a tool's swap put a table there: its rows came under another name, and go on there."""

    def renamed(self, table: TableId, position: str) -> None:
        closed = [] if self.since else self.closed
        self.closed = [*closed, Segment(str(self.table), max(self.begins, self.since), position)]
        self.table, self.begins, self.since, self.put_aside = table, position, "", False


def lineages(
    rows: Sequence[StatementRow],
    objects: Mapping[str, TableId],
    every: Sequence[StatementRow] = (),
    spans: Iterable[SpanRow] = (),
    is_shard: Callable[[TableId], bool] = lambda _: False,
) -> Lineages:
    """Return the tables that renames made of the names of a source; none by tools that change a schema.

    Five kinds of statements are not followed, with none of their renames. One renames a table without known events,
    or one that a tool put aside: its rows are not known. One came in parts, and a part has not landed
    (``split_renames``). One has a name that is the name of two tables, but for the case: all renames are read without
    it. One names a shard: the name alone says which shard a renamed table becomes. One gives a table the name that
    another one has and had events under: no database does that, so what happened between is not known.

    Args:
        rows: statements of the source.
        objects: the tables that have events, by their names in source files.
        every: the same, with those whose place is not certain: they too show what is a tool's swap (``swaps``).
        spans: between which positions the events of these tables lie.
        is_shard: whether a table is folded with others.
    """
    known = KnownTables(objects)
    tables = _Tables(objects, Extents(objects, spans))
    followed: set[tuple[str, str]] = set()
    swaps = Swaps(every or rows, known)
    for statement in statements(rows, known, objects, swaps):
        alike = [known.alike(name) for pair in statement.pairs for name in (pair.old, pair.new)]
        meant = {objects[name] for names in alike for name in names} | {pair.table for pair in statement.pairs}
        unsure = any(len(names) > 1 for names in alike) or any(map(is_shard, meant))
        if tables.follow(statement, unsure=unsure):
            followed |= {(row.position, row.statement) for row in statement.rows}
    found = {str(each.table): each for each in tables.held.values() if each.closed or each.begins}
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


class _Tables:
    """The tables that have names, while statements are read."""

    def __init__(self, objects: Mapping[str, TableId], extents: Extents) -> None:
        self.held = {name.casefold(): _Open(table=table) for name, table in objects.items()}
        self._extents = extents
        self._there: dict[str, bool] = {}
        """Where it is certain that the source has, or has not, a table of a name; no statement says it of a CREATE."""

    def follow(self, statement: RenameStatement, *, unsure: bool) -> bool:
        """Read a statement; return whether its renames were followed, and not left out."""
        position = statement.rows[0].position
        self._swap(statement, position)
        moved = None
        if statement.pairs and not unsure:
            moved = _moved(self.held, self._there, statement, self._extents)
        if moved is None:
            self._there |= {step: False for step in statement.steps if isinstance(step, str)}
            return False
        after, self._there = moved
        vacated = {name: _Open(table=self.held[name].table, begins=position) for name in self.held.keys() - after}
        for name, opened in after.items():
            if self.held.get(name) is not opened:
                opened.renamed(next(pair.table for pair in reversed(statement.pairs) if pair.new == name), position)
        self.held = after | vacated
        return True

    def _swap(self, statement: RenameStatement, position: str) -> None:
        """Note what a tool's swap does to the names of its copy and of the table that it puts aside."""
        for name in statement.copies & self.held.keys():
            self.held[name].since = position
        for name in statement.aside & self.held.keys():
            self.held[name].put_aside = True
        for name in statement.aside:
            self._there.pop(name, None)
        self._there |= dict.fromkeys(statement.copies, False)


def _moved(
    held: Mapping[str, _Open], there: Mapping[str, bool], statement: RenameStatement, extents: Extents
) -> tuple[dict[str, _Open], dict[str, bool]] | None:
    """Return which table has which name behind a statement, and which are there; None if a rename is not certain.

    A name that a table has cannot be given to another. So a rename with IF EXISTS did nothing there, if its table had
    been renamed before. Without IF EXISTS, the rename proves that the name was free: the table that had it was dropped,
    and nothing says so. Only events under the name contradict that, as a DROP of such a table comes with its events.
    """
    position = statement.rows[0].position
    after, exists = dict(held), dict(there)
    for step in statement.steps:
        if isinstance(step, str):
            exists[step] = False
            continue
        opened, standing = after.pop(step.old, None), after.get(step.new)
        if opened is None or (opened.put_aside and exists.get(step.old) is not False):
            return None
        taken = exists.get(step.new) if standing else False
        if step.conditional and exists.get(step.old) is False and taken is not False:
            if taken is None or extents.spans(step.old, opened.begins, position):
                return None  # events may have come since: then the source had made a table of this name again
            after[step.old] = opened
        elif taken and standing and extents.may_have(step.new, standing.begins, position):
            return None
        else:
            after[step.new] = opened
            exists |= {step.old: False, step.new: True}
    return after, exists
