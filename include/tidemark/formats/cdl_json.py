"""CDL JSON and Debezium JSON as Huawei MRS CDL writes them to Kafka: messages of version 1.0 and of version 2.0.

"CDL JSON and Open-Source Debezium JSON" of MapReduce Service. Version 1.0 (its Connect schema left out):

    {"schema": {}, "payload": {"DATA_STORE": "POSTGRESQL", "SEG_OWNER": "public", "TABLE_NAME": "ct_pg2hudi",
     "TIMESTAMP": 1707047996013, "OPERATION": "INSERT", "LOB_COLUMNS": null,
     "transaction": {"properties": [{"name": "lsn", "value": 163955221008}, {"name": "txId", "value": 57227595}]},
     "unique": {"id": 34}, "data": {"count1": 13, "id": 34, "time1": null, "decimalNum": null}, "before": null,
     "message_version": "1.0", "message_type": "0", "HEARTBEAT_IDENTIFIER": "279fb050-0143-45c1-b184-50bc48c2461c"}}

Version 2.0 is Debezium's envelope (``after``, ``source``, ``op``). Both have ``before``, ``unique`` (the key),
``LOB_COLUMNS``, ``message_version`` and ``message_type``, and one dump may have both, for the same tables.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from tidemark.errors import MalformedMessageError, MissingKeyError, UnknownOperationError
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, TableId, Transaction
from tidemark.formats import Traits, _cdl
from tidemark.formats._debezium import source as debezium_source
from tidemark.formats._debezium.deleted_rows import with_key
from tidemark.formats._debezium.log_places import Number
from tidemark.formats._debezium.old_images import captured
from tidemark.formats._debezium.placeholders import unavailable
from tidemark.formats._debezium.source import Source
from tidemark.formats._debezium.unlogged import moved_without_unlogged, without_unlogged
from tidemark.formats._json import ABSENT, NULL, RowLayout, image_of, members, read, table_of_option, untyped, unwrap
from tidemark.positions import Position, changed

TOOLS = ("Huawei MRS CDL",)

UNTOLD = ("the database, in version 1.0", "precision and scale of decimals")

TRAITS = Traits(ranks_copies=True, apart=_cdl.APART)

OPERATIONS = {"INSERT": Operation.INSERT, "UPDATE": Operation.UPDATE, "DELETE": Operation.DELETE}
"""Operations of version 1.0."""

DEBEZIUM_OPERATIONS = {"c": Operation.INSERT, "u": Operation.UPDATE, "d": Operation.DELETE}
"""Operations of version 2.0. Rows of an initial load are inserts, which version 2.0 marks; there is no ``r``."""

VERSIONS = ("1.0", "2.0")


class Options(BaseModel):
    """Facts that CDL messages do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    table: str | None = None
    """Table (``schema.table``) of messages that name no table."""
    with_database: bool = False
    """Whether the database is part of a table's name. Only version 2.0 names it."""
    null_lob: Literal["null", "unchanged"] = "null"
    """The meaning of null in an UPDATE, in a column that LOB_COLUMNS lists."""
    unavailable_value: str = Field(default="__debezium_unavailable_value", min_length=1)
    """The connector's ``unavailable.value.placeholder``."""


class Property(msgspec.Struct, gc=False):
    """One of ``transaction.properties``: ``lsn``, ``txId``."""

    name: str
    value: Number = None


class Properties(msgspec.Struct, gc=False):
    """Version 1.0: ``transaction``."""

    properties: list[Property] | None = None


class CdlSource(Source, gc=False):
    """Version 2.0: ``source``."""

    txId: Number = None  # noqa: N815 - the wire's spelling


class Payload(msgspec.Struct, gc=False):
    """A change event of either version. ``message_type`` is left out."""

    message_version: str | None = None
    DATA_STORE: str | None = None
    """Version 1.0: the kind of the database."""
    OPERATION: str | None = None
    SEG_OWNER: str | None = None
    """Schema of the table."""
    TABLE_NAME: str | None = None
    TIMESTAMP: Number = None
    """Time of the change at the source, epoch ms or text."""
    transaction: Properties | None = None
    data: msgspec.Raw = ABSENT
    op: str | None = None
    source: CdlSource | None = None
    ts_ms: Number = None
    """Time at the connector, epoch ms."""
    after: msgspec.Raw = ABSENT
    before: msgspec.Raw = ABSENT
    unique: msgspec.Raw = ABSENT
    """Values of the key columns; null for a table without a key."""
    LOB_COLUMNS: str | list[str] | None = None
    """Names of the columns of large objects."""
    HEARTBEAT_IDENTIFIER: str | None = None


