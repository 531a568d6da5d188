"""Debezium JSON: the envelope bare or as ``{schema, payload}``, flattened rows, and Lindorm's dialect of it.

https://debezium.io/documentation/reference/stable/connectors/ ("Data change events" of each connector):

    {"schema": {}, "payload": {"op": "u", "before": {"id": 1004, "first_name": "Anne"},
     "after": {"id": 1004, "first_name": "Anne Marie"}, "ts_ms": 1465581029523,
     "source": {"connector": "mysql", "ts_ms": 1465581029100, "snapshot": false, "db": "inventory",
     "table": "customers", "file": "mysql-bin.000003", "pos": 484, "row": 0}}}

If the message has a schema, it gives the column types (``_connect``). A bare message has names only. The key stands in
the record key, never in the value (exception: ``_debezium.mongodb``). A column that holds the unavailable-value
placeholder is unchanged: PostgreSQL and Oracle do not log large values that an UPDATE did not touch. For positions see
``_debezium.source``.

Lindorm ("Debezium Format V2.0", ``dialect: lindorm``): images have existing cells only, so a column that an image of a
``u`` lacks is null. Tables of the HBase kind have the key column ``ROW``, and all their values are Base64 of raw bytes.
Their ``c`` has only the cells that were written, so it is a partial UPDATE.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidemark.errors import MalformedMessageError, UnknownOperationError
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, TableId
from tidemark.formats import Traits, _connect
from tidemark.formats._connect import Layouts, Struct
from tidemark.formats._debezium import (
    by_time,
    cells,
    commits,
    control,
    deleted_rows,
    flattened,
    flattened_changes,
    hbase,
    mongodb,
    old_images,
    tombstones,
)
from tidemark.formats._debezium import source as debezium_source
from tidemark.formats._debezium.envelope import Envelope, Payload, Row, check_rowless, has_object
from tidemark.formats._debezium.log_rows import correct
from tidemark.formats._debezium.options import Options
from tidemark.formats._debezium.placeholders import is_selected, unavailable
from tidemark.formats._debezium.source import Source, ranks_by_commit
from tidemark.formats._debezium.unlogged import has_as_text
from tidemark.formats._json import NULL, RowLayout, image_of, members, read, table_of_option, untyped, unwrap
from tidemark.positions import Position, changed

TOOLS = ("Debezium", "Flink CDC", "Lindorm (dialect: lindorm)")

UNTOLD = (
    "the key, unless the dump has record keys of Kafka",
    "types, unless messages have a schema",
    "both of Lindorm SQL tables",
)

APART = flattened_changes.APART

TRAITS = Traits(
    has_deliveries=True, places_statements=True, marks_loads=True, apart=APART, ranks_by_commit=ranks_by_commit
)

OPERATIONS = {
    "c": Operation.INSERT,
    "u": Operation.UPDATE,
    "d": Operation.DELETE,
    "r": Operation.SNAPSHOT,
    "t": Operation.TRUNCATE,
}
"""Row changes. One more operation, ``m``, is a logical message."""

_SNAPSHOT, _UPDATE, _DELETE, _TRUNCATE = Operation.SNAPSHOT, Operation.UPDATE, Operation.DELETE, Operation.TRUNCATE
"""Every message is compared with them. Looking them up in their enumeration would cost more than the comparison."""

_envelope = msgspec.json.Decoder(Envelope)

_payload = msgspec.json.Decoder(Payload)

_NO_SOURCE = Source()

_recent: dict[TableId, tuple[Options, RowLayout]] = {}
"""Layout of the last bare image of each table: a guess that ``RowLayout.fits`` checks, and that only saves time."""


def decode(message: Message, options: Options) -> list[Event]:
    """Return the one event of ``message``.

    Raises:
        DecodeError: the message is set aside.
    """
    value = message.value
    if value is None or value == NULL:
        return [_tombstone(message, options)]
    try:
        envelope = read(_envelope, value)
    except MalformedMessageError:
        return [_looked_at_closely(value, message, options)]
    payload = envelope if envelope.payload is msgspec.UNSET else envelope.payload
    if payload is None or payload.op is None or payload.source is None:
        return [_looked_at_closely(value, message, options)]
    if payload.op == "m":  # as ``_of_envelope``, without a call for each message
        return [_logical_message(message, payload)]
    return [_change(message, payload, envelope.schema, options)]


def _looked_at_closely(value: bytes, message: Message, options: Options) -> Event:
    """Return the event of a message that is no plain envelope.

    Columns of a flattened row may be called as members of an envelope are. So the marks of such a row count first.
    """
    value, schema = unwrap(value)
    if value == NULL:
        return _tombstone(message, options)
    found = members(value)
    fields = flattened.added(options.add_fields, options.add_fields_prefix)
    if not options.flattened and not fields.marks(found) and (inner := _beside_others(found, fields)) is not None:
        value, found, schema = bytes(found["payload"]), inner, bytes(found["schema"])
    if fields.marks(found) or (options.flattened and not control.is_no_row(found.keys())):
        return flattened_changes.change(message, value, found, schema, options)
    if not {"op", "source"} <= found.keys() and (event := control.decode(value, found, message)) is not None:
        tombstones.refuse_statement(event, options)
        return event
    known = {name: raw for name, raw in found.items() if name in Payload.__struct_fields__}
    if not found.keys() & {"op", "before", "after"} or (len(known) < len(found) and not has_object(found)):
        raise MalformedMessageError(
            "neither an envelope with `op` nor a flattened row with `__op` or `__deleted`: has members "
            + ", ".join(list(found)[:10])
        )
    return _of_envelope(message, read(_payload, msgspec.json.encode(known)), msgspec.Raw(schema or b""), options)


def _beside_others(found: Mapping[str, msgspec.Raw], fields: flattened.AddedFields) -> dict[str, msgspec.Raw] | None:
    """Return the members of the payload of ``{schema, payload, ...}``; None for a row with columns of these names.

    What a tool puts beside them, such as headers, is no part of the change.
    """
    schema, payload = (bytes(found.get(name, b""))[:1] for name in ("schema", "payload"))
    if schema not in {b"{", b"n"} or payload != b"{":
        return None
    inner = members(bytes(found["payload"]))
    return inner if {"op", "source"} <= inner.keys() or fields.marks(inner) else None


def _of_envelope(message: Message, payload: Payload, schema: msgspec.Raw, options: Options) -> Event:
    return _logical_message(message, payload) if payload.op == "m" else _change(message, payload, schema, options)


def _logical_message(message: Message, payload: Payload) -> ControlEvent:
    check_rowless(payload)
    return _control("message", message, payload)


def _change(message: Message, payload: Payload, schema: msgspec.Raw, options: Options) -> ChangeEvent:
    """Return the row change of an envelope."""
    source = payload.source or _NO_SOURCE
    operation = OPERATIONS.get(payload.op or "")
    if operation is None or operation is _SNAPSHOT:
        operation = _rarer_operation(payload.op, operation, source)
    transaction = debezium_source.transaction_of(payload.transaction, source, operation)
    table = debezium_source.table(source) or table_of_option(options.table)
    if operation is _TRUNCATE:
        check_rowless(payload)
        row = Row(operation)
    else:
        typed = _connect.envelope_layouts(bytes(schema)) if schema else None
        row = _row(operation, payload, typed, table, message.key, options)
        correct(row, message.key, source, schema, options.unavailable_value)
    return ChangeEvent(
        table=table,
        operation=row.operation,
        position=debezium_source.position(source, operation, transaction, message, by_time.FIELDS[options.dialect]),
        committed_at=debezium_source.micros(source.ts_us, source.ts_ms),
        captured_at=debezium_source.micros(payload.ts_us, payload.ts_ms),
        transaction=transaction,
        before=row.before,
        after=row.after,
        shape=row.layout.shape if row.layout else None,
        partial=row.partial,
        absent=row.absent,
        upsert=row.upsert or source.connector == "cassandra",
        key=row.key,
        load=_load(source, operation, options),
        after_commit=None if source.sequence is None else commits.last_commit(source, operation),
    )


def _rarer_operation(op: str | None, operation: Operation | None, source: Source) -> Operation:
    """Return the operation of Cassandra's connector, whose ``r`` is no snapshot, or the one of all connectors."""
    if source.connector == "cassandra":
        if op == "r":
            raise cells.range_tombstone()
        operation = cells.CASSANDRA.get(op or "")
    if operation is None:
        raise UnknownOperationError(f"`op` is {op!r}; Debezium has {', '.join(OPERATIONS)}, m")
    return operation


