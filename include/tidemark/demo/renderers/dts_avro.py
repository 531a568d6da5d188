"""The history as DTS writes it by default: Avro Records, in every container that can hold bytes.

Fields are from ``Record.avsc`` of https://github.com/LioRoger/subscribe_example. ``formats/dts_avro.py`` describes
them. Rows that one statement inserted have the same position. A transaction that was rolled back is in the dump, with
a ROLLBACK, because DTS reads ahead of the commit; no other tool of the demo does. Records before the third day have
no ``bornTimestamp``.
"""

from __future__ import annotations

import functools
import io
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.demo.renderers.dts_schema import NAMESPACE, record_schema
from tidemark.demo.renderers.dump import DumpFile, Entry, MessageKind, Packing, binary_lines, files, gz
from tidemark.demo.story.landmarks import DAYS
from tidemark.demo.story.model import Column, Row, RowEvent, ShopHistory, Transaction, Value
from tidemark.events import Operation

_OPERATIONS = {
    Operation.SNAPSHOT: "INIT",
    Operation.INSERT: "INSERT",
    Operation.UPDATE: "UPDATE",
    Operation.DELETE: "DELETE",
}

_NUMBERS = {
    "bigint": 8, "date": 10, "datetime": 18, "decimal": 246, "double": 5, "int": 3, "text": 252, "tinyint": 1,
    "varbinary": 253, "varchar": 253,
}  # fmt: skip
"""MySQL type -> its code in the binary log. The codes do not distinguish signed from unsigned, nor text from bytes."""

_HEARTBEAT_EVERY = 20

