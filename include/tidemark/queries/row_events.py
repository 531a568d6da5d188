"""The events of a published table in the change log, and the steps of one row through all names and keys of its table.

In each era, the key of that era identifies a row (``tables.eras``). The key in an earlier era is found by the row's
values at the end of that era, because the values of the next key are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.expressions import And
from pyiceberg.table import Table

from tidemark.ddl.history import SchemaHistory, histories
from tidemark.ddl.lineages import Segment, history_of
from tidemark.events import Operation
from tidemark.lake import names as table_names
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.properties import SOURCE_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.queries.row_life import Key, Step
from tidemark.queries.row_life_columns import followed
from tidemark.queries.row_life_masks import shown
from tidemark.queries.row_life_scan import FIELDS, LogRow
from tidemark.queries.row_life_steps import Aside, Reader
from tidemark.queries.shard_views import is_view
from tidemark.tables import eras
from tidemark.tables.eras import Era
from tidemark.values.plain_types import Value

Why = Callable[[LogRow], Aside | None]
"""Returns why the published table does not hold an event, for reasons outside of the event itself."""


def history(lake: Lake, table: Table) -> SchemaHistory:
    """Return the schema changes that a published table followed, under each of its names."""
    segments = eras.segments_of(table)
    known = histories(Ledger(lake, table.properties[SOURCE_PROPERTY]), eras.names_of(segments))
    plain = segments == (Segment(segments[-1].object, "", None),)
    changes = known.get(segments[-1].object, SchemaHistory()) if plain else history_of(known, segments)
    # Of a folded table, another shard may still have a column that this one renamed.
    return changes if is_view(table) else followed(changes, table)


def log_of(lake: Lake, table: Table, segments: Sequence[Segment]) -> pa.RecordBatchReader:
    """Return the change events of a published table that came in some segments, with ``FIELDS``."""
    changelog = lake.load(table_names.change_log(table.properties[SOURCE_PROPERTY]))
    mine = And(equals("kind", RowKind.CHANGE), eras.condition(segments))
    return changelog.scan(row_filter=mine, selected_fields=FIELDS).to_arrow_batch_reader()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The key of a row in one era of its table."""

    era: Era
    key: Key


@dataclass(frozen=True, slots=True)
class RowEvents:
    """Reads the events of single rows of a published table."""

    lake: Lake
    table: Table
    reader: Reader
    """By the key that the table has now."""

    def steps(self, wanted: Key, why: Why) -> list[Step]:
        """Return what the events do to the row with a key, under each name and each key that it had.

        Args:
            wanted: the key by which the table has the row now; of a table without a key, any values.
            why: as ``Why``.
        """
        found: list[Step] = []
        for identity in self.identities(wanted, why):
            found += self.steps_in(identity.era, identity.key, why)
        return found

    def identities(self, wanted: Key, why: Why) -> list[Identity]:
        """Return the keys of the row with a key: of the last era, and of those before, as far as it was there."""
        every = eras.of_table(self.table)
        if not every[-1].key:  # only their values identify the rows of a table that lost its key
            return [Identity(era=each._replace(key=()), key=wanted) for each in every]
        last = Identity(era=every[-1], key=wanted)
        return [last, *self.before(last, why)]

    def before(self, identity: Identity, why: Why) -> list[Identity]:
        """Return the keys of a row in the eras before one, the last of them first."""
        every, found = eras.of_table(self.table), [identity]
        for era in reversed(every[: every.index(identity.era)]):
            key = self._key_before(era, found[-1].key, why)
            if key is None:
                break
            found.append(Identity(era=era, key=key))
        return found[1:]

    def after(self, identity: Identity, why: Why) -> list[Identity]:
        """Return the keys of a row in the eras after one, as far as it is there."""
        every, found = eras.of_table(self.table), [identity]
        for era in every[every.index(identity.era) + 1 :]:
            values, is_there, _ = self._row_at_end(found[-1].era, found[-1].key, why)
            key = {name: values.get(name) for name in era.key}
            if not is_there or None in key.values():
                break
            found.append(Identity(era=era, key=key))
        return found[1:]

    def steps_in(self, era: Era, key: Key, why: Why) -> list[Step]:
        """Return what the events of an era do to the row that has a key in it."""
        steps = list(replace(self.reader, key=era.key).steps(log_of(self.lake, self.table, era.segments), key, why))
        return steps if era.key or not self.reader.key else _counted(steps)

    def _key_before(self, era: Era, key: Key, why: Why) -> Key | None:
        """Return the key in an era of the row that has a key in the next era; None if there was no such row.

        Where the row that had these values was deleted in the era, it is the one that was there last.
        """
        if not era.key:
            return key
        if not {*era.key, *key} <= self.reader.columns.keys():  # a column of the key was dropped since
            return None
        wanted = shown(key, self.reader.masks)
        last: tuple[bool, str, Key] | None = None
        for candidate in self._candidates(era, key):
            values, is_there, position = self._row_at_end(era, candidate, why)
            if self.reader.same(values, wanted, list(key)) and (last is None or (is_there, position) > last[:2]):
                last = (is_there, position, candidate)
        return last[2] if last is not None else None

    def _row_at_end(self, era: Era, key: Key, why: Why) -> tuple[Mapping[str, Value], bool, str]:
        """Return the shown row with a key at an era's end, or as it was last; whether it is there; its position."""
        whole = replace(self.reader, key=era.key, key_of_table=())
        steps = whole.steps(log_of(self.lake, self.table, era.segments), key, why)
        values: dict[str, Value] = {}
        is_there, position = False, ""
        for step in sorted(steps, key=lambda step: step.position):
            if step.aside is not None or (step.half and step.partial):
                continue
            if not step.deletes:
                values = {**(values if is_there else {}), **step.cells}
            is_there, position = not step.deletes, step.position
        return {**values, **shown(key, self.reader.masks)} if values else {}, is_there, position

    def _candidates(self, era: Era, key: Key) -> list[Key]:
        """Return the keys in an era of the rows that an event gave the values of a later key."""
        if set(era.key) <= key.keys():
            return [{name: key[name] for name in era.key}]
        reader = replace(self.reader, key=era.key, key_of_table=())
        found: dict[str, Key] = {}
        for one in reader.keys_with(log_of(self.lake, self.table, era.segments), key):
            found.setdefault(repr(one), one)
        return list(found.values())


def _counted(steps: Sequence[Step]) -> list[Step]:
    """Return the steps of equal rows of a table without a key, which got one later: the last one takes the row away."""
    found: list[Step] = []
    rows, seen = 0, ""
    for step in sorted(steps, key=lambda step: step.position):
        if step.operation == Operation.TRUNCATE:
            rows = 0
        elif step.aside is None and step.position != seen and not step.replaces:
            rows = max(0, rows + (-1 if step.deletes else 1))
        seen = step.position
        found.append(replace(step, deletes=step.deletes and not rows))
    return found