def _load(source: Source, operation: Operation, options: Options) -> Position | None:
    return debezium_source.load(source, operation) if options.loads == "complete" else None


def _row(
    operation: Operation,
    payload: Payload,
    typed: Layouts | None,
    table: TableId,
    record_key: bytes | None,
    options: Options,
) -> Row:
    key = _connect.key_struct(record_key) if record_key else None
    before = image_of(payload.before)
    if (payload.source or _NO_SOURCE).collection:
        return mongodb.row_of(operation, before, image_of(payload.after), key.image if key else None)
    after = image_of(payload.after)
    image = after or before
    # an image without an object has no cells, and most images end here
    if image is not None and image.find(b"{", 1) > 0 and cells.may_have(image):
        row = cells.row_of(operation, before, after, typed.after if typed else None, cells.key_of(key))
        if row is not None:
            return row
    if operation is _DELETE:
        return _deleted(before, typed.before if typed else None, table, key, options)
    if after is None:
        raise MalformedMessageError(f"`after` is missing, null or empty, and `op` is {payload.op}")
    layout = _layout(after, typed.after if typed else None, table, options)
    if operation is not _UPDATE:
        before = None
    elif before is not None:
        before, layout = old_images.of_update(before, layout, typed.before if typed else None, options)
    if hbase.has(layout, options):
        # a put has the cells that it wrote, and comes as `c` whether or not the row existed
        put = operation is Operation.INSERT
        operation = Operation.UPDATE if put else operation
        return Row(operation, before, after, layout, partial=put, key=("ROW",), upsert=put)
    absent = () if is_selected(operation, payload.source) else unavailable(after, layout, options.unavailable_value)
    return Row(operation, before, after, layout, bool(absent), absent, key.names if key else None)