_KAFKA_RECORD = {
    "type": "record",
    "name": "KafkaRecord",
    "fields": [
        {"name": "topic", "type": "string"},
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": "long"},
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "value", "type": "bytes"},
    ],
}


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: the messages of each day, mixed over several files. Their order is in their positions."""
    entries = list(_entries(history))
    return files(entries, _PACKINGS, random.Random("dts"), _unknown_operation)  # noqa: S311 - the mixing of a demo


def _entries(history: ShopHistory) -> Iterator[Entry]:
    offset = 4
    for transaction in sorted((*history.transactions, *history.attempts), key=lambda each: each.id):
        day, log = transaction.committed_at.date(), 9 + (transaction.committed_at.date() > DAYS[0])
        at = functools.partial(_entry, transaction, day=day)
        marked = bool(transaction.events) and not transaction.initial_load
        if marked:
            yield at(MessageKind.CONTROL, operation="BEGIN", position=f"{offset}@{log}")
        if transaction.ddl is not None:
            offset += 200
            ddl, place = transaction.ddl, f"{offset}@{log}"
            statement = at(MessageKind.DDL, operation="DDL", position=place, object="shop", after=ddl.statement)
            yield replace(statement, rows=int(ddl.kind == "TRUNCATE"))
        moved = day
        for number, events in enumerate(transaction.statements()):
            moved = day + timedelta(days=int(transaction.split and number > 0))
            offset += 154
            for event in events:
                offset += 0 if event.operation is Operation.INSERT else 60
                row = at(MessageKind.ROWS, position=f"{offset}@{log}", **_change(event))
                yield replace(row, day=moved, rows=1, repeatable=bool(event.schema.key))
        if marked:
            end = "ROLLBACK" if transaction in history.attempts else "COMMIT"
            yield replace(at(MessageKind.CONTROL, operation=end, position=f"{offset}@{log}"), day=moved)
        if transaction.id % _HEARTBEAT_EVERY == 0:
            yield at(MessageKind.CONTROL, operation="HEARTBEAT", position=f"{offset}@{log}")


def _entry(transaction: Transaction, kind: MessageKind, *, day: date, position: str, **given: Any) -> Entry:  # noqa: ANN401
    seconds = int(transaction.committed_at.timestamp())
    known = bool(transaction.events) and not transaction.initial_load
    record = {
        "version": 0,
        "id": transaction.id * 10,
        "sourceTimestamp": seconds,
        "sourcePosition": position,
        "safeSourcePosition": position,
        "sourceTxid": str(transaction.id) if known else "0",
        "source": {"sourceType": "MySQL", "version": "8.0.36"},
        "operation": given["operation"],
        "objectName": given.get("object"),
        "processTimestamps": [seconds * 1000 + 210, seconds * 1000 + 317],
        "tags": {**given.get("tags", {}), "readerThroughoutTime": str(seconds * 1000 + 417), "metaVersion": "1"},
        "fields": given.get("fields"),
        "beforeImages": given.get("before"),
        "afterImages": given.get("after"),
        "bornTimestamp": seconds * 1000 + 400,
    }
    return Entry(
        kind=kind,
        day=day,
        late=transaction.late,
        value=_encoded(record, born=day >= DAYS[2]),
        topic="shop_dts",
        timestamp=seconds * 1000 + 900,
    )


def _change(event: RowEvent) -> dict[str, Any]:
    columns = event.schema.columns
    keys = {"PRIMARY": event.schema.key} if event.schema.key else {}
    return {
        "operation": _OPERATIONS[event.operation],
        "object": f"shop.{event.table}",
        "tags": {"pk_uk_info": msgspec.json.encode(keys).decode()},
        "fields": [{"name": column.name, "dataTypeNumber": _NUMBERS[_base_type(column)]} for column in columns],
        "before": _image(event.before, columns),
        "after": _image(event.after, columns),
    }


def _image(row: Row | None, columns: Iterable[Column]) -> list[Any] | None:
    return None if row is None else [_value(row[column.name], column) for column in columns]


def _value(value: Value, column: Column) -> Any:  # noqa: ANN401 - a branch of the value union
    """Return a value with its branch: numbers as text, text as bytes in its character set, times as parts."""
    if value is None:
        return "NULL" if column.type == "string" else None
    if isinstance(value, Decimal) and _base_type(column) == "decimal":
        precision, scale = re.findall("[0-9]+", column.mysql_type)
        text = f"{value:.{scale}f}"
        branch, content = "Decimal", {"value": text, "precision": int(precision), "scale": int(scale)}
    else:
        branch, content = _plain(value)
    return f"{NAMESPACE}.{branch}", content


def _plain(value: Value) -> tuple[str, dict[str, Any]]:
    match value:
        case bytes():
            return "BinaryObject", {"type": "", "value": value}
        case float():
            return "Float", {"value": value, "precision": 0, "scale": 0}
        case datetime():
            return "DateTime", _parts(value, value.hour, value.minute, value.second, value.microsecond)
        case date():
            return "DateTime", _parts(value, None, None, None, None)
        case str():
            return "Character", {"charset": "utf8mb4", "value": value.encode()}
        case _:
            return "Integer", {"precision": 8, "value": f"{value}"}


def _parts(day: date, *clock: int | None) -> dict[str, int | None]:
    parts = (day.year, day.month, day.day, *clock)
    return dict(zip(("year", "month", "day", "hour", "minute", "second", "millis"), parts, strict=True))


def _base_type(column: Column) -> str:
    return re.sub(r"\(.*?\)", "", column.mysql_type).removesuffix(" unsigned")


@functools.cache
def _schema(*, born: bool) -> Any:  # noqa: ANN401 - fastavro's own
    return fastavro.parse_schema(record_schema(born=born))


def _encoded(record: dict[str, Any], *, born: bool) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, _schema(born=born), record)
    return target.getvalue()


def _unknown_operation(value: bytes) -> bytes:
    """Return a Record with an operation that is one symbol beyond the last one of the enum."""
    schema = record_schema(born=False)
    record: Any = fastavro.schemaless_reader(io.BytesIO(value), _schema(born=False), None, return_record_name=True)
    operation = next(field["type"] for field in schema["fields"] if field["name"] == "operation")
    operation["symbols"].append("UPSERT")
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), {**record, "operation": "UPSERT"})
    return target.getvalue()


def _binary_parquet(entries: Iterable[Entry]) -> bytes:
    """Return Kafka records as Parquet. Key and value are binary."""
    rows = list(entries)
    table = pa.table(
        {
            "topic": pa.array([entry.topic for entry in rows], pa.string()),
            "partition": pa.array([entry.partition for entry in rows], pa.int32()),
            "offset": pa.array([entry.offset for entry in rows], pa.int64()),
            "timestamp": pa.array([entry.timestamp for entry in rows], pa.int64()),
            "key": pa.array([entry.key for entry in rows], pa.binary()),
            "value": pa.array([entry.value for entry in rows], pa.binary()),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _avro_of_records(entries: Iterable[Entry]) -> bytes:
    """Return Kafka records as an Avro object container file."""
    rows = [{**_fields(entry), "key": entry.key, "value": entry.value} for entry in entries]
    return _container(_KAFKA_RECORD, rows, "deflate")


def _avro_of_values(entries: Iterable[Entry]) -> bytes:
    """Return the Records themselves as an Avro object container file."""
    schema = _schema(born=True)
    rows = [
        fastavro.schemaless_reader(io.BytesIO(entry.value or b""), schema, None, return_record_name=True)
        for entry in entries
    ]
    return _container(record_schema(born=True), rows, "null")


def _container(schema: Any, rows: Iterable[Any], codec: str) -> bytes:  # noqa: ANN401 - a schema is any JSON
    target = io.BytesIO()
    fastavro.writer(target, fastavro.parse_schema(schema), rows, codec=codec, sync_marker=b"tidemark's shop!")
    return target.getvalue()


def _fields(entry: Entry) -> dict[str, Any]:
    return {
        "topic": entry.topic,
        "partition": entry.partition,
        "offset": entry.offset,
        "timestamp": entry.timestamp,
    }


_PACKINGS = (
    Packing(suffix="parquet", container=_binary_parquet, records=True),
    Packing(suffix="jsonl.gz", container=gz(binary_lines), records=True),
    Packing(suffix="avro", container=_avro_of_records, records=True),
    Packing(suffix="avro", container=_avro_of_values, records=False),
)
"""One for each day."""
