"""Canal JSON (``FlatMessage``), as Canal, Alibaba DTS, TiCDC, Flink CDC and Huawei DRS write it.

https://github.com/alibaba/canal (``MQMessageUtils.messageConverter``) and "Data formats of a Kafka cluster" of DTS.
One message holds any number of rows of one table:

    {"data": [{"id": "500000287", "shipping_type": null}], "database": "dbname", "es": 1600161894000, "id": 58,
     "isDdl": false, "mysqlType": {"id": "bigint(20)", "shipping_type": "varchar(50)"}, "old": null, "pkNames": ["id"],
     "sql": "", "sqlType": {"id": -5, "shipping_type": 12}, "table": "tablename", "ts": 1600161894771, "type": "DELETE"}

``data[i]`` is the row; of an UPDATE it is the new row. ``old[i]`` holds the old values of the columns that an UPDATE
changed. A column absent from ``before`` of an UPDATE is unchanged: read ``before.k``, else ``after.k``. ``old`` may
also have columns that did not change, because Canal collects the changed columns of all rows of a message. DTS before
2022-03-20 and Huawei put a deleted row in ``old``. Canal has no sequence of its own (``id`` repeats, ``es`` counts
seconds), so the place in the dump is the order. What says that it has no whole row: ``_canal.incomplete``.
"""

from __future__ import annotations

import functools
from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict

from tidemark.errors import DecodeError, MalformedMessageError, UnknownOperationError
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, SchemaChange, TableId, Transaction
from tidemark.formats import Traits
from tidemark.formats import _truncations as truncations
from tidemark.formats._canal import byte_lists, columns, fixed_bytes, images, incomplete, labels
from tidemark.formats._json import ABSENT, NULL, RowLayout, read, table_of_option
from tidemark.formats._positions import of_offsets
from tidemark.formats._statements import row_change, row_change_of_query, schema_change, statement_only
from tidemark.positions import Position, changed, loaded

TOOLS = ("Canal", "Alibaba DTS", "TiCDC", "Flink CDC", "Huawei DRS")

UNTOLD = (
    "the order of changes, but by the place in the dump",
    "the zone of a TIMESTAMP",
)

TRAITS = Traits(orders_by_offset=True, ranks_copies=True, moves_rows=False, ranks_by_commit=of_offsets)

OPERATIONS = {
    "INSERT": Operation.INSERT,
    "UPDATE": Operation.UPDATE,
    "DELETE": Operation.DELETE,
    "INIT": Operation.SNAPSHOT,
    "ROW": Operation.INSERT,
}
"""``INIT``: a row of DTS's initial load; ``ROW``: a row dumped by Canal's adapter."""

_IN_PARTS = frozenset({Operation.INSERT, Operation.UPDATE})

SCHEMA_CHANGES = frozenset({
    "CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "DDL", "INIT_DDL",
})  # fmt: skip
"""Types of schema changes. Any other type with ``isDdl`` is one too. ``ERASE`` is DROP. ``CINDEX`` and ``DINDEX``
create and drop an index. DTS writes ``DDL``."""

_OF_INDEXES = frozenset({"CINDEX", "DINDEX"})
"""Types that need no statement. TRUNCATE needs none where the message names the table."""

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
"""``QUERY`` is SQL text that Canal's parser of DDL does not know. It may be DDL all the same, of new or MariaDB's own
clauses, and then lacks ``isDdl``. Or it annotates a row change: see ``Options.annotations``."""

_ANNOTATED = (
    ". If the log is in ROW format and only annotates its rows (MariaDB does), write the option `annotations: true`"
)


class Options(BaseModel):
    """Facts that Canal messages do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    table: str | None = None
    """Table (``database.table``) of messages that name no table."""
    row_image: Literal["full", "partial"] = "full"
    """``partial`` for ``binlog_row_image`` NOBLOB or MINIMAL: columns that an UPDATE lacks are unchanged, and columns
    that an INSERT lacks are not known."""
    bytes: byte_lists.Writing = None
    """``latin1``: a text in which each character is one byte (Canal). ``number_list``: a list of signed numbers (Huawei
    DRS). None: Latin-1, and a text that may be such a list is set aside."""
    annotations: bool = False
    """True: the log is in ROW format, and SQL text of row changes (``QUERY``) only annotates them."""


class FlatMessage(msgspec.Struct, gc=False):
    """The wire envelope. Producers disagree about the numbers of ``sqlType``: it is read of ENUM, SET and vectors."""

    type: str | None = None
    database: str | None = None
    table: str | None = None
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    mysqlType: msgspec.Raw = ABSENT  # noqa: N815 - the wire's spelling, as below
    sqlType: msgspec.Raw = ABSENT  # noqa: N815
    pkNames: tuple[str, ...] | None = None  # noqa: N815
    isDdl: bool | None = None  # noqa: N815
    sql: str | None = None
    es: int | None = None
    """Time at the source, epoch ms. MySQL's log has whole seconds."""
    ts: int | None = None
    """Time at the capture tool, epoch ms."""
    gtid: str | None = None
    isHeartbeat: bool | None = None  # noqa: N815 - Huawei DataArts
    tidb: incomplete.TidbExtension | None = msgspec.field(default=None, name="_tidb")


_flat_message = msgspec.json.Decoder(FlatMessage)