def _deleted(
    before: bytes | None, typed: RowLayout | None, table: TableId, key: Struct | None, options: Options
) -> Row:
    """Return the row of a DELETE: ``before``, and what only the struct of the record key has."""
    if before is None:
        before, layout = deleted_rows.key_alone(key, typed, options)
    else:
        if key is not None and not has_as_text(before, key.image):
            key = cells.key_of(key) or key
            typed = typed.widened(key.names, _connect.layout_of_key(key)) if typed else None
            before = deleted_rows.completed(before, key.image, key.names)
        layout = _layout(before, typed, table, options)
    names = ("ROW",) if hbase.has(layout, options) else key.names if key else None
    return Row(Operation.DELETE, before, None, layout, key=names)


def _layout(image: bytes, typed: RowLayout | None, table: TableId, options: Options) -> RowLayout:
    """Return the layout of an image, with the types of the schema, or with names only."""
    if typed is not None and not hbase.has(typed, options):
        return typed if typed.fits(image) else typed.widened(members(image))
    recent = _recent.get(table)
    if recent is not None and recent[0] is options and recent[1].fits(image):
        return recent[1]
    layout = untyped(tuple(members(image)))
    if hbase.has(layout, options):
        layout = hbase.of_columns(layout.names)
    if len(_recent) >= 1024:
        _recent.clear()
    _recent[table] = (options, layout)
    return layout


def _tombstone(message: Message, options: Options) -> Event:
    """Return the event of a record without value: the tombstone after a delete, or the delete of a flattened row."""
    key = tombstones.deleted_key(message, options)
    if key is None:
        return _control("tombstone", message)
    row = _deleted(None, None, table_of_option(options.table), key, options)
    return ChangeEvent(
        table=table_of_option(options.table),
        operation=row.operation,
        position=changed(0, *message.order),
        before=row.before,
        shape=row.layout.shape if row.layout else None,
        key=row.key,
    )


def _control(kind: str, message: Message, payload: Payload | None = None) -> ControlEvent:
    payload = payload or Payload()
    source = payload.source or _NO_SOURCE
    return ControlEvent(
        kind=kind,
        position=changed(*message.order),
        committed_at=debezium_source.micros(source.ts_us, source.ts_ms),
        captured_at=debezium_source.micros(payload.ts_us, payload.ts_ms),
        transaction=debezium_source.transaction(payload.transaction),
    )
