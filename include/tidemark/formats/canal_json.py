"""Canal JSON (``FlatMessage``), as Canal, Alibaba DTS, TiCDC, Flink CDC and Huawei DRS write it.

https://github.com/alibaba/canal (``MQMessageUtils.messageConverter``) and "Data formats of a Kafka cluster" of DTS.
One message holds any number of rows of one table:

    {"data": [{"id": "500000287", "shipping_type": null}], "database": "dbname", "es": 1600161894000, "id": 58,
     "isDdl": false, "mysqlType": {"id": "bigint(20)", "shipping_type": "varchar(50)"}, "old": null, "pkNames": ["id"],
     "sql": "", "sqlType": {"id": -5, "shipping_type": 12}, "table": "tablename", "ts": 1600161894771, "type": "DELETE"}

``data[i]`` is the row, of an UPDATE the new one; ``old[i]`` holds what an UPDATE changed, before it. A column absent
from ``before`` of an UPDATE is unchanged: read ``before.k``, else ``after.k``. Old columns may be there without
having changed (Canal gathers the changed columns of all rows of a message). DTS before 2022-03-20 and Huawei put a
deleted row in ``old``. Canal has no sequence of its own (``id`` repeats, ``es`` counts seconds), so the place in the
dump is the order.
"""

from __future__ import annotations

import functools
from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict

from tidemark.errors import MalformedMessageError, UnknownOperationError
from tidemark.events import (
    ChangeEvent,
    ControlEvent,
    Event,
    Message,
    Operation,
    Position,
    SchemaChange,
    TableId,
    Transaction,
    changed,
    loaded,
)
from tidemark.formats import _mysql
from tidemark.formats._json import ABSENT, NULL, RowLayout, members, read, table_of_option, untyped

OPERATIONS = {
    "INSERT": Operation.INSERT,
    "UPDATE": Operation.UPDATE,
    "DELETE": Operation.DELETE,
    "INIT": Operation.SNAPSHOT,
    "ROW": Operation.INSERT,
}
"""``INIT``: a row of DTS's initial load; ``ROW``: a row dumped by Canal's adapter."""

SCHEMA_CHANGES = frozenset({
    "CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "DDL", "INIT_DDL",
})  # fmt: skip
"""Also any type with ``isDdl``. ``ERASE`` is DROP, ``CINDEX``, ``DINDEX`` create and drop an index; DTS writes
``DDL``."""

CONTROLS = {
    "QUERY": "query",
    "GTID": "gtid",
    "MHEARTBEAT": "heartbeat",
    "HEARTBEAT": "heartbeat",
    "TIDB_WATERMARK": "watermark",
    "XACOMMIT": "xa_commit",
    "XAROLLBACK": "xa_rollback",
    "BEGIN": "transaction_begin",
    "TRANSACTIONBEGIN": "transaction_begin",
    "COMMIT": "transaction_end",
    "TRANSACTIONEND": "transaction_end",
}
"""``QUERY`` without ``isDdl`` is MariaDB's annotation of a row change with its SQL."""


class Options(BaseModel):
    """What Canal messages cannot tell."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str | None = None
    """Table (``database.table``) of messages that name none."""
    row_image: Literal["full", "partial"] = "full"
    """``partial`` for a source with ``binlog_row_image`` NOBLOB or MINIMAL: what an UPDATE lacks is unchanged."""


class FlatMessage(msgspec.Struct, gc=False):
    """The wire envelope. ``sqlType`` is left out: producers disagree about its numbers, ``mysqlType`` decides."""

    type: str | None = None
    database: str | None = None
    table: str | None = None
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    mysqlType: msgspec.Raw = ABSENT  # noqa: N815 - the wire's spelling, as below
    pkNames: tuple[str, ...] | None = None  # noqa: N815
    isDdl: bool | None = None  # noqa: N815
    sql: str | None = None
    es: int | None = None
    """At the source, epoch ms; whole seconds from MySQL's log."""
    ts: int | None = None
    """At the capture tool, epoch ms."""
    gtid: str | None = None
    isHeartbeat: bool | None = None  # noqa: N815 - Huawei DataArts


_flat_message = msgspec.json.Decoder(FlatMessage)

_types = msgspec.json.Decoder(dict[str, str])


def decode(message: Message, options: Options) -> list[Event]:
    """Return one change event for each row of ``message``, or its schema change or control event.

    ``before`` of an UPDATE is ``old[i]``: a column that it lacks is the same as in ``after``.

    Raises:
        DecodeError: the message is set aside whole.
    """
    if message.value is None or message.value == NULL:
        return [ControlEvent(kind="tombstone", position=changed(*message.order))]
    flat = read(_flat_message, message.value)
    operation = OPERATIONS.get(flat.type or "")
    if operation is None or flat.isDdl or flat.isHeartbeat:
        return _no_rows(flat, message.order, options)
    return _rows(flat, operation, message.order, options)


