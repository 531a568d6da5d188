"""Reads events of the change log as the steps of one row's life. Values are read as compact reads them, without Spark.

Columns have the names of today. An image uses the names that were valid at its position (``ddl.names.ColumnNames``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
from pyiceberg.table import Table

from tidemark.ddl.history import SchemaHistory
from tidemark.ddl.names import ColumnNames
from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding, Operation, Shape
from tidemark.lake.lake import Lake
from tidemark.lake.properties import SOURCE_PROPERTY
from tidemark.ledger.ledger import Ledger
from tidemark.queries.row_life import Key, Outcome, Step
from tidemark.queries.row_life_columns import defaults
from tidemark.queries.row_life_masks import MaskedText, as_shown, masked
from tidemark.queries.row_life_scan import LogRow, comparable, log_rows, made, may_hold
from tidemark.queries.shard_views import own_columns
from tidemark.tables import eras
from tidemark.tables import reasons as fold_reasons
from tidemark.tables.column_rules import derived_columns, masks_recorded, names_recorded
from tidemark.tables.schemas import DELETED, OWN_COLUMNS, OWN_PREFIX, key_of
from tidemark.values.masking import Masks
from tidemark.values.plain import read_value
from tidemark.values.plain_types import Value
from tidemark.values.table_columns import TableColumn

_WRITTEN_AS_IS = frozenset({Encoding.PLAIN, Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])

Aside = tuple[Outcome, str]
"""Why an event takes no part, with a sentence for people."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of a table's events as steps of one row."""

    columns: Mapping[str, TableColumn]
    key: tuple[str, ...]
    """The columns that identify the row in the events."""
    key_of_table: tuple[str, ...]
    """The key of the table: steps show the cells of all other columns."""
    shapes: Mapping[str, Shape]
    names: ColumnNames
    """Today's names for the columns of images."""
    defaults: Mapping[str, tuple[str, Value]]
    """For each column that was added with a constant: the position at which it was added, and the constant."""
    soft: bool
    """Whether a deleted row stays, marked."""
    masks: Masks
    """Masks of the table's columns. Events are compared by their plain values, and steps show the masked ones."""

    @classmethod
    def of(cls, lake: Lake, table: Table, history: SchemaHistory) -> Reader:
        """Return a reader for a table; ``history`` has the DDL of the batches that the published table holds."""
        fields = [TableColumn(column.name, str(column.field_type)) for column in table.schema().fields]
        ledger = Ledger(lake, table.properties[SOURCE_PROPERTY])
        shapes = ledger.shapes_of(*eras.names_of(eras.segments_of(table)))
        # A column whose name begins with Tidemark's prefix belongs to a candidate.
        not_theirs = {*OWN_COLUMNS, *own_columns(table), *derived_columns(table)}
        columns = {
            column.name: column
            for column in fields
            if column.name not in not_theirs and not column.name.startswith(OWN_PREFIX)
        }
        spelled = [*(column.name for shape in shapes.values() for column in shape.columns), *columns]
        names = ColumnNames(history.renamings, spelled, names_recorded(table))
        return cls(
            columns=columns,
            key=tuple(key_of(table)),
            key_of_table=tuple(key_of(table)),
            shapes=shapes,
            names=names,
            defaults=defaults(history, names, columns),
            soft=any(column.name == DELETED for column in fields),
            masks=masks_recorded(table),
        )

    def steps(
        self, batches: pa.RecordBatchReader, wanted: Key, aside: Callable[[LogRow], Aside | None]
    ) -> Iterator[Step]:
        """Yield what the events do to the row with the key ``wanted``, with the TRUNCATEs.

        Args:
            batches: change events of the table, with ``FIELDS``.
            wanted: the result of ``row_key.key_given``.
            aside: returns why the published table does not hold an event, for reasons outside of the event itself.
        """
        patterns = [pattern for name, value in wanted.items() if (pattern := self._pattern(name, value))]
        for batch in batches:
            for row in log_rows(batch.filter(may_hold(batch, patterns))):
                step = (self._step if self.key else self._bag_step)(row, wanted)
                if step is not None:
                    yield masked(replace(step, aside=aside(row) or step.aside), self.masks)

    def keys(self, row: LogRow) -> list[dict[str, Value]]:
        """Return the keys of the rows that an event may concern: the whole keys in its old and its new image."""
        found: list[dict[str, Value]] = []
        for text in (row.before, row.after):
            image, _ = self._image(row, text, only=self.key)
            key = {name: image.get(name) for name in self.key}
            if None not in key.values() and key not in found:
                found.append(key)
        return found

    def keys_with(self, batches: pa.RecordBatchReader, values: Key) -> Iterator[dict[str, Value]]:
        """Yield the keys of the rows to which an event gave some values, as far as the event has them."""
        sought = [
            *(each for each in values if each in self.key),
            *[each for each in values if each not in self.key][:1],
        ]
        patterns = [self._pattern(name, values[name]) for name in sought]
        for batch in batches:
            few = batch.filter(may_hold(batch, [pattern for pattern in patterns if pattern]))
            for row in log_rows(few):
                if row.after is None:
                    continue
                after, before = self._image(row, row.after)[0], self._image(row, row.before, only=self.key)[0]
                key = {name: _first(after.get(name), before.get(name) if row.partial else None) for name in self.key}
                cells = {**self._defaults(row), **after}
                given = {name: cells.get(name) for name in self._written(row)} | key
                if None not in key.values() and self.same(given, values, [name for name in values if name in given]):
                    yield key

    def _pattern(self, name: str, value: Value) -> str | None:
        """Return a pattern that every image with this value matches, unless there is a backslash in the image.

        None if there is no such pattern.
        """
        in_images = [each for shape in self.shapes.values() for each in shape.columns if self._is_called(each, name)]
        encodings = {column.encoding for column in in_images}
        called = "|".join(sorted({re.escape(column.name) for column in in_images} | {re.escape(name)}))
        kind = self.columns[name].type
        if name in self.defaults:  # images from before the column was added do not have it
            return None
        if not isinstance(value, str) or not encodings <= _WRITTEN_AS_IS or kind not in {"int", "long", "string"}:
            return None
        if kind == "string":
            written = "|".join(re.escape(str(each)) for each in {value, as_shown(name, value, self.masks)})
            return rf'"(?:{called})"\s*:\s*"?(?:{written})["\s,}}]'
        written = f"[+-]?0*{value.lstrip('-')}"
        return rf'"(?:{called})"\s*:\s*"?{written}["\s,}}]'

    def _is_called(self, column: Column, name: str) -> bool:
        """Return whether a column of images is the table's column ``name`` in any epoch."""
        epochs = range(len(self.names.renamings) + 1)
        return any(self.names.today(column.name, epoch) == name for epoch in epochs)

    def _columns_of(self, row: LogRow) -> Iterator[tuple[str, Column]]:
        """Yield the columns of the row's shape that the table has, each with its name in the table."""
        epoch = self.names.epoch(row.position)
        for column in self.shapes[row.shape or ""].columns:
            name = self.names.today(column.name, epoch)
            if name is not None and name in self.columns:
                yield name, column

    def _step(self, row: LogRow, wanted: Key) -> Step | None:
        """Return what an event does to the row with a key; None if it does not concern the row."""
        if row.operation == Operation.TRUNCATE:
            return made(row, deletes=True)
        whole_update = row.operation == Operation.UPDATE and row.after is not None
        half = row.operation == Operation.UPDATE and row.after is None
        text = row.before if row.after is None else row.after
        image, _ = self._image(row, text, only=self.key)
        old, old_fault = self._image(row, row.before, only=self.key) if whole_update else ({}, None)
        new_key = {name: _first(image.get(name), old.get(name) if row.partial else None) for name in self.key}
        old_key = {name: _first(old.get(name), new_key[name]) for name in self.key}
        moved = any(
            None not in {old_key[name], new_key[name]} and not self.same(old_key, new_key, [name]) for name in self.key
        )
        arrives, leaves = self.same(new_key, wanted, self.key), moved and self.same(old_key, wanted, self.key)
        if not arrives and not leaves:
            return None
        writes = row.operation != Operation.DELETE and not half
        image, fault = self._image(row, text)
        image = {**self._defaults(row), **image}
        written = [name for name in self.columns if name in self.key or name in self._written(row)]
        cells = {name: {**image, **new_key}.get(name) for name in written if name not in self.key_of_table}
        shown = {}
        if self.soft and (leaves or not writes) and row.before is not None:
            shown = {**self._defaults(row), **self._image(row, row.before)[0]}
        return made(
            row,
            deletes=leaves or not writes,
            cells=cells if arrives and writes else {},
            leaves={name: value for name, value in shown.items() if name not in self.key_of_table},
            moved_from=old_key if moved and arrives else None,
            moved_to=new_key if leaves else None,
            aside=_aside(
                fault or old_fault if writes else None,
                null_key=None in new_key.values(),
                torn=moved and bool(row.partial),
            ),
            half=half,
            partial=bool(row.partial),
        )

    def _bag_step(self, row: LogRow, wanted: Key) -> Step | None:
        """Return what an event does to rows with the wanted values; None if it does not concern them."""
        if row.operation == Operation.TRUNCATE:
            return made(row, deletes=True)
        after, _ = self._image(row, row.after)
        before, _ = self._image(row, row.before)
        # A column that one image of an update lacks has the value of the other image.
        defaults = self._defaults(row)
        old = {**defaults, **after, **before}
        missing = row.absent or ()
        absent = {name: old.get(name) for name, column in self._columns_of(row) if column.name in missing}
        new = {**defaults, **absent, **after}
        adds = row.after is not None and self.same(new, wanted, list(wanted))
        takes = row.before is not None and self.same(old, wanted, list(wanted))
        if not adds and not takes:
            return None
        cells = {name: new.get(name) for name in self.columns if name not in self.key_of_table} if adds else {}
        return made(row, deletes=not adds, cells=cells, replaces=adds and takes)

    def _defaults(self, row: LogRow) -> dict[str, Value]:
        """Return the cells of columns that were added after the event: the default, which the row got at the source."""
        in_shape = {name for name, _ in self._columns_of(row)}
        return {
            name: value
            for name, (position, value) in self.defaults.items()
            if name not in in_shape and row.position < position
        }

    def _image(
        self, row: LogRow, text: str | None, only: Sequence[str] | None = None
    ) -> tuple[dict[str, Value], str | None]:
        """Return the values of an image of a row by column, and why the first unreadable value cannot be read.

        An unreadable value is left out.
        """
        if text is None:
            return {}, None
        members = _members.decode(text)
        read: dict[str, Value] = {}
        fault = None
        for name, column in self._columns_of(row):
            if column.name not in members or (only and name not in only):
                continue
            try:
                typed = Column(column.name, self.columns[name].type, column.encoding)
                value = read_value(bytes(members[column.name]), typed, column.type)
                is_done = column.masked is not msgspec.UNSET and isinstance(value, str)
                read[name] = MaskedText(value) if is_done else value
            except UnreadableValueError as error:
                is_masked = name in self.masks.kinds
                fault = fault or (f"column '{column.name}': masked, and does not fit" if is_masked else str(error))
        return read, fault

    def _written(self, row: LogRow) -> list[str]:
        """Return the names of the columns that an event writes."""
        if not row.partial:
            return list(self.columns)
        absent = row.absent or ()
        captured = {name for name, column in self._columns_of(row) if column.name not in absent}
        written = captured | self._defaults(row).keys()
        return [name for name in self.columns if name in written]

    def same(self, one: Key, other: Key, names: Sequence[str]) -> bool:
        """Return whether rows have the same values in some columns."""
        return all(self._equal(name, one.get(name), other[name]) for name in names)

    def _equal(self, name: str, one: Value, other: Value) -> bool:
        if isinstance(one, MaskedText) or isinstance(other, MaskedText):  # the plain value is known of one at the most
            one, other = as_shown(name, one, self.masks), as_shown(name, other, self.masks)
        return comparable(one, self.columns[name].type) == comparable(other, self.columns[name].type)


def _first(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def _aside(fault: str | None, *, null_key: bool = False, torn: bool = False) -> Aside | None:
    """Return why compact sets an event aside, for a reason in the event itself."""
    if fault is not None:
        return Outcome.QUARANTINED, f"{fold_reasons.UNREADABLE_VALUE}: {fault}"
    if null_key:
        return Outcome.QUARANTINED, f"{fold_reasons.NULL_KEY}: a part of the new key is null or missing"
    if torn:
        return (
            Outcome.QUARANTINED,
            f"{fold_reasons.PARTIAL_KEY_CHANGE}: the key changed, and the message does not show the whole row",
        )
    return None
