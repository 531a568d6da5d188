"""Which tables may hold rows of a subject, as its table is, or was, published there: alone or folded with others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table

from tidemark.erasure.subject import ErasedRow
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, beside, moved_together, whole_beside
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY, STATE_OF_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import TableState
from tidemark.sources.routes import entry_of, is_folded
from tidemark.tables.shard_rules import ever_folded, recorded
from tidemark.values.declared_types import matched


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The tables that are there."""

    published: Mapping[str, Identifier]
    """By the source's name, those that cuts move; the subject's own is the last. What is published there under a name
    that the subject's table never had took the place of what it was folded into, and has its old snapshots."""
    left: Sequence[Identifier]
    """Those that no run writes any more, with what moved with them."""
    newest: Identifier
    """The table that the subject's own name was last published as."""


def targets_of(lake: Lake, ledger: Ledger, subject: ErasedRow) -> Targets:
    """Return the tables that may hold rows of a subject, as far as they are there."""
    rows = published_rows(ledger)
    newest = last_targets(rows)
    names: dict[Identifier, set[str]] = {}
    for row in rows:
        names.setdefault(row.identifier, set()).add(row.object)
    published, left = dict[str, Identifier](), list[Identifier]()
    for target, ever in names.items():
        table = lake.find(target) if any(is_folded(name) or name in subject.names for name in ever) else None
        if not any(_is_of(name, table, subject) for name in ever):
            continue
        owner = table.properties.get(SOURCE_PROPERTY) if table is not None else None
        if owner not in {None, subject.source}:
            continue  # dropped here, and made by another source since
        if table is None or owner is None or not _is_written(table, target, newest, subject):
            left += _there(lake, target, subject.source)
        else:
            published[table.properties[OBJECT_PROPERTY]] = target
    published.pop(subject.object, None)
    own = {**published, subject.object: subject.target}
    return Targets(published=own, left=left, newest=newest.get(subject.object, subject.target))


def published_rows(ledger: Ledger) -> list[TableRow]:
    """Return the rows of tables that were published, the newest last, whatever became of a table later."""
    return sorted(ledger.tables(equals("state", TableState.PUBLISHED)), key=lambda row: row.cut)


def last_targets(rows: Iterable[TableRow]) -> dict[str, Identifier]:
    """Return by the source's name the table that it was last published as; the newest row is the last."""
    return {row.object: row.identifier for row in rows}


def _is_of(name: str, table: Table | None, subject: ErasedRow) -> bool:
    """Return whether the subject's table was published in a table under a name, or folded with others.

    A folded table that is gone, or that an earlier version folded, does not say what was folded into it. Then every
    table that its entry fits counts.
    """
    if not is_folded(name):
        return name in subject.names
    folded = None if table is None else ever_folded(table)
    return any(matched(entry_of(name), own) if folded is None else own in folded for own in subject.names)


def _is_written(table: Table, target: Identifier, newest: Mapping[str, Identifier], subject: ErasedRow) -> bool:
    """Return whether cuts move a table, and its rows are those of tables that are published apart from the subject's.

    A folded table with the subject's table among its shards is not: that table is published apart now.
    """
    return newest.get(table.properties[OBJECT_PROPERTY]) == target and recorded(table).keys().isdisjoint(subject.names)


def _there(lake: Lake, target: Identifier, source: str) -> Iterator[Identifier]:
    """Yield a table that Tidemark made, and what moved with it, as far as they are there."""
    for each in (*moved_together(target), *beside(target), *whole_beside(target)):
        table = lake.find(each)
        if table is None:
            continue
        made_by = table.properties.get(SOURCE_PROPERTY, "" if each == target else source)
        if made_by == source and table.properties.get(STATE_OF_PROPERTY, str(target)) == str(target):
            yield each