def decode(message: Message, options: Options) -> list[Event]:
    """Return one change event for each row of ``message``, or its schema change or control event.

    ``before`` of an UPDATE is ``old[i]``. A column that it lacks has the same value as in ``after``.

    Raises:
        DecodeError: the whole message is set aside.
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
        raise _rowless(flat)
    keys_only = flat.tidb is not None and flat.tidb.flag is not None
    if keys_only and not (operation is Operation.DELETE and incomplete.identifies_rows(data, flat.pkNames)):
        raise incomplete.without_values(flat.tidb, flat.type)
    if operation is Operation.UPDATE and old and len(old) != len(data):
        raise MalformedMessageError(f"`data` holds {len(data)} rows and `old` {len(old)}: which belong together?")
    table, committed_at, captured_at = _table(flat, options), _micros(flat.es), _micros(flat.ts)
    transaction = Transaction(id=flat.gtid) if flat.gtid else None
    typed = columns.layout_of(flat.mysqlType, flat.sqlType, flat.tidb) if flat.mysqlType else None
    blobs = typed.latin1 if typed is not None else ()
    numbered = labels.numbered(flat.mysqlType, flat.sqlType) if typed is not None else None

    def as_stored(image: bytes) -> bytes:
        stored = fixed_bytes.as_stored(image, blobs, flat.mysqlType, options.bytes) if blobs else image
        return labels.labelled(stored, numbered) if numbered else stored

    begin = loaded if operation is Operation.SNAPSHOT else changed
    events: list[Event] = []
    for number, raw in enumerate(data):
        image = bytes(raw)
        if image == b"{}":
            raise MalformedMessageError(f"a row of `data` has no columns, and the type is {flat.type}")
        image = as_stored(image)
        layout, absent = columns.examined(image, typed)
        before: bytes | None = None
        after: bytes | None = image
        # what an INSERT lacks was given no value: the row holds the column's default, which the message does not have
        partial = operation in _IN_PARTS and (bool(absent) or options.row_image == "partial")
        if operation is Operation.DELETE:
            before, after = image, None
        elif operation is Operation.UPDATE:
            before, layout = images.old_values(old[number], image, layout, absent) if old else (None, layout)
            before = as_stored(before) if before is not None else None
            # with full row images, every UPDATE has an old value; without one, the source logs MINIMAL images
            partial = partial or before is None
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
            absent=absent if partial else (),
            key=_key(flat.pkNames, layout),
        )
        events.append(event)
    return events


def _rowless(flat: FlatMessage) -> DecodeError:
    """Return why a row change without rows is set aside."""
    if flat.sql:
        return statement_only(flat.type or "", flat.sql)
    return MalformedMessageError(f"`data` holds no row, and the type is {flat.type}")


@functools.lru_cache(maxsize=1024)
def _key(names: tuple[str, ...] | None, layout: RowLayout) -> tuple[str, ...] | None:
    """Return ``pkNames`` in the spelling of the columns. The case of ``pkNames`` may differ."""
    if names is None:
        return None
    folded = {name.casefold(): name for name in layout.names}
    return tuple(name if name in layout.names else folded.get(name.casefold(), name) for name in names)


def _no_rows(flat: FlatMessage, order: Position, options: Options) -> list[Event]:
    """Return the events of a message that is not a row change."""
    type_ = (flat.type or "").upper()
    verb = row_change_of_query(flat.sql) if type_ == "QUERY" and not flat.isHeartbeat else None
    annotates = verb is not None and options.annotations and not flat.database
    is_schema_change = type_ == "QUERY" and not annotates and schema_change(flat.sql or "")
    if flat.isDdl or type_ in SCHEMA_CHANGES or is_schema_change:
        images.refuse_rows("a schema change", flat.type, flat.data, flat.old)
        return _schema_change(flat, type_, order, options)
    kind = "heartbeat" if flat.isHeartbeat else CONTROLS.get(type_)
    if kind is None:
        allowed = ", ".join([*OPERATIONS, *sorted(SCHEMA_CHANGES), *CONTROLS])
        raise UnknownOperationError(f"`type` is {flat.type!r}; Canal JSON knows {allowed}")
    images.refuse_rows("a control event", flat.type, flat.data, flat.old)
    if verb is not None and not annotates:
        raise statement_only(verb, flat.sql or "", "" if flat.database else _ANNOTATED)
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
    """Return the DDL. If it is a TRUNCATE, the truncation of the table follows.

    ``database`` and ``table`` may be empty (CREATE DATABASE). If a statement has several tables, they name the first.
    """
    table = _table(flat, options) if flat.table or options.table else None
    committed_at, captured_at = _micros(flat.es), _micros(flat.ts)
    statement = flat.sql or ""
    if verb := row_change(statement):
        raise statement_only(verb, statement)
    says_so = type_ == "TRUNCATE"
    needless = type_ in _OF_INDEXES or (says_so and table is not None)
    if not needless and truncations.is_blank(statement):
        found = "holds no statement" if statement else "is missing"
        raise MalformedMessageError(f"`sql` {found}, and the type is {flat.type}")
    change = SchemaChange(
        table=table,
        database=None if table else flat.database or None,
        position=changed(*order, 0),
        statement=statement,
        committed_at=committed_at,
        captured_at=captured_at,
    )
    # DTS writes DDL for every type
    if table is None or not truncations.empties(table, statement, "mysql", says_so=says_so):
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
