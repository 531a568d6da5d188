"""Events of a row under the names of tables that schema-change tools made of its table (``ddl.migrations``).

Such a table has the rows of the table that it was made for, with the same key. It is seldom published, and then its
events are nowhere but in the change log and in ``raw``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyiceberg.expressions import And

from tidemark.ddl import migrations
from tidemark.lake import names
from tidemark.lake.filters import among, equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import TableState
from tidemark.normalization.erased_keys import ErasedKeys, Erasure, Recogniser
from tidemark.queries.row_life_scan import FIELDS, LogRow, log_rows


class CopiesOfTable(NamedTuple):
    """The tables that tools made of one table under its names, as far as events of them are known."""

    alone: Mapping[str, tuple[str, ...]] = {}
    """By the table's name, those that were never published."""
    published: Mapping[str, tuple[str, ...]] = {}
    """By the table's name, those that were: each may be a table of its own, and an erasure from it is another one."""

    @property
    def names(self) -> list[str]:
        """The names of those that were never published."""
        return sorted({copy for copies in self.alone.values() for copy in copies})


class InCopies(NamedTuple):
    """What a search of the change log found under the names of copies."""

    events: Mapping[tuple[str, int, int], int | None] = {}
    """Places of the row's events, each with its commit time."""
    newer: int = 0
    """Events of its key that came after the erasure."""
    unkeyed: Mapping[str, int] = {}
    """By copy, how many events do not show the key, so that nobody knows whose they are."""
    published: Mapping[str, int] = {}
    """By published copy, how many events have the key."""


def copies_of(ledger: Ledger, of: Collection[str]) -> CopiesOfTable:
    """Return the tables that tools made of a table.

    Args:
        ledger: of the source.
        of: the names of the table, as the source names it.
    """
    published = {row.object for row in ledger.tables(equals("state", TableState.PUBLISHED))}
    tables = {row.object: row.table for row in ledger.contents()}
    found: tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = {}, {}
    by_name = {name.casefold(): name for name in of}
    for copy in sorted(tables):
        if (copy in of and copy in published) or not migrations.has_rows(tables[copy].name):
            continue
        database = copy.removesuffix(tables[copy].name)
        made_for = migrations.originals(database.casefold(), tables[copy].name.casefold(), by_name)
        for name in {by_name[each] for each in made_for if each in by_name}:
            into = found[copy in published]
            into[name] = (*into.get(name, ()), copy)
    return CopiesOfTable(*found)


def search(lake: Lake, ledger: Ledger, source: str, copies: CopiesOfTable, keys: ErasedKeys) -> InCopies:
    """Return what the change log has of a row under the names of copies.

    Args:
        lake: the lake.
        ledger: of the source.
        source: its name.
        copies: the copies.
        keys: the row's, under the names of all copies.
    """
    published = {copy for each in copies.published.values() for copy in each}
    objects = sorted({*copies.names, *published})
    if not objects:
        return InCopies()
    shapes, recogniser = ledger.shapes_of(*objects), Recogniser(keys)
    events, newer, unkeyed, left = dict[tuple[str, int, int], int | None](), 0, Counter[str](), Counter[str]()
    for copy, row in _images_of(lake, source, objects):
        before, after = (None if text is None else text.encode() for text in (row.before, row.after))
        found = recogniser.erasures_of(copy, shapes[row.shape or ""], before, after)
        if found is None:
            unkeyed[copy] += 1
        elif not any(each.covers(row.committed_at, row.position) for each in found):
            newer += bool(found)
        elif copy in published:
            left[copy] += 1
        else:
            events[row.file, row.place, row.row] = row.committed_at
    return InCopies(events, newer, dict(unkeyed), dict(left))


def _images_of(lake: Lake, source: str, objects: Collection[str]) -> Iterator[tuple[str, LogRow]]:
    """Yield the events of some tables that have images, each with its table."""
    where = And(equals("kind", RowKind.CHANGE), among("object", objects))
    scan = lake.load(names.change_log(source)).scan(row_filter=where, selected_fields=("object", *FIELDS))
    for batch in scan.to_arrow_batch_reader():
        for copy, row in zip(batch.column("object").to_pylist(), log_rows(batch), strict=True):
            if row.shape is not None and (row.before is not None or row.after is not None):
                yield copy, row


def apart(erasures: Sequence[Erasure], of: Collection[str]) -> tuple[Erasure, ...]:
    """Return the erasures under the names of a table, without those under names of copies."""
    return tuple(each for each in erasures if each.object in of)