def _rows(flat: FlatMessage, operation: Operation, order: Position, options: Options) -> list[Event]:
    old = flat.old or ()
    data = flat.data or (old if operation is Operation.DELETE else ())
    if not data:
        raise MalformedMessageError(f"`data` holds no row, and the type is {flat.type}")
    if operation is Operation.UPDATE and old and len(old) != len(data):
        raise MalformedMessageError(f"`data` holds {len(data)} rows and `old` {len(old)}: which belong together?")
    table, committed_at, captured_at = _table(flat, options), _micros(flat.es), _micros(flat.ts)
    transaction = Transaction(id=flat.gtid) if flat.gtid else None
    told = _layout(bytes(flat.mysqlType)) if flat.mysqlType else None
    begin = loaded if operation is Operation.SNAPSHOT else changed
    events: list[Event] = []
    for number, raw in enumerate(data):
        image = bytes(raw)
        layout, absent = _examine(image, told)
        before: bytes | None = None
        after: bytes | None = image
        partial = False
        if operation is Operation.DELETE:
            before, after, absent = image, None, ()
        elif operation is Operation.UPDATE:
            before, layout = _before(old[number], layout) if old else (None, layout)
            # a whole row has an old value to show: without one, the source logs MINIMAL row images
            partial = bool(absent) or before is None or options.row_image == "partial"
        else:
            absent = ()
        event = ChangeEvent(
            table=table,
            operation=operation,
            position=begin(*order, number),
            committed_at=committed_at,
            captured_at=captured_at,
            transaction=transaction,
            before=before,
            after=after,
            shape=layout.shape,
            partial=partial,
            absent=absent,
            key=_key(flat.pkNames, layout),
        )
        events.append(event)
    return events


def _examine(image: bytes, told: RowLayout | None) -> tuple[RowLayout, tuple[str, ...]]:
    """Return the layout of ``image`` and the columns of ``mysqlType`` that it lacks."""
    if told is not None and told.fits(image):
        return told, ()
    found = members(image)
    if told is None:
        return untyped(tuple(found)), ()
    return told.widened(found), told.missing(found)


def _before(old: msgspec.Raw, layout: RowLayout) -> tuple[bytes | None, RowLayout]:
    """Return the old values of an UPDATE, or None where ``old`` tells nothing of the row."""
    image = bytes(old)
    if image == NULL:
        return None, layout
    found = members(image)
    return image if found else None, layout.widened(found)


@functools.lru_cache(maxsize=1024)
def _layout(types: bytes) -> RowLayout | None:
    """Return the columns that ``mysqlType`` tells, None for null; the same object for the same bytes.

    Raises:
        MalformedMessageError: not an object of texts.
        UnknownTypeError: a type that MySQL does not have.
    """
    if types == NULL:
        return None
    members(types)
    return RowLayout(_mysql.column(name, text) for name, text in read(_types, types).items())


@functools.lru_cache(maxsize=1024)
def _key(names: tuple[str, ...] | None, layout: RowLayout) -> tuple[str, ...] | None:
    """Return ``pkNames`` in the spelling of the columns, from which its case may differ."""
    if names is None:
        return None
    folded = {name.casefold(): name for name in layout.names}
    return tuple(name if name in layout.names else folded.get(name.casefold(), name) for name in names)


def _no_rows(flat: FlatMessage, order: Position, options: Options) -> list[Event]:
    """Return the events of a message that is no row change."""
    type_ = (flat.type or "").upper()
    if flat.isDdl or type_ in SCHEMA_CHANGES:
        return _schema_change(flat, type_, order, options)
    kind = "heartbeat" if flat.isHeartbeat else CONTROLS.get(type_)
    if kind is None:
        allowed = ", ".join([*OPERATIONS, *sorted(SCHEMA_CHANGES), *CONTROLS])
        raise UnknownOperationError(f"`type` is {flat.type!r}; Canal JSON knows {allowed}")
    return [
        ControlEvent(
            kind=kind,
            position=changed(*order, 0),
            committed_at=_micros(flat.es),
            captured_at=_micros(flat.ts),
            transaction=Transaction(id=flat.gtid) if flat.gtid else None,
        )
    ]


def _schema_change(flat: FlatMessage, type_: str, order: Position, options: Options) -> list[Event]:
    """Return the DDL as told, then the truncation that it may be.

    ``database`` and ``table`` may be empty (CREATE DATABASE), and name the first table only where a statement has
    several.
    """
    table = _table(flat, options) if flat.table or options.table else None
    committed_at, captured_at = _micros(flat.es), _micros(flat.ts)
    statement = flat.sql or ""
    change = SchemaChange(
        table=table,
        position=changed(*order, 0),
        statement=statement,
        committed_at=committed_at,
        captured_at=captured_at,
    )
    # DTS writes DDL for every type
    if table is None or not (type_ == "TRUNCATE" or _mysql.truncates(statement)):
        return [change]
    truncation = ChangeEvent(
        table=table,
        operation=Operation.TRUNCATE,
        position=changed(*order, 1),
        committed_at=committed_at,
        captured_at=captured_at,
    )
    return [change, truncation]


def _table(flat: FlatMessage, options: Options) -> TableId:
    if not flat.table:
        return table_of_option(options.table)
    return TableId(database=flat.database or None, schema=None, name=flat.table)


def _micros(millis: int | None) -> int | None:
    return None if millis is None else millis * 1000
