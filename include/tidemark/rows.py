"""The tables between the stages, as Arrow schemas, and the hot path that fills the change log.

``raw`` holds messages verbatim, the change log canonical events. The functions here run on Spark's workers over Arrow
batches: they import neither Spark nor Iceberg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

import msgspec
import pyarrow as pa

from tidemark.events import (
    ChangeEvent,
    ControlEvent,
    Event,
    Message,
    Quarantined,
    SchemaChange,
    Shape,
    TableId,
    Transaction,
    encode_position,
)

INSTANT = pa.timestamp("us", "UTC")

RAW = pa.schema(
    [
        ("batch", pa.int32()),
        ("interval_start", INSTANT),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("checksum", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("landed_at", INSTANT),
    ]
)
"""``raw.<source>``: one row a message, verbatim. ``batch`` counts the land commits of a source; ``file`` and ``place``
say where the message stood, ``checksum`` is the SHA-256 of that file; append only, partitioned by ``batch``."""

CHANGE_LOG = pa.schema(
    [
        ("batch", pa.int32()),
        ("kind", pa.string()),
        ("object", pa.string()),
        ("database", pa.string()),
        ("schema", pa.string()),
        ("name", pa.string()),
        ("operation", pa.string()),
        ("position", pa.string()),
        ("committed_at", INSTANT),
        ("captured_at", INSTANT),
        ("landed_at", INSTANT),
        ("transaction_id", pa.string()),
        ("transaction_number", pa.int64()),
        ("transaction_last", pa.bool_()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("shape", pa.string()),
        ("partial", pa.bool_()),
        ("absent", pa.list_(pa.string())),
        ("key", pa.list_(pa.string())),
        ("detail", pa.string()),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("row", pa.int32()),
    ]
)
"""``changelog.<source>``: one row an event. ``kind`` is a ``Kind``; ``object`` is the table as source files name it;
``position`` sorts as text; ``before`` and ``after`` are verbatim JSON objects whose columns ``shape`` tells; ``absent``
names columns of a ``partial`` image that were not captured; ``file``, ``place`` and ``row`` (number of the event in its
message, from 0) lead back to the bytes. Append only, partitioned by ``batch``, ``kind`` and ``object``."""

QUARANTINE = pa.schema(
    [
        ("batch", pa.int32()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("object", pa.string()),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("checksum", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("landed_at", INSTANT),
    ]
)
"""``quarantine.<source>``: one row a message set aside, with its bytes, the reason, and where it stood."""


class Kind(StrEnum):
    """What a row of the change log is."""

    CHANGE = "change"
    SCHEMA_CHANGE = "schema_change"
    CONTROL = "control"
    QUARANTINED = "quarantined"
    """A message that could not be decoded: ``operation`` is the reason; its bytes are in the quarantine table."""
    SHAPE = "shape"
    """A shape that the batch's events refer to: ``shape`` is its id, ``detail`` its JSON; no event."""


Decode = Callable[[Message], "list[Event] | Quarantined"]


def change_log_batches(batches: Iterable[pa.RecordBatch], decode: Decode) -> Iterator[pa.RecordBatch]:
    """Decode batches of ``RAW`` into batches of ``CHANGE_LOG``, message by message, in order.

    A shape is told once by each worker, as a row of kind ``shape`` in the batch where it first occurs.
    """
    told: set[tuple[int, str, str]] = set()
    ids: dict[int, tuple[Shape, str]] = {}
    for raw in batches:
        builder = _Builder(told, ids)
        for batch, landed_at, message in _messages(raw):
            events = decode(message)
            if isinstance(events, Quarantined):
                builder.quarantined(batch, landed_at, message, events)
                continue
            for number, event in enumerate(events):
                builder.event(batch, landed_at, message, number, event)
        yield builder.finish()


def _messages(raw: pa.RecordBatch) -> Iterator[tuple[int, int, Message]]:
    columns = {name: raw.column(name) for name in raw.schema.names}
    intervals = columns["interval_start"].cast(pa.int64()).fill_null(0).to_pylist()
    landed = columns["landed_at"].cast(pa.int64()).to_pylist()
    names = ("batch", "file", "place", "topic", "partition", "offset", "timestamp", "key", "value")
    values = [columns[name].to_pylist() for name in names]
    for interval, at, (batch, file, place, topic, partition, offset, timestamp, key, value) in zip(
        intervals, landed, zip(*values, strict=True), strict=True
    ):
        yield (
            batch,
            at,
            Message(
                value=value,
                file=file,
                place=place,
                interval=interval,
                key=key,
                topic=topic,
                partition=partition,
                offset=offset,
                timestamp=timestamp,
            ),
        )


