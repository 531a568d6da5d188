"""The schema changes of a source's tables, in the order of the source's log, as its DDL tells them; and initial loads.

A rename or a drop ends the life of a name: an event's images use the names that were valid at its position. So names of
columns are followed from an event's *epoch* (the number of renames and drops before it) to the names of today, and two
columns that had one name at different times stay two. All known changes take part, as late events use old names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import msgspec

from tidemark.ddl import changes as ddl_changes
from tidemark.ddl.names import Renaming
from tidemark.events import TableId
from tidemark.ledger.ledger import Ledger, Row
from tidemark.ledger.tally import LOAD, Load
from tidemark.values.iso8601 import EPOCH


class Addition(NamedTuple):
    """A column was added, or got another type, at a position."""

    position: str
    batch: int
    name: str
    type: str | None
    default: str | None
    retyped: bool


class Emptying(NamedTuple):
    """All rows of before went at a position: DROP TABLE, TRUNCATE, or a complete initial load that replaces them."""

    position: str
    batch: int
    at: int
    """The time that the statement, or the rows of the load, tell; else when it landed, or was read. Epoch µs, UTC."""
    load: bool = False


class _Part(NamedTuple):
    """What one batch tells of a load of one table."""

    batch: int
    at: int
    """Epoch µs, UTC."""


_LOAD = msgspec.json.Decoder(Load)

_Told = TypeVar("_Told", bound="tuple[object, ...]")


class Note(NamedTuple):
    """Something about a table that people should know: DDL that was not followed."""

    batch: int
    text: str


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """What DDL and initial loads tell of one table, ordered by position."""

    renamings: tuple[Renaming, ...] = ()
    additions: tuple[Addition, ...] = ()
    emptyings: tuple[Emptying, ...] = ()
    notes: tuple[Note, ...] = ()

    def since(self, after: int, newest: int) -> bool:
        """Whether any statement of the batches ``(after, newest]`` concerns the table."""
        told: list[Renaming | Addition | Emptying] = [*self.renamings, *self.additions, *self.emptyings]
        return any(after < each.batch <= newest for each in told)

    def until(self, newest: int) -> SchemaHistory:
        """The history as the batches up to ``newest`` tell it."""
        return SchemaHistory(
            tuple(told for told in self.renamings if told.batch <= newest),
            tuple(told for told in self.additions if told.batch <= newest),
            tuple(told for told in self.emptyings if told.batch <= newest),
            tuple(told for told in self.notes if told.batch <= newest),
        )


def histories(ledger: Ledger, objects: Iterable[str]) -> dict[str, SchemaHistory]:
    """The history of each table that DDL or loads of the source concern; ``objects`` are those that events told of."""
    rows = ledger.read("ddl")
    names = set(objects)
    told = _told_by_ddl([row for row in rows if row["dialect"] != LOAD], names)
    for name, emptyings in _replacing([row for row in rows if row["dialect"] == LOAD]).items():
        if name in names:
            history = told.get(name, SchemaHistory())
            both = sorted([*history.emptyings, *emptyings], key=lambda each: (each.position, each.batch))
            told[name] = replace(history, emptyings=_first_of_each(both))
    return told


def _replacing(rows: Sequence[Row]) -> dict[str, list[Emptying]]:
    """The complete initial loads of each table that replace what came before them: all but the source's first.

    The first load of a source finds nothing that a load brought. What stands below it are changes of transactions that
    were under way when it began, in logs that are not in the order of commits: it does not hold them, nor replace them.
    The first load counts for all tables of the source, as an empty table sends no row of it.

    In a source of which no two rows were ever loaded at one place, rows have places of their own, and tell no load.
    """
    batches: dict[str, int] = {}
    told: dict[tuple[str, str], list[_Part]] = {}
    rows_at: dict[str, set[tuple[str, str | None]]] = {}
    shared = None
    """Batch that first showed two rows at one place."""
    for row in sorted(rows, key=lambda row: row["batch"]):
        batch, position = row["batch"], row["position"]
        name, load = str(TableId(row["database"], row["schema"], row["name"])), _LOAD.decode(row["statement"])
        batches.setdefault(position, batch)
        told.setdefault((name, position), []).append(_Part(batch, _micros(row) if load.at is None else load.at))
        seen = rows_at.setdefault(position, set())
        seen.add((name, load.row))
        if shared is None and (load.row is None or len(seen) > 1):
            shared = batch
    if shared is None:
        return {}
    # It replaces from the batch on that first told both of it and of an earlier one.
    earliest: dict[str, int] = {}
    reached = None
    for position, batch in sorted(batches.items()):
        if reached is not None:
            earliest[position] = max(reached, shared)
        reached = batch if reached is None else min(reached, batch)
    found: dict[str, list[Emptying]] = {}
    for (name, position), parts in told.items():
        if position in earliest:
            batch = max(parts[0].batch, earliest[position])
            found.setdefault(name, []).append(Emptying(position, batch, min(part.at for part in parts), load=True))
    return found


def _told_by_ddl(rows: Sequence[Row], objects: Iterable[str]) -> dict[str, SchemaHistory]:
    if not rows:
        return {}
    from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    known = {name.casefold(): name for name in objects}
    found: dict[str, list[tuple[Row, ddl_changes.Change]]] = {}
    for row in sorted(rows, key=lambda row: (row["position"], row["batch"])):
        changes = parse(row["statement"], row["dialect"])
        arrived = {_object(change.new, row, known) for change in changes if isinstance(change, ddl_changes.RenameTable)}
        for change in changes:
            name = _object(change.table, row, known)
            # In a swap of tables, as tools that rebuild a table do it, rows go on under the name.
            if name is not None and not (isinstance(change, ddl_changes.RenameTable) and name in arrived):
                found.setdefault(name, []).append((row, change))
    return {name: _history(told) for name, told in found.items()}


def _object(named: object, row: Row, known: Mapping[str, str]) -> str | None:
    """The known table that a statement means; what it does not say is as in the message."""
    told = TableId(row["database"], row["schema"], row["name"] or "")
    parts = getattr(named, "parts", None)
    if parts is None:
        return known.get(str(told).casefold())
    if len(parts) == 3:
        meant = TableId(*parts)
    elif len(parts) == 1:
        meant = TableId(told.database, told.schema, parts[0])
    elif row["dialect"] == "mysql":
        meant = TableId(parts[0], None, parts[1])
    else:
        meant = TableId(told.database, parts[0], parts[1])
    if (found := known.get(str(meant).casefold())) is not None:
        return found
    if told.name:
        return None
    # The message names no table: the only one that is called so.
    ending = "." + ".".join(parts).casefold()
    candidates = [name for folded, name in known.items() if f".{folded}".endswith(ending)]
    return candidates[0] if len(candidates) == 1 else None


def _history(told: Sequence[tuple[Row, object]]) -> SchemaHistory:
    renamings: list[Renaming] = []
    additions: list[Addition] = []
    emptyings: list[Emptying] = []
    notes: list[Note] = []
    for row, change in told:
        place = (row["position"], row["batch"])
        match change:
            case ddl_changes.RenameColumn(_, old, new):
                renamings.append(Renaming(*place, old, new))
            case ddl_changes.DropColumn(_, name):
                renamings.append(Renaming(*place, name, None))
            case ddl_changes.AddColumn(_, name, kind, default):
                additions.append(Addition(*place, name, kind, default, retyped=False))
            case ddl_changes.ChangeType(_, name, kind):
                additions.append(Addition(*place, name, kind, None, retyped=True))
            case ddl_changes.DropTable() | ddl_changes.Truncate():
                emptyings.append(Emptying(*place, _micros(row)))
            case ddl_changes.RenameTable(_, new):
                text = f"renamed to {'.'.join(new.parts)}: rows that come under that name are a table of their own"
                notes.append(Note(row["batch"], text))
            case ddl_changes.Unparsed(_, reason):
                notes.append(Note(row["batch"], f"DDL not followed, {reason}: {row['statement'][:200]}"))
    return SchemaHistory(
        tuple(_once(renamings)), tuple(_once(additions)), _first_of_each(emptyings), tuple(dict.fromkeys(notes))
    )


def _micros(row: Row) -> int:
    moment: datetime = row["at"]
    return (moment - EPOCH) // timedelta(microseconds=1)


def _first_of_each(told: Sequence[Emptying]) -> tuple[Emptying, ...]:
    """By position; ``told`` is by position and batch."""
    return tuple(next(same) for _, same in itertools.groupby(told, lambda each: each.position))


def _once(told: Iterable[_Told]) -> Iterator[_Told]:
    """What was told, as its first batch told it: a statement may be delivered again."""
    first: dict[tuple[object, ...], _Told] = {}
    for one in told:
        first.setdefault((one[0], *one[2:]), one)
    return iter(first.values())
