"""Whose rows are to be erased: a key of a published table, with the keys that its row had before or had later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.table import Table

from tidemark.ddl.lineages import Segment
from tidemark.erasure.copies import CopiesOfTable, copies_of
from tidemark.erasure.keys import keys_of, require_decided
from tidemark.erasure.matches import Match
from tidemark.errors import ConfigurationError
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.normalization.erased_keys import Erasure, KeyColumn, canonical, digest_of
from tidemark.queries import row_events
from tidemark.queries.explain import find_table, literal
from tidemark.queries.row_events import Identity, RowEvents
from tidemark.queries.row_key import key_given
from tidemark.queries.row_life_scan import LogRow
from tidemark.queries.row_life_steps import Reader
from tidemark.tables.column_rules import masks_recorded, names_recorded
from tidemark.tables.eras import names_of, of_table, segments_of
from tidemark.tables.shard_rules import recorded

Place = tuple[str, int, int]
"""File, place of the message in it, and number of the event in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRow:
    """The row that is to be erased, under all of its keys and all names of its table."""

    source: str
    object: str
    target: Identifier
    standing: TableRow
    """Where the published table stands."""
    events: RowEvents
    identities: Sequence[Identity]
    """Its keys, each in the era in which it had it."""
    unpaired: int = 0
    """Events of which nobody knows whether they are half of a move to another key (``moves``)."""
    copies: CopiesOfTable = field(default_factory=CopiesOfTable)
    """What tools made of its table."""

    @property
    def reader(self) -> Reader:
        """How images are read."""
        return self.events.reader

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The names that events of its table came under."""
        return segments_of(self.events.table)

    @property
    def names(self) -> list[str]:
        """The names of its table, each once."""
        return names_of(self.segments)

    def key_columns(self, key: Sequence[str]) -> tuple[KeyColumn, ...]:
        """Return how a key is read from images."""
        columns = self.reader.columns
        return tuple(KeyColumn(name=name, type=columns[name].type, called=_called(self.reader, name)) for name in key)

    def erasures(self, secret: bytes, before: int, horizon: str) -> tuple[Erasure, ...]:
        """Return the erasure of each key under each name, up to a time and a position; names of copies are the last."""
        own = [(each, segment) for each in self.identities for segment in each.era.segments]
        every = [*own, *self._in_copies(self.copies.alone)]
        return tuple(self._erasure(secret, before, horizon, *each) for each in every)

    def in_published_copies(self, secret: bytes, before: int, horizon: str) -> tuple[Erasure, ...]:
        """Return the same under the names of published copies, from which nothing is erased."""
        return tuple(self._erasure(secret, before, horizon, *each) for each in self._in_copies(self.copies.published))

    def _in_copies(self, copies: Mapping[str, Sequence[str]]) -> list[tuple[Identity, Segment]]:
        """Return the keys under the names of copies. A copy has the next key before its table has it."""
        first: dict[str, str] = {}
        for segment in self.segments:
            first.setdefault(segment.object, segment.begins)
        return [
            (each, Segment(copy, first.get(segment.object, ""), segment.ends))
            for each in self.identities
            for segment in each.era.segments
            for copy in copies.get(segment.object, ())
        ]

    def _erasure(self, secret: bytes, before: int, horizon: str, identity: Identity, segment: Segment) -> Erasure:
        return Erasure(
            object=segment.object,
            columns=self.key_columns(identity.era.key),
            digest=digest_of(secret, segment.object, self._texts(identity)),
            before=before,
            horizon=horizon,
            begins=segment.begins,
            ends=segment.ends,
        )

    def matches(self, ends: str | None = None) -> list[Match]:
        """Return which published rows belong to the subject; with ``ends``, only rows at positions before it."""
        found = []
        for each in self.identities:
            of_era = each.era.segments[-1].ends
            end = min((at for at in (of_era, ends) if at is not None), default=None)
            found.append(Match(dict(self._literals(each)), each.era.segments[0].begins, end))
        return found

    def matches_of_state(self) -> list[Match]:
        """Return which rows of the state table belong to the subject: the table has only the key that holds now."""
        now = self.reader.key
        values = [[value for _, value in self._literals(each)] for each in self.identities if each.era.key == now]
        return [Match({f"k{number}": value for number, value in enumerate(key)}) for key in values]

    def _literals(self, identity: Identity) -> list[tuple[str, Any]]:
        columns = self.reader.columns
        return [(name, literal(identity.key[name], columns[name].type)) for name in identity.era.key]

    def _texts(self, identity: Identity) -> list[tuple[str, str]]:
        columns = self.reader.columns
        return [(name, canonical(identity.key[name], columns[name].type) or "") for name in identity.era.key]


def _called(reader: Reader, name: str) -> tuple[str, ...]:
    """Return every name that images have for a column of the table, in any epoch of names."""
    epochs = range(len(reader.names.renamings) + 1)
    spelled = {column.name for shape in reader.shapes.values() for column in shape.columns}
    found = {each for each in spelled if any(reader.names.today(each, epoch) == name for epoch in epochs)}
    return tuple(sorted(found | {name}))


def source_of(lake: Lake, name: str) -> str:
    """Return the source of a published table.

    Raises:
        UnknownNameError: there is no such table.
    """
    return str(find_table(lake, name)[1].properties[SOURCE_PROPERTY])


def find_subject(lake: Lake, ledger: Ledger, name: str, given: Sequence[str], *, follow: bool | None) -> ErasedRow:
    """Return the row that a person names.

    Args:
        lake: the lake.
        ledger: of the table's source.
        name: the table, as ``source.table``.
        given: the row's key, as texts ``COLUMN=VALUE``.
        follow: whether the other keys that the row had are erased as well; None: nobody has said so.

    Raises:
        ConfigurationError: there is no such table or column, or the table was never published or has no key; or the row
            had other keys, and nobody has said whether they are to be followed.
    """
    target, table = find_table(lake, name)
    _refuse_folded(name, table)
    source, object_name = table.properties[SOURCE_PROPERTY], table.properties[OBJECT_PROPERTY]
    standing = _standing(ledger, name, source, object_name)
    reader = Reader.of(lake, table, row_events.history(lake, table).until(standing.batch))
    eras = of_table(table)
    if not reader.key:
        raise ConfigurationError(
            f"{name} has no key, so nothing tells one row from another: give it a `key:` in the source file, "
            f"`tidemark rebuild {source} {object_name}`, then erase"
        )
    _refuse_unreadable(name, table, {column for era in eras for column in era.key})
    if unknown := [era.key for era in eras if not era.key or not set(era.key) <= reader.columns.keys()]:
        was = f"the key {list(unknown[0])}, of which a column is gone" if unknown[0] else "no key"
        raise ConfigurationError(
            f"{name} had {was} for a time, so nothing tells which rows of that time are those of the key. Nothing was "
            "erased. Load the table anew at the source (a complete load replaces what came before), run, then erase"
        )
    first = key_given(name, given, reader.columns, reader.key)
    events = RowEvents(lake, table, reader)
    keys = keys_of(events, first)
    require_decided(name, keys, follow)
    return ErasedRow(
        source=source,
        object=object_name,
        target=target,
        standing=standing,
        events=events,
        identities=[*keys.own, *(keys.others if follow else ())],
        unpaired=keys.unpaired,
        copies=copies_of(ledger, names_of(segments_of(table))),
    )


def _standing(ledger: Ledger, name: str, source: str, object_name: str) -> TableRow:
    """Return where a table stands; compact makes it before its first cut is published."""
    standing = ledger.published_tables().get(object_name)
    if standing is None:
        raise ConfigurationError(
            f"{name} was never published: its first cut failed, waits for approval, or was restored away. Nothing was "
            f"erased. `tidemark status {source}` shows what holds it. Publish the table, then erase"
        )
    return standing


def _refuse_unreadable(name: str, table: Table, key: Collection[str]) -> None:
    """Refuse a key that is masked or renamed, so that it is not published as messages carry it."""
    called, source = names_recorded(table), table.properties[SOURCE_PROPERTY]
    if unlike := sorted(set(key) & (masks_recorded(table).kinds.keys() | called.keys() | set(called.values()))):
        raise ConfigurationError(
            f"{name}: the key column {unlike[0]!r} is masked or renamed, so the key is not as messages tell it, and a "
            "message that comes again would not be recognised. Nothing was erased. Publish the key as it is, "
            f"`tidemark rebuild {source} {table.properties[OBJECT_PROPERTY]}`, run, then erase"
        )


def _refuse_folded(name: str, table: Table) -> None:
    if shards := recorded(table):
        raise ConfigurationError(
            f"{name} is folded from {len(shards)} tables, and rows of such a table cannot be erased yet. Nothing was "
            "erased. Publish the tables apart (without `target` and `add` in the source file), run, then erase the row "
            "from its own table"
        )


def events_of(subject: ErasedRow, covers: Callable[[LogRow], bool]) -> tuple[dict[Place, int | None], int]:
    """Return the subject's events in the change log that an erasure covers, and how many it does not.

    Each is its place, with its commit time (epoch µs).
    """
    found: dict[Place, int | None] = {}
    newer: set[Place] = set()

    def note(row: LogRow) -> None:
        if row.operation == Operation.TRUNCATE:
            return
        place = (row.file, row.place, row.row)
        if covers(row):
            found[place] = row.committed_at
        else:
            newer.add(place)

    for identity in subject.identities:
        subject.events.steps_in(identity.era, identity.key, note)
    return found, len(newer)