_NO_TABLE = TableId(None, None, "")
_NO_TRANSACTION = Transaction()


class _Builder:
    """Collects rows and turns them into one Arrow batch, column by column."""

    def __init__(self, told: set[tuple[int, str, str]], ids: dict[int, tuple[Shape, str]]) -> None:
        self._rows: list[tuple[object, ...]] = []
        self._told = told
        self._ids = ids
        self._objects: dict[TableId, str] = {}

    def event(self, batch: int, landed_at: int, message: Message, number: int, event: Event) -> None:
        if type(event) is ChangeEvent:
            self._change(batch, landed_at, message, number, event)
        elif type(event) is SchemaChange:
            self._schema_change(batch, landed_at, message, number, event)
        elif type(event) is ControlEvent:
            origin = (event.kind, message.file, message.place, number)
            times = (event.committed_at, event.captured_at, landed_at)
            self._add(batch, Kind.CONTROL, _NO_TABLE, event.kind, event.position, times, event.transaction, origin)

    def quarantined(self, batch: int, landed_at: int, message: Message, found: Quarantined) -> None:
        origin = (found.detail, message.file, message.place, 0)
        self._add(batch, Kind.QUARANTINED, _NO_TABLE, found.reason, (), (None, None, landed_at), None, origin)

    def _change(self, batch: int, landed_at: int, message: Message, number: int, event: ChangeEvent) -> None:
        transaction = event.transaction or _NO_TRANSACTION
        table = event.table
        name = self._object(table)
        self._rows.append(
            (
                batch,
                "change",
                name,
                table.database,
                table.schema,
                table.name,
                event.operation,
                encode_position(event.position),
                event.committed_at,
                event.captured_at,
                landed_at,
                transaction.id,
                transaction.number,
                transaction.last,
                event.before,
                event.after,
                None if event.shape is None else self._shape(batch, table, name, event.shape, landed_at),
                event.partial,
                event.absent or None,
                event.key,
                None,
                message.file,
                message.place,
                number,
            )
        )

    def _schema_change(self, batch: int, landed_at: int, message: Message, number: int, event: SchemaChange) -> None:
        table = event.table or _NO_TABLE
        origin = (event.statement, message.file, message.place, number)
        times = (event.committed_at, event.captured_at, landed_at)
        shape = None
        if event.shape is not None:
            shape = self._shape(batch, table, self._object(table), event.shape, landed_at)
        self._add(batch, Kind.SCHEMA_CHANGE, table, event.dialect, event.position, times, None, origin, shape)

    def _add(
        self,
        batch: int,
        kind: Kind,
        table: TableId,
        operation: str | None,
        position: tuple[int | str, ...],
        times: tuple[int | None, int | None, int],
        transaction: Transaction | None,
        origin: tuple[str, str, int, int],
        shape: str | None = None,
    ) -> None:
        detail, file, place, number = origin
        transaction = transaction or _NO_TRANSACTION
        names = (self._object(table) or None, table.database, table.schema, table.name or None)
        moved = (transaction.id, transaction.number, transaction.last)
        images = (None, None, shape, False, None, None, detail, file, place, number)
        position_text = encode_position(position) or None
        self._rows.append((batch, kind.value, *names, operation, position_text, *times, *moved, *images))

    def _object(self, table: TableId) -> str:
        name = self._objects.get(table)
        if name is None:
            name = self._objects[table] = str(table)
        return name

    def _shape(self, batch: int, table: TableId, name: str, shape: Shape, landed_at: int) -> str:
        known = self._ids.get(id(shape))
        if known is None or known[0] is not shape:  # an id may be used again after its object is gone
            known = self._ids[id(shape)] = (shape, shape.id)
        if (batch, name, known[1]) not in self._told:
            self._told.add((batch, name, known[1]))
            text = msgspec.json.encode(shape.columns).decode()
            self._add(
                batch, Kind.SHAPE, table, None, (), (None, None, landed_at), None, (text, "", 0, 0), shape=known[1]
            )
        return known[1]

    def finish(self) -> pa.RecordBatch:
        columns = list(zip(*self._rows, strict=True)) if self._rows else [()] * len(CHANGE_LOG)
        arrays = [_array(values, field) for values, field in zip(columns, CHANGE_LOG, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=CHANGE_LOG)


def _array(values: Iterable[object], field: pa.Field) -> pa.Array:
    if field.name in {"before", "after"}:
        # Images are bytes that the decoder has found to be UTF-8: no copy by way of Python text.
        return pa.array(values, pa.binary()).cast(field.type)
    if field.type == INSTANT:
        return pa.array(values, pa.int64()).cast(field.type)
    return pa.array(values, field.type)