class Envelope(Payload, gc=False):
    """A message: ``{schema, payload}``, or the payload itself."""

    schema: msgspec.Raw = ABSENT
    payload: Payload | msgspec.UnsetType | None = msgspec.UNSET


_envelope = msgspec.json.Decoder(Envelope)

_NO_SOURCE = CdlSource()

_OF_HEARTBEATS = frozenset({*Payload.__struct_fields__, "message_type", "schema"})


def decode(message: Message, options: Options) -> list[Event]:
    """Return the one event of ``message``.

    Raises:
        DecodeError: the message is set aside.
    """
    if message.value is None or message.value == NULL:
        return [_control("tombstone", message)]
    envelope = read(_envelope, message.value)
    if envelope.payload is None and unwrap(message.value)[0] == NULL:
        return [_control("tombstone", message)]
    payload = envelope.payload or envelope
    if payload.OPERATION is None and payload.op is None and _is_heartbeat(payload, message.value):
        return [_control("heartbeat", message, payload)]
    found = _found(payload, message, options)
    return [_change(found, payload, envelope.schema, options)]


class EventFacts(NamedTuple):
    """The facts beside the images, which each version writes in its own way."""

    operation: Operation
    table: TableId
    position: Position
    after: bytes | None
    committed_at: int | None
    captured_at: int | None
    transaction: str | None
    of_database: str | None = None


def _found(payload: Payload, message: Message, options: Options) -> EventFacts:
    version = payload.message_version or VERSIONS[payload.OPERATION is None]
    if version not in VERSIONS:
        raise MalformedMessageError(f"`message_version` is {version[:20]!r}; known are {' and '.join(VERSIONS)}")
    return _cdl_found(payload, message, options) if version == "1.0" else _debezium_found(payload, message, options)


def _cdl_found(payload: Payload, message: Message, options: Options) -> EventFacts:
    """Return the facts of a message of version 1.0."""
    operation = OPERATIONS.get(payload.OPERATION or "")
    if operation is None:
        raise UnknownOperationError(f"`OPERATION` is {payload.OPERATION!r}; CDL JSON has {', '.join(OPERATIONS)}")
    block = payload.transaction
    properties = {each.name.lower(): each.value for each in block.properties or ()} if block else {}
    committed_at = _cdl.micros(payload.TIMESTAMP)
    tx_id = properties.get("txid")
    lsn = _cdl.lsn(properties.get("lsn"))
    return EventFacts(
        operation=operation,
        table=_table(None, payload.SEG_OWNER, payload.TABLE_NAME, options),
        position=_cdl.position(lsn, message, operation, needs_lsn=_cdl.lsn_of(_connector(payload))),
        after=image_of(payload.data),
        committed_at=committed_at,
        captured_at=None,
        transaction=None if tx_id is None else str(tx_id),
    )


def _debezium_found(payload: Payload, message: Message, options: Options) -> EventFacts:
    """Return the facts of a message of version 2.0."""
    operation = DEBEZIUM_OPERATIONS.get(payload.op or "")
    if operation is None:
        raise UnknownOperationError(f"`op` is {payload.op!r}; CDL has {', '.join(DEBEZIUM_OPERATIONS)}")
    source = payload.source or _NO_SOURCE
    committed_at = debezium_source.micros(source.ts_us, source.ts_ms)
    is_loaded = operation is Operation.INSERT and not debezium_source.is_streamed(source)
    lsn = None if is_loaded else _cdl.lsn(source.lsn)
    return EventFacts(
        operation=Operation.SNAPSHOT if is_loaded else operation,
        table=_table(source.db, source.schema, source.table, options),
        position=_cdl.position(lsn, message, operation, needs_lsn=source.connector or "version 2.0"),
        after=image_of(payload.after),
        committed_at=committed_at,
        captured_at=debezium_source.micros(None, payload.ts_ms),
        transaction=None if source.txId is None else str(source.txId),
        of_database=(source.db or None) if source.table and not options.with_database else None,
    )


