"""The history as Huawei MRS CDL writes it: version 1.0 on the first two days, version 2.0 (Debezium) after them.

Fields are from "CDL JSON and Open-Source Debezium JSON" of MapReduce Service. Decimals and times are text of CDL's own
logical types, because Connect's Timestamp would lose the microseconds. There is no DDL and no TRUNCATE: changes of rows
show the effect of statements. Rows of the initial load are inserts without a log sequence number.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from datetime import date, datetime

import msgspec

from tidemark.demo.renderers import connect
from tidemark.demo.renderers.connect import Json
from tidemark.demo.renderers.dump import (
    RECORD_LINES_GZ,
    RECORD_LINES_ZST,
    VALUE_LINES_GZ,
    VALUE_LINES_ZST,
    DumpFile,
    Entry,
    MessageKind,
    files,
)
from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.renderers.single import Single, singles
from tidemark.demo.story.landmarks import DAYS
from tidemark.demo.story.model import Column, Row, Schema, ShopHistory
from tidemark.events import Operation

_OPERATIONS = {
    Operation.SNAPSHOT: "INSERT",
    Operation.INSERT: "INSERT",
    Operation.UPDATE: "UPDATE",
    Operation.DELETE: "DELETE",
}

_DEBEZIUM_OPERATIONS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}

_TYPES: dict[str, Json] = {
    "date": {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1},
    "decimal": {"type": "string", "name": "com.huawei.cdc.data.Decimal"},
    "timestamp": {"type": "string", "name": "com.huawei.cdc.data.timestamp"},
    "long": {"type": "int64"},
    "int": {"type": "int32"},
    "double": {"type": "double"},
    "binary": {"type": "bytes"},
    "string": {"type": "string"},
}

_FIRST_LSN = 163_955_221_008

_TASK = "279fb050-0143-45c1-b184-50bc48c2461c"

_HEARTBEAT_EVERY = 150

_PACKINGS = (RECORD_LINES_GZ, VALUE_LINES_ZST, RECORD_LINES_ZST, VALUE_LINES_GZ)
"""One for each day."""


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: rows, and heartbeats between them."""
    entries = [entry for single in singles(rows_only(history)) for entry in _entries(single)]
    return files(entries, _PACKINGS, random.Random("cdl"), _unknown_operation)  # noqa: S311 - the mixing of a demo


def _entries(single: Single) -> Iterator[Entry]:
    yield _entry(single, MessageKind.ROWS, _message(single))
    if single.ordinal % _HEARTBEAT_EVERY == 0:
        heartbeat = {"HEARTBEAT_IDENTIFIER": _TASK, "TIMESTAMP": _millis(single), "message_version": "1.0"}
        yield _entry(single, MessageKind.CONTROL, {"schema": {}, "payload": heartbeat})


def _entry(single: Single, kind: MessageKind, message: Json) -> Entry:
    return Entry(
        kind=kind,
        day=single.day,
        late=single.transaction.late,
        rows=int(kind is MessageKind.ROWS),
        repeatable=bool(single.event.schema.key),
        value=msgspec.json.encode(message),
        topic="cdl",
        timestamp=_millis(single) + 700,
    )


def _message(single: Single) -> Json:
    event = single.event
    columns = event.schema.columns
    before, after = _row(event.before, columns), _row(event.after, columns)
    unique = {name: (event.after or event.before or {})[name] for name in event.schema.key} or None
    common = {"LOB_COLUMNS": None, "unique": unique, "before": before, "message_type": "0"}
    if single.day < DAYS[2]:
        payload = {**_first(single), "data": after, "HEARTBEAT_IDENTIFIER": _TASK}
        return {"schema": _schema(event.schema, "data"), "payload": payload | common | {"message_version": "1.0"}}
    payload = {**_second(single), "after": after}
    return {"schema": _schema(event.schema, "after"), "payload": payload | common | {"message_version": "2.0"}}


def _first(single: Single) -> Json:
    """Return the fields of version 1.0, without the images."""
    properties = [{"name": "lsn", "value": _lsn(single)}, {"name": "txId", "value": single.transaction.id}]
    loaded = single.event.operation is Operation.SNAPSHOT
    return {
        "DATA_STORE": "POSTGRESQL",
        "SEG_OWNER": "shop",
        "TABLE_NAME": single.event.table,
        "TIMESTAMP": _millis(single),
        "OPERATION": _OPERATIONS[single.event.operation],
        "transaction": {"properties": [] if loaded else properties},
    }


def _second(single: Single) -> Json:
    """Return the fields of version 2.0, without the images."""
    source = {
        "version": "1.4.0.Final",
        "connector": "postgresql",
        "name": "cdl",
        "ts_ms": _millis(single),
        "snapshot": "false",
        "db": "shopdb",
        "schema": "shop",
        "table": single.event.table,
        "txId": single.transaction.id,
        "lsn": _lsn(single),
    }
    op = _DEBEZIUM_OPERATIONS[_OPERATIONS[single.event.operation]]
    return {"op": op, "source": source, "ts_ms": _millis(single) + 400}


@functools.cache
def _schema(schema: Schema, row: str) -> Json:
    """Return the schema of the messages of a table. Its rows are in the fields ``before`` and ``row``."""
    fields = [{**_type(column), "optional": column.nullable, "field": column.name} for column in schema.columns]
    keys = [field for field in fields if field["field"] in schema.key]
    images = [{"type": "struct", "fields": fields, "optional": True, "field": name} for name in ("before", row)]
    unique = {"type": "struct", "fields": keys, "optional": True, "field": "unique"}
    return {"type": "struct", "fields": [*images, unique], "optional": False, "name": f"shop.{schema.table}"}


def _type(column: Column) -> Json:
    return _TYPES[column.type.partition("(")[0]]


def _row(row: Row | None, columns: tuple[Column, ...]) -> Json | None:
    if row is None:
        return None
    written = connect.as_text(row) or {}
    return {column.name: _value(row[column.name], written[column.name]) for column in columns}


def _value(value: object, written: object) -> object:
    """Return a time as CDL writes it, and any other value as it is written already."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else written


def _lsn(single: Single) -> int:
    return _FIRST_LSN + 56 * single.ordinal


def _millis(single: Single) -> int:
    return int(single.transaction.committed_at.timestamp()) * 1000


def _unknown_operation(value: bytes) -> bytes:
    message = msgspec.json.decode(value)
    return msgspec.json.encode({**message, "payload": {**message["payload"], "OPERATION": "MERGE"}})
