"""The hot path: messages of ``raw`` into rows of the change log and of quarantine, batch by batch, in order.

Runs on Spark's workers, or in the process of a small run, and imports neither Spark nor Iceberg. A message is touched
by Python once, by its decoder; what its events have in common is written as one Arrow column of one value.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import msgspec
import pyarrow as pa

from tidemark.errors import MalformedMessageError
from tidemark.events import (
    ChangeEvent,
    ControlEvent,
    Event,
    Message,
    Operation,
    Position,
    Quarantined,
    SchemaChange,
    TableId,
    encode_position,
)
from tidemark.lake.data_files import Partition
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RowKind
from tidemark.ledger.tally import LOAD, Content, LoggedStatement, Tally
from tidemark.normalization.arrow_rows import (
    NAME_LIST,
    filled_batch,
    image_array,
    instant_array,
    messages_of,
    transaction_columns,
)
from tidemark.normalization.loads import MOST_LOADS, LoadTracker
from tidemark.normalization.shapes import Shapes
from tidemark.normalization.transaction_tracker import Tracker
from tidemark.values.declared_types import DeclaredEncodings

Decode = Callable[[Message], "list[Event] | Quarantined"]

Write = Callable[[Partition, pa.RecordBatch], None]


class Decoder:
    """Decodes the messages of one batch and hands on rows, those of one partition together."""

    def __init__(
        self,
        batch: int,
        decode: Decode,
        write: Write,
        set_aside: Write,
        tracker: Tracker | None = None,
        declared: Mapping[str, DeclaredEncodings] = MappingProxyType({}),
    ) -> None:
        """Begin.

        Args:
            batch: of all messages.
            decode: one message to its events.
            write: takes rows of ``CHANGE_LOG`` of one (batch, kind, object).
            set_aside: takes rows of ``QUARANTINE`` of one (batch, reason, object).
            tracker: takes note of what the events tell of transactions.
            declared: by table or pattern, how the source file says that values are written of which messages do not.
        """
        self._batch = batch
        self._decode = decode
        self._write = write
        self._set_aside = set_aside
        self._tracker = tracker
        self._shapes = Shapes(declared)
        self._contents = Counter[Content]()
        self._loads: dict[tuple[TableId, Position], LoadTracker] = {}
        self._tally = Tally()

    def add(self, raw: pa.RecordBatch) -> None:
        """Decode a batch of ``RAW``."""
        found = _Decoded(map(self._decode, messages_of(raw)))
        try:
            batches = list(self._batches(raw, found))
        except (pa.ArrowException, OverflowError, ValueError) as error:
            self._add_in_parts(raw, error)
            return
        for write, partition, rows in batches:
            write(partition, rows)
            self._track(partition, rows)
        self._count(raw, found)

    def _track(self, partition: Partition, rows: pa.RecordBatch) -> None:
        if self._tracker is None:
            return
        _, kind, table = partition
        if kind == RowKind.CHANGE:
            self._tracker.changes(self._batch, str(table), rows)
        elif kind == RowKind.CONTROL:
            self._tracker.controls(self._batch, rows)

    def _add_in_parts(self, raw: pa.RecordBatch, error: Exception) -> None:
        """Find the message whose event no row can hold (a time beyond the year 9999, a position below zero)."""
        if raw.num_rows > 1:
            half = raw.num_rows // 2
            self.add(raw.slice(0, half))
            self.add(raw.slice(half))
            return
        found = _Decoded([Quarantined(MalformedMessageError.reason, f"a number beyond its bounds: {error}"[:300])])
        for write, partition, rows in self._batches(raw, found):
            write(partition, rows)
        self._count(raw, found)

    def _batches(self, raw: pa.RecordBatch, found: _Decoded) -> Iterator[tuple[Write, Partition, pa.RecordBatch]]:
        for table, events in found.changes.items():
            yield self._write, (self._batch, RowKind.CHANGE.value, str(table)), self._changes(raw, table, events)
        for (kind, table), events in found.others.items():
            yield self._write, (self._batch, kind.value, str(table) or None), self._others(raw, kind, table, events)
        for reason, told in found.refused.items():
            yield self._set_aside, (self._batch, reason, None), self._quarantined(raw, told)

    def _count(self, raw: pa.RecordBatch, found: _Decoded) -> None:
        tally, landed = self._tally, raw.num_rows
        quarantined = sum(map(len, found.refused.values()))
        tally.landed += landed
        tally.quarantined += quarantined
        tally.control += found.control
        tally.decoded += landed - quarantined - found.control
        for table, changes in found.changes.items():
            for content, count in changes.told.items():
                self._contents[Content(table, *content)] += count
            if any(content[0] == Operation.SNAPSHOT for content in changes.told):
                self._note_loads(table, changes.events)

        for (kind, _), others in found.others.items():
            if kind is RowKind.SCHEMA_CHANGE:
                landed_at = raw.column("landed_at").cast(pa.int64()).take(pa.array(others.indexes, pa.int32()))
                tally.statements += filter(None, map(_statement, others.events, landed_at.to_pylist()))

    def _note_loads(self, table: TableId, events: Iterable[ChangeEvent]) -> None:
        for event in events:
            if event.load is not None:
                load = self._loads.get((table, event.load))
                if load is None:
                    self._forget_a_load()
                    load = self._loads[table, event.load] = LoadTracker(event)
                load.add(event)

    def _forget_a_load(self) -> None:
        if len(self._loads) >= MOST_LOADS:
            oldest = next((place for place, load in self._loads.items() if not load.several), None)
            if oldest is not None:
                del self._loads[oldest]

    def close(self) -> Tally:
        """What was counted."""
        self._tally.statements += [
            LoggedStatement(table, encode_position(place), LOAD, msgspec.json.encode(load.told()).decode())
            for (table, place), load in self._loads.items()
        ]
        self._tally.contents = list(self._contents.items())
        self._tally.shapes = self._shapes.told()
        return self._tally

    def _changes(self, raw: pa.RecordBatch, table: TableId, found: _Events) -> pa.RecordBatch:
        events = found.events
        operations = [event.operation for event in events]
        shapes = self._shapes.ids_of(table, events)
        partial = [event.partial for event in events]
        keys = [event.key for event in events]
        after = [event.after for event in events]
        halves = [image is None and operation == _UPDATE for image, operation in zip(after, operations, strict=True)]
        found.told = Counter(zip(operations, shapes, partial, keys, halves, strict=True))
        columns = {
            **self._common(raw, RowKind.CHANGE, table, found),
            "operation": pa.array(operations, pa.string()),
            "before": image_array([event.before for event in events]),
            "after": image_array(after),
            "shape": pa.array(shapes, pa.string()),
            "partial": pa.array(partial, pa.bool_()),
        }
        if any(partial):
            columns["absent"] = pa.array([event.absent or None for event in events], NAME_LIST)
        if any(key is not None for key in keys):
            columns["key"] = pa.array(keys, NAME_LIST)
        return filled_batch(columns, len(events), CHANGE_LOG)

    def _others(self, raw: pa.RecordBatch, kind: RowKind, table: TableId, found: _Events) -> pa.RecordBatch:
        told = [_told(event) for event in found.events]
        shapes = [self._shapes.id_of(table, getattr(event, "shape", None)) for event in found.events]
        columns = {
            **self._common(raw, kind, table, found),
            "operation": pa.array([operation for operation, _ in told], pa.string()),
            "shape": pa.array(shapes, pa.string()),
            "partial": pa.repeat(pa.scalar(value=False), len(told)),
            "detail": pa.array([detail for _, detail in told], pa.string()),
        }
        return filled_batch(columns, len(told), CHANGE_LOG)

    def _common(self, raw: pa.RecordBatch, kind: RowKind, table: TableId, found: _Events) -> dict[str, pa.Array]:
        """The columns that every kind of row has."""
        events, count = found.events, len(found.events)
        origin = raw.select(["landed_at", "file", "place"])
        if count != raw.num_rows or any(found.numbers):
            origin = origin.take(pa.array(found.indexes, pa.int32()))
        constants = {
            "batch": pa.scalar(self._batch, pa.int32()),
            "kind": pa.scalar(kind.value),
            "object": pa.scalar(str(table) or None, pa.string()),
            "database": pa.scalar(table.database, pa.string()),
            "schema": pa.scalar(table.schema, pa.string()),
            "name": pa.scalar(table.name or None, pa.string()),
        }
        return {
            **{name: pa.repeat(value, count) for name, value in constants.items()},
            **{name: origin.column(name) for name in origin.schema.names},
            "row": pa.array(found.numbers, pa.int32()),
            "position": pa.array([encode_position(event.position) or None for event in events], pa.string()),
            "committed_at": instant_array([event.committed_at for event in events]),
            "captured_at": instant_array([event.captured_at for event in events]),
            **transaction_columns([getattr(event, "transaction", None) for event in events]),
        }

    def _quarantined(self, raw: pa.RecordBatch, told: Sequence[tuple[int, Quarantined]]) -> pa.RecordBatch:
        kept = raw.take(pa.array([index for index, _ in told], pa.int32()))
        columns = {field.name: kept.column(field.name) for field in QUARANTINE if field.name in kept.schema.names}
        columns["reason"] = pa.array([found.reason for _, found in told], pa.string())
        columns["detail"] = pa.array([found.detail for _, found in told], pa.string())
        return filled_batch(columns, len(told), QUARANTINE)


_UPDATE = Operation.UPDATE.value

_NO_TABLE = TableId(None, None, "")


class _Events:
    """Events of one partition, and where their messages stand in the batch."""

    __slots__ = ("events", "indexes", "numbers", "told")

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.indexes: list[int] = []
        self.numbers: list[int] = []
        self.told = Counter[tuple[Any, ...]]()
        """Of change events, once they are rows: how many agree in operation, shape, ``partial``, key and ``half``."""


class _Decoded:
    """The events of a batch of messages, by the partition that they belong to."""

    def __init__(self, decoded: Iterable[list[Event] | Quarantined]) -> None:
        self.changes = defaultdict[TableId, _Events](_Events)
        self.others = defaultdict[tuple[RowKind, TableId], _Events](_Events)
        self.refused = defaultdict[str, list[tuple[int, Quarantined]]](list)
        self.control = 0
        """Messages with nothing but control events."""
        for index, events in enumerate(decoded):
            if isinstance(events, Quarantined):
                self.refused[events.reason].append((index, events))
                continue
            control = True
            for number, event in enumerate(events):
                if type(event) is ChangeEvent:
                    found = self.changes[event.table]
                    control = False
                else:
                    kind = RowKind.CONTROL if type(event) is ControlEvent else RowKind.SCHEMA_CHANGE
                    found = self.others[kind, getattr(event, "table", None) or _NO_TABLE]
                    control = control and kind is RowKind.CONTROL
                found.events.append(event)
                found.indexes.append(index)
                found.numbers.append(number)
            self.control += control


def _told(event: SchemaChange | ControlEvent) -> tuple[str, str]:
    if type(event) is SchemaChange:
        return event.dialect, event.statement
    kind = cast(ControlEvent, event).kind
    return kind, kind


_CHANGING = re.compile(r"\b(?:alter|drop|rename|replace|truncate)\b", re.IGNORECASE)

_LONGEST_STATEMENT = 65_537
"""Characters that are told of a statement: one more than are read."""


def _statement(event: SchemaChange, landed_at: int) -> LoggedStatement | None:
    """The text of a change, unless it changes nothing that is there already, or the message tells the shape instead."""
    if event.shape is not None or not _CHANGING.search(event.statement):
        return None
    position = encode_position(event.position)
    times = (event.committed_at, event.captured_at, landed_at)
    at = next(time for time in times if time is not None)
    return LoggedStatement(event.table, position, event.dialect, event.statement[:_LONGEST_STATEMENT], at)
