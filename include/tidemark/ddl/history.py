"""The schema history of a source's tables: what DDL changed, and which initial loads replaced rows.

Everything is in the order of the source's log. After a rename or a drop, a column name is no longer valid, and the
images of an event use the names that were valid at its position. So column names are followed from an event's *epoch*
(the number of renames and drops before it) to the names of today. Two columns that had the same name at different times
stay two columns. All known changes are used, because late events use old names.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import msgspec

from tidemark.ddl import changes as ddl_changes
from tidemark.ddl.migrations import Copies
from tidemark.ddl.names import Renaming
from tidemark.ddl.stated import Stated
from tidemark.ddl.stated_tables import KnownTables, certain, in_turn, with_events
from tidemark.ddl.swaps import Swaps
from tidemark.events import TableId
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import StatementRow
from tidemark.ledger.tally import Load
from tidemark.positions import encode_position
from tidemark.text import without_values
from tidemark.values.iso8601 import to_micros


class Addition(NamedTuple):
    """A column was added, or got another type, at a position."""

    position: str
    batch: int
    name: str
    type: str | None
    default: ddl_changes.Fill | None
    retyped: bool
    order: tuple[int, ...] = (0,)
    """The place of its statement among those at the position."""


class KeyChange(NamedTuple):
    """The table got another primary key at a position."""

    position: str
    batch: int
    columns: tuple[str, ...]
    statement: str


class Emptying(NamedTuple):
    """All earlier rows went at a position: DROP TABLE, TRUNCATE, or a complete initial load that replaces them."""

    position: str
    batch: int
    at: int
    """When it happened, as the statement or the load's rows say; else when it landed or was read. Epoch µs, UTC."""
    load: bool = False
    shard: str = ""
    """The source's name of the table, where several are folded into one."""


class _Part(NamedTuple):
    """The part of one table's load that arrived in one batch."""

    batch: int
    at: int
    """Epoch µs, UTC."""


RENAMED_TO = "renamed to "
"""Begins the note of a rename that is not followed."""

_LOAD = msgspec.json.Decoder(Load)

_NEW_LOG = encode_position((2,))
"""Positions from here on are of a log that began anew, or of a table that was loaded anew (``new_logs``)."""

_Event = TypeVar("_Event", bound="tuple[object, ...]")


class Note(NamedTuple):
    """A remark about a table for people: DDL that was not followed."""

    batch: int
    text: str


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """The DDL and the replacing initial loads of one table, ordered by position."""

    renamings: tuple[Renaming, ...] = ()
    additions: tuple[Addition, ...] = ()
    emptyings: tuple[Emptying, ...] = ()
    notes: tuple[Note, ...] = ()
    keys: tuple[KeyChange, ...] = ()

    def since(self, after: int, newest: int) -> bool:
        """Return whether any change or load of the batches ``(after, newest]`` concerns the table."""
        changes: list[Renaming | Addition | Emptying | KeyChange]
        changes = [*self.renamings, *self.additions, *self.emptyings, *self.keys]
        return any(after < each.batch <= newest for each in changes)

    def between(self, begins: str, ends: str | None) -> SchemaHistory:
        """Return what happened from a position on, before another one; None: to the end. Notes have no place."""

        def within(each: Renaming | Addition | Emptying | KeyChange) -> bool:
            return begins <= each.position and (ends is None or each.position < ends)

        return SchemaHistory(
            tuple(filter(within, self.renamings)),
            tuple(filter(within, self.additions)),
            tuple(filter(within, self.emptyings)),
            (),
            tuple(filter(within, self.keys)),
        )

    def until(self, newest: int) -> SchemaHistory:
        """Return the history as far as it was known from the batches up to ``newest``."""
        return SchemaHistory(
            tuple(each for each in self.renamings if each.batch <= newest),
            tuple(each for each in self.additions if each.batch <= newest),
            tuple(each for each in self.emptyings if each.batch <= newest),
            tuple(each for each in self.notes if each.batch <= newest),
            tuple(each for each in self.keys if each.batch <= newest),
        )