def _change(found: EventFacts, payload: Payload, schema: msgspec.Raw, options: Options) -> ChangeEvent:
    layouts = _cdl.layouts(bytes(schema)) if schema else None
    operation, before, after = found.operation, image_of(payload.before), found.after
    unique = image_of(payload.unique)
    absent: tuple[str, ...] = ()
    lobs: tuple[str, ...] = ()
    if operation is Operation.DELETE:
        _cdl.check_key(unique, before or after or unique)
        before, layout = _deleted(payload, before or after, unique, schema, layouts)
        after = None
    elif after is None:
        raise MalformedMessageError(f"an {operation} without the row after it")
    else:
        _cdl.check_key(unique, after, before if operation is Operation.UPDATE else None)
        layout = _layout(after, layouts.after if layouts else None)
        absent = unavailable(after, layout, options.unavailable_value)
        if operation is not Operation.UPDATE:
            before = None
        elif before is not None:
            before = moved_without_unlogged(before, unique, _connector(payload), schema)
            layout = _layout(before, layout, layouts.before if layouts else None)
        if operation is Operation.UPDATE and payload.LOB_COLUMNS:
            unchanged = _cdl.NULL_TOO if options.null_lob == "unchanged" else _cdl.MISSING
            lobs = _cdl.not_captured(payload.LOB_COLUMNS, members(after), unchanged)
            absent = _cdl.merged(absent, lobs, layout)
    return ChangeEvent(
        table=found.table,
        operation=operation,
        position=found.position,
        committed_at=found.committed_at,
        captured_at=found.captured_at,
        transaction=Transaction(id=found.transaction) if found.transaction else None,
        before=before and captured(before, layout, options.unavailable_value),
        after=after,
        shape=layout.shape,
        partial=bool(absent or lobs),
        absent=absent,
        key=_cdl.key(bytes(payload.unique), layouts),
        of_database=found.of_database,
    )


def _deleted(
    payload: Payload, row: bytes | None, unique: bytes | None, schema: msgspec.Raw, layouts: _cdl.Layouts | None
) -> tuple[bytes, RowLayout]:
    """Return the row of a DELETE and its layout: ``before`` or, if the source does not log it, the key's values."""
    if row is None:
        if unique is None:
            raise MissingKeyError("a delete with neither a row nor `unique`: which row, nobody can tell")
        return unique, _layout(unique, layouts.unique if layouts else None)
    if unique is not None:
        row = with_key(row, unique, members(unique))
    row = without_unlogged(row, unique, _connector(payload), schema)
    return row, _layout(row, layouts.before if layouts else None, layouts.unique if layouts else None)


def _connector(payload: Payload) -> str | None:
    return payload.source.connector if payload.source else (payload.DATA_STORE or "").lower()


def _layout(image: bytes, typed: RowLayout | None, others: RowLayout | None = None) -> RowLayout:
    """Return the layout of an image, with types of the schema (``others``: of what ``typed`` lacks), or names only."""
    if typed is None:
        return untyped(tuple(members(image)))
    return typed if typed.fits(image) else typed.widened(members(image), others)


def _table(database: str | None, schema: str | None, name: str | None, options: Options) -> TableId:
    if name:
        return TableId(database=(database or None) if options.with_database else None, schema=schema or None, name=name)
    table = table_of_option(options.table)
    # here the option is ``schema.table``; elsewhere it is ``database.table``
    return TableId(database=None, schema=table.database, name=table.name) if table.schema is None else table


def _is_heartbeat(payload: Payload, value: bytes) -> bool:
    """Return whether a message is a heartbeat: it has the identifier, as data messages do, and nothing of a change.

    A row, a table, a place in the log, or a member that is not known may belong to a change that lost its operation.
    """
    source = payload.source or _NO_SOURCE
    rows = (payload.data, payload.after, payload.before, payload.unique)
    facts = (payload.TABLE_NAME, payload.transaction, source.table, source.lsn, *map(image_of, rows))
    if payload.HEARTBEAT_IDENTIFIER is None or any(facts):
        return False
    others = members(unwrap(value)[0]).items()
    return all(name in _OF_HEARTBEATS or bytes(raw) == NULL for name, raw in others)


def _control(kind: str, message: Message, payload: Payload | None = None) -> ControlEvent:
    return ControlEvent(
        kind=kind,
        position=changed(*message.order),
        captured_at=_cdl.micros(payload.TIMESTAMP or payload.ts_ms) if payload else None,
    )
