"""The hot path: turns messages of ``raw`` into rows of the change log and of quarantine, batch by batch, in order.

It runs on Spark's workers, or in the process of a small run, and imports neither Spark nor Iceberg. Python touches a
message once, in the decoder of its format. A value that all events of a batch share becomes one constant Arrow column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import cast

import msgspec
import pyarrow as pa

from tidemark.errors import MalformedMessageError
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, Quarantined, SchemaChange, TableId
from tidemark.lake.data_files import Partition
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RowKind
from tidemark.ledger.tally import LOAD, Content, LoggedStatement, Span, Tally, either, is_placed, one_of
from tidemark.normalization import spans
from tidemark.normalization.arrow_rows import (
    NAME_LIST,
    filled_batch,
    image_array,
    instant_array,
    messages_of,
    transaction_columns,
)
from tidemark.normalization.decoded_batch import DecodedBatch, EventGroup
from tidemark.normalization.delivery_order import DeliveryOrder, Logs
from tidemark.normalization.erased_keys import AGAIN, ErasedEvent
from tidemark.normalization.loads import MOST_LOADS, LoadTracker
from tidemark.normalization.logged_statements import logged_statement
from tidemark.normalization.offsets import OffsetsSeen
from tidemark.normalization.shapes import Shapes
from tidemark.normalization.transaction_tracker import Tracker
from tidemark.positions import Position, encode_position
from tidemark.values.declared_types import DeclaredEncodings

Recognise = Callable[[Message], "list[Event] | list[Event | ErasedEvent] | Quarantined"]
"""Returns the same, with the places of events whose rows were erased."""

Write = Callable[[Partition, pa.RecordBatch], None]
"""Takes rows of one partition."""


class Decoder:
    """Decodes the messages of one batch. Hands on their rows, grouped by partition, and counts them."""

    def __init__(
        self,
        batch: int,
        decode: Recognise,
        write: Write,
        set_aside: Write,
        tracker: Tracker | None = None,
        declared: Mapping[str, DeclaredEncodings] = MappingProxyType({}),
    ) -> None:
        """Begin a batch.

        Args:
            batch: the number that all rows get in the column ``batch``.
            decode: decodes one message.
            write: takes rows of ``CHANGE_LOG``, of one (batch, kind, object) each time.
            set_aside: takes rows of ``QUARANTINE``, of one (batch, reason, object) each time.
            tracker: follows the transactions of the events.
            declared: by table or pattern, the types and encodings that the source file declares; they apply to columns
                whose encoding the messages do not give.
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
        self._order = DeliveryOrder()
        self.offsets = OffsetsSeen()

    def add(self, raw: pa.RecordBatch) -> None:
        """Decode a batch of ``RAW``."""
        decoded = DecodedBatch(map(self._decode, messages_of(raw)))
        try:
            batches = list(self._batches(raw, decoded))
        except (pa.ArrowException, OverflowError, ValueError) as error:
            self._add_in_parts(raw, error)
            return
        logs, groups = Logs(raw), iter(decoded.changes.values())  # two tables may have one text
        unplaced: set[str] = set()
        for write, partition, rows in batches:
            write(partition, rows)
            self._track(partition, rows)
            if write == self._write and partition[1] == RowKind.CHANGE:
                table, group = str(partition[2]), next(groups)
                delivered = spans.delivered(rows, group.events)
                self._order.follow(table, delivered, logs, group.indexes)
                span = spans.of_rows(delivered)
                span.database = one_of({event.of_database for event in group.events})
                self._tally.spans.setdefault(table, Span()).add(span)
                if not is_placed(span.oldest):
                    unplaced.add(table)
            elif partition[1] == RowKind.CONTROL:
                self._tally.heard = either(max, self._tally.heard, spans.newest_of_controls(rows))
        self._count(raw, decoded, unplaced)

    def _track(self, partition: Partition, rows: pa.RecordBatch) -> None:
        if self._tracker is None:
            return
        _, kind, table = partition
        if kind == RowKind.CHANGE:
            self._tracker.changes(self._batch, str(table), rows)
        elif kind == RowKind.ERASED:
            self._tracker.changes(self._batch, str(table), rows, erased=True)
        elif kind == RowKind.CONTROL:
            self._tracker.controls(self._batch, rows)

    def _add_in_parts(self, raw: pa.RecordBatch, error: Exception) -> None:
        """Decode a batch in halves, down to the one message whose event fits no row; set that message aside.

        Such an event has, for example, a time after the year 9999 or a position below zero.
        """
        if raw.num_rows > 1:
            half = raw.num_rows // 2
            self.add(raw.slice(0, half))
            self.add(raw.slice(half))
            return
        reason = Quarantined(MalformedMessageError.reason, f"a number beyond its bounds: {error}"[:300])
        decoded = DecodedBatch([reason])
        for write, partition, rows in self._batches(raw, decoded):
            write(partition, rows)
        self._count(raw, decoded)

    def _batches(self, raw: pa.RecordBatch, decoded: DecodedBatch) -> Iterator[tuple[Write, Partition, pa.RecordBatch]]:
        """Yield the rows of each partition, with the function that takes them."""
        for table, group in decoded.changes.items():
            yield self._write, (self._batch, RowKind.CHANGE.value, str(table)), self._changes(raw, table, group)
        for (kind, table), group in decoded.others.items():
            yield self._write, (self._batch, kind.value, str(table) or None), self._others(raw, kind, table, group)
        for reason, refused in decoded.refused.items():
            yield self._set_aside, (self._batch, reason, None), self._quarantined(raw, refused)

    def _count(self, raw: pa.RecordBatch, decoded: DecodedBatch, unplaced: Collection[str] = ()) -> None:
        """Count what became of messages; ``unplaced`` are the tables that have rows without a place in the log."""
        tally, landed = self._tally, raw.num_rows
        quarantined = sum(map(len, decoded.refused.values()))
        tally.landed += landed
        tally.quarantined += quarantined
        tally.control += decoded.control
        tally.decoded += landed - quarantined - decoded.control
        for table, changes in decoded.changes.items():
            for content, count in changes.contents.items():
                self._contents[Content(table, *content)] += count
            if str(table) in unplaced or any(content[0] == Operation.SNAPSHOT for content in changes.contents):
                self._note_loads(table, changes.events)
        for (kind, _), others in decoded.others.items():
            if kind is RowKind.SCHEMA_CHANGE:
                landed_at = raw.column("landed_at").cast(pa.int64()).take(pa.array(others.indexes, pa.int32()))
                tally.statements += filter(None, map(logged_statement, others.events, landed_at.to_pylist()))

    def _note_loads(self, table: TableId, events: Sequence[ChangeEvent]) -> None:
        self._tally.spans.setdefault(str(table), Span()).add(spans.of_loaded(events))
        for event in events:
            if event.load is not None:
                load = self._loads.get((table, event.load))
                if load is None:
                    self._forget_a_load()
                    load = self._loads[table, event.load] = LoadTracker(event)
                load.add(event)

    def _forget_a_load(self) -> None:
        """Drop the oldest load of a single row when there are as many as a task may remember."""
        if len(self._loads) >= MOST_LOADS:
            oldest = next((place for place, load in self._loads.items() if not load.several), None)
            if oldest is not None:
                del self._loads[oldest]

    def add_erased(self, count: int) -> None:
        """Count messages whose bytes an erasure removed: they were decoded once, and what is left of them is kept."""
        self._tally.landed += count
        self._tally.decoded += count

    def leave(self, bare: pa.RecordBatch) -> None:
        """Leave messages of one reason in quarantine as they are: their bytes are gone."""
        self._set_aside((self._batch, bare.column("reason")[0].as_py(), None), bare)
        self._tally.landed += bare.num_rows
        self._tally.quarantined += bare.num_rows
        self._tally.without_bytes += bare.num_rows

    def add_logs(self, logs: Iterable[str]) -> None:
        """Note the orders that messages were dumped in, two at most: all that matters is whether there are several."""
        self._tally.logs = sorted({*self._tally.logs, *logs})[:2]

    def close(self) -> Tally:
        """Return what was counted."""
        self._tally.statements += [
            LoggedStatement(table, encode_position(place), LOAD, msgspec.json.encode(load.result()).decode())
            for (table, place), load in self._loads.items()
        ]
        for table, span in self._order.turns():
            self._tally.spans[table].add(span)
        self._tally.contents = list(self._contents.items())
        self._tally.shapes = self._shapes.entries()
        self._tally.offsets = self.offsets.close()
        return self._tally

    def _changes(self, raw: pa.RecordBatch, table: TableId, group: EventGroup) -> pa.RecordBatch:
        """Return the rows of the change events of one table, and count their contents in the group."""
        events = group.events
        operations = [event.operation for event in events]
        shapes = self._shapes.ids_of(table, events)
        partial = [event.partial for event in events]
        keys = [event.key for event in events]
        after = [event.after for event in events]
        halves = [image is None and operation == _UPDATE for image, operation in zip(after, operations, strict=True)]
        group.contents = Counter(zip(operations, shapes, partial, keys, halves, strict=True))
        columns = {
            **self._common(raw, RowKind.CHANGE, table, group),
            "operation": pa.array(operations, pa.string()),
            "before": image_array([event.before for event in events]),
            "after": image_array(after),
            "shape": pa.array(shapes, pa.string()),
            "partial": pa.array(partial, pa.bool_()),
        }
        if any(partial):
            columns["absent"] = pa.array([event.absent or None for event in events], NAME_LIST)
            columns["upsert"] = pa.array([event.upsert if event.partial else None for event in events], pa.bool_())
        if any(key is not None for key in keys):
            columns["key"] = pa.array(keys, NAME_LIST)
        return filled_batch(columns, len(events), CHANGE_LOG)

    def _others(self, raw: pa.RecordBatch, kind: RowKind, table: TableId, group: EventGroup) -> pa.RecordBatch:
        """Return the rows of schema changes or control events."""
        details = [_operation_and_detail(event) for event in group.events]
        shapes = [self._shapes.id_of(table, getattr(event, "shape", None)) for event in group.events]
        columns = {
            **self._common(raw, kind, table, group),
            "operation": pa.array([operation for operation, _ in details], pa.string()),
            "shape": pa.array(shapes, pa.string()),
            "partial": pa.repeat(pa.scalar(value=False), len(details)),
            "detail": pa.array([detail for _, detail in details], pa.string()),
        }
        return filled_batch(columns, len(details), CHANGE_LOG)

    def _common(self, raw: pa.RecordBatch, kind: RowKind, table: TableId, group: EventGroup) -> dict[str, pa.Array]:
        """Return the columns that rows of every kind have."""
        events, count = group.events, len(group.events)
        origin = raw.select(["landed_at", "file", "place"])
        if count != raw.num_rows or any(group.numbers):
            origin = origin.take(pa.array(group.indexes, pa.int32()))
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
            "row": pa.array(group.numbers, pa.int32()),
            "position": pa.array([encode_position(event.position) or None for event in events], pa.string()),
            "committed_at": instant_array([event.committed_at for event in events]),
            "captured_at": instant_array([event.captured_at for event in events]),
            **transaction_columns([getattr(event, "transaction", None) for event in events]),
        }

    def _quarantined(self, raw: pa.RecordBatch, refused: Sequence[tuple[int, Quarantined]]) -> pa.RecordBatch:
        """Return the rows of messages that cannot be decoded, given by their indexes in the batch."""
        kept = raw.take(pa.array([index for index, _ in refused], pa.int32()))
        columns = {field.name: kept.column(field.name) for field in QUARANTINE if field.name in kept.schema.names}
        columns["reason"] = pa.array([why.reason for _, why in refused], pa.string())
        columns["detail"] = pa.array([why.detail for _, why in refused], pa.string())
        return filled_batch(columns, len(refused), QUARANTINE)


_UPDATE = Operation.UPDATE.value


def _operation_and_detail(event: SchemaChange | ControlEvent | ErasedEvent) -> tuple[str, str]:
    """Return the values of the columns ``operation`` and ``detail``."""
    if type(event) is ErasedEvent:
        return event.operation, AGAIN
    if type(event) is SchemaChange:
        return event.dialect, event.statement
    control = cast(ControlEvent, event)
    return control.kind, control.kind if control.counts is None else msgspec.json.encode(control.counts).decode()