def histories(ledger: Ledger, objects: Iterable[str]) -> dict[str, SchemaHistory]:
    """Return the history of each table that DDL or loads of the source concern.

    Args:
        ledger: of the source.
        objects: the tables that have events, as the source names them; other tables are left out.
    """
    rows = ledger.statements()
    # What a statement means depends on all tables that there are, and not on those that are asked for.
    others = with_events(ledger) if any(not row.is_load for row in rows) else set[str]()
    return histories_of(rows, set(objects), others)


def histories_of(
    rows: Sequence[StatementRow], names: Collection[str], others: Collection[str] = ()
) -> dict[str, SchemaHistory]:
    """Return the history of each of some tables that these statements and loads concern; ``others`` are there too."""
    by_name = by_statements([row for row in rows if not row.is_load], {*names, *others})
    found = {name: history for name, history in by_name.items() if name in names}
    replacing = _replacing([row for row in rows if row.is_load])
    for name in replacing.keys() & names:
        history = found.get(name, SchemaHistory())
        both = sorted([*history.emptyings, *replacing[name]], key=lambda each: (each.position, each.batch))
        found[name] = replace(history, emptyings=_first_of_each(both))
    return found


def _replacing(rows: Sequence[StatementRow]) -> dict[str, list[Emptying]]:
    """Return the complete initial loads of each table that replace what came before: all but the source's first load.

    The first load of a source has nothing to replace, because no load came before it. There may be changes below its
    position: changes of transactions that were under way when it began, in logs that are not in the order of commits.
    The load does not contain these changes, and must not replace them. The first load counts for all tables of the
    source, because an empty table sends no row of it.

    If no two rows of a source were ever loaded at the same position, each row has a position of its own. Then the
    positions of rows do not identify loads, and none is returned.

    Where the source file says that the log began anew or that a table was loaded anew, something came before, whether
    it was loaded or not: the first load replaces it too. A load at a moment of ``reloads`` has no place in the log.
    """
    batches: dict[str, int] = {}
    loads: dict[tuple[str, str], list[_Part]] = {}
    rows_at: dict[str, set[tuple[str, str | None]]] = {}
    shared = None  # batch that first showed two rows at one position
    for row in sorted(rows, key=lambda row: row.batch):
        batch, position, load = row.batch, row.position, _LOAD.decode(row.statement)
        name = str(TableId(row.database, row.schema, row.name or ""))
        batches.setdefault(position, batch)
        loads.setdefault((name, position), []).append(_Part(batch, _micros(row) if load.at is None else load.at))
        seen = rows_at.setdefault(position, set())
        seen.add((name, load.row))
        if shared is None and (load.row is None or len(seen) > 1):
            shared = batch
    # A load replaces from the first batch on in which both this load and an earlier one were known.
    earliest: dict[str, int] = {}
    reached = None
    for position, batch in sorted(batches.items()):
        if "." not in position:  # it has one part
            earliest[position] = batch
        elif shared is not None and position >= _NEW_LOG:
            earliest[position] = max(batch, shared)
        elif shared is not None and reached is not None:
            earliest[position] = max(reached, shared)
        reached = batch if reached is None else min(reached, batch)
    found: dict[str, list[Emptying]] = {}
    for (name, position), parts in loads.items():
        if position in earliest:
            batch = max(parts[0].batch, earliest[position])
            found.setdefault(name, []).append(Emptying(position, batch, min(part.at for part in parts), load=True))
    return found


def by_statements(
    rows: Sequence[StatementRow], objects: Iterable[str], *, unsure: bool = False
) -> dict[str, SchemaHistory]:
    """Return the history of each table that statements concern; with ``unsure``, also what may be of another table."""
    known = KnownTables(objects)
    found: dict[str, list[Stated]] = {}
    swaps, copies = Swaps(rows, known), Copies()
    for stated, later, arrived in in_turn(rows, known):
        row, change, order = stated
        tables = known.claimants(change.table, row, renames=isinstance(change, ddl_changes.RenameTable))
        if isinstance(change, ddl_changes.RenameTable):
            old, new = (known.normal(named, row) for named in (change.table, change.new))
            taking, swapped = known.claimants(change.new, row, renames=True), swaps.has(row, change)
            changed = copies.renamed(old, new, stated) if taking else []
            for name, each in itertools.product(taking, changed if swapped and not unsure else ()):
                found.setdefault(name, []).append(each._replace(change=certain(each.change, taking)))
            # In a swap of tables, with which tools rebuild a table, rows go on under the old name.
            if swapped or not arrived.isdisjoint(tables):
                continue
        else:
            copies.add(known.normal(change.table, row), stated)
            if isinstance(change, ddl_changes.OfCopies):
                continue
            tables = known.claimants(known.renamed_by(later, change.table, row), row) or tables
            tables = tables or known.perhaps_meant(change.table, row)
            if unsure and isinstance(change, ddl_changes.RenameColumn):
                tables = (*tables, *known.made_for(known.normal(change.table, row)))
        for name in tables:
            found.setdefault(name, []).append(Stated(row, change if unsure else certain(change, tables), order))
    return {name: _history(changes) for name, changes in found.items() if name in known}


def _history(stated: Sequence[Stated]) -> SchemaHistory:
    """Return the history of one table, from its changes by position and batch."""
    stated = sorted(stated, key=lambda each: (each.row.position, each.order))
    renamings: list[Renaming] = []
    additions: list[Addition] = []
    emptyings: list[Emptying] = []
    notes: list[Note] = []
    of_keys = ((row, each) for row, each, _ in stated if isinstance(each, ddl_changes.ChangeKey))
    keys = [KeyChange(row.position, row.batch, each.columns, row.statement) for row, each in of_keys]
    for row, change, order in stated:
        place = (row.position, row.batch)
        match change:
            case ddl_changes.RenameColumn(_, old, new):
                renamings.append(Renaming(*place, old, new, order))
            case ddl_changes.DropColumn(_, name):
                renamings.append(Renaming(*place, name, None, order))
            case ddl_changes.AddColumn(_, name, kind, text, octets, unknown):
                default = None if text is None and octets is None else ddl_changes.Fill(text, octets)
                additions.append(Addition(*place, name, kind, default, retyped=False, order=order))
                if unknown is not None:
                    notes.append(Note(row.batch, _not_filled(name, unknown, row.statement)))
            case ddl_changes.ChangeType(_, name, kind):
                additions.append(Addition(*place, name, kind, None, retyped=True, order=order))
            case ddl_changes.DropTable() | ddl_changes.Truncate():
                emptyings.append(Emptying(*place, _micros(row)))
            case ddl_changes.RenameTable(_, new):
                text = f"{RENAMED_TO}{'.'.join(new.parts)}: rows that come under that name are a table of their own"
                notes.append(Note(row.batch, text))
            case ddl_changes.Unparsed(_, reason):
                notes.append(Note(row.batch, f"DDL not followed, {reason}: {without_values(row.statement)}"))
    return SchemaHistory(
        tuple(_once(renamings)),
        tuple(_once(additions)),
        _first_of_each(emptyings),
        tuple(dict.fromkeys(notes)),
        tuple(_once(keys)),
    )


def _not_filled(column: str, reason: str, statement: str) -> str:
    return (
        f"DDL followed in part, column {column!r} was added and {reason}: rows from before the statement keep null in "
        f"it, until an initial load or a later change brings their values: {without_values(statement)}"
    )


def _micros(row: StatementRow) -> int:
    """Return when a statement was committed, or else when it was written to the ledger, in epoch µs, UTC."""
    return 0 if row.at is None else to_micros(row.at)


def _first_of_each(emptyings: Sequence[Emptying]) -> tuple[Emptying, ...]:
    """Return the first emptying at each position; ``emptyings`` are sorted by position and batch."""
    return tuple(next(same) for _, same in itertools.groupby(emptyings, lambda each: each.position))


def _once(changes: Iterable[_Event]) -> Iterator[_Event]:
    """Return each change once, with its first batch: a statement may be delivered again."""
    first: dict[tuple[object, ...], _Event] = {}
    for one in changes:
        first.setdefault((one[0], *one[2:]), one)
    return iter(first.values())
