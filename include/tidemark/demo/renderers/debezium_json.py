"""The history as Debezium's MySQL connector writes it: with the schema in every message, and bare.

Spellings are from https://debezium.io/documentation/reference/stable/connectors/mysql.html. The two dumps come from
connectors with different settings. Both have ``skipped.operations=none``, so that a TRUNCATE is a message:

- with schema: ``decimal.handling.mode=precise``, ``time.precision.mode=adaptive_time_microseconds``,
  ``provide.transaction.metadata=true``, with schema changes; Kafka records with keys on days 1 and 3. The table of
  payments is renamed on day 3 (``story.renames``);
- bare: ``schemas.enable=false``, ``decimal.handling.mode=string``, ``time.precision.mode=isostring``, unsigned big
  integers as text; only values of records; no transactions and no schema changes, so changes of rows show their effect.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime

import msgspec

from tidemark.demo.renderers import connect
from tidemark.demo.renderers.binlog import TRUNCATE, Change, Logged, Place, log
from tidemark.demo.renderers.connect import Json
from tidemark.demo.renderers.dump import (
    PRETTY_VALUES,
    RECORD_LINES_ZST,
    VALUE_ARRAY,
    VALUE_LINES_BZ2,
    VALUE_LINES_ZST,
    DumpFile,
    Entry,
    MessageKind,
    files,
)
from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.story.model import SchemaEvent, ShopHistory, Transaction
from tidemark.demo.story.reloads import reloaded

_PREFIX = "shopdb"

_SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

_PACKINGS = (RECORD_LINES_ZST, VALUE_LINES_ZST, RECORD_LINES_ZST, VALUE_LINES_ZST)

_BARE_PACKINGS = (VALUE_ARRAY, VALUE_LINES_BZ2, PRETTY_VALUES, VALUE_LINES_BZ2)
"""One for each day."""

_HEARTBEAT_EVERY = 20

FAILED_OVER_AT = datetime(2026, 1, 3, 6, tzinfo=UTC)
"""When the server of the source without schemas fails over."""

LOADED_AGAIN_AT = datetime(2026, 1, 3, 9, tzinfo=UTC)
"""When the orders of that source are read once more."""


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files with schemas: rows, schema changes, transaction markers, tombstones and heartbeats."""
    entries = [entry for logged in log(history) for entry in _with_schema(logged)]
    return files(entries, _PACKINGS, random.Random(_PREFIX), unknown_operation)  # noqa: S311 - the mixing of a demo


def dump_bare(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files without schemas: rows and heartbeats.

    On day 3 the server fails over, and the orders are loaded again.
    """
    transactions = log(rows_only(reloaded(history, LOADED_AGAIN_AT), truncates=True), FAILED_OVER_AT)
    entries = [entry for logged in transactions for entry in _bare(logged)]
    return files(entries, _BARE_PACKINGS, random.Random("bare"), unknown_operation)  # noqa: S311 - the mixing of a demo


def unknown_operation(value: bytes) -> bytes:
    """Return the message with an operation that Debezium does not have."""
    message = msgspec.json.decode(value)
    if "payload" in message:
        return msgspec.json.encode({**message, "payload": {**message["payload"], "op": "x"}})
    return msgspec.json.encode({**message, "op": "x"})


def _with_schema(logged: Logged) -> Iterator[Entry]:
    transaction, day = logged.transaction, logged.transaction.committed_at.date()
    marked = bool(transaction.events) and not transaction.initial_load
    if transaction.ddl is not None:
        yield _control(transaction, day, _PREFIX, _schema_change(logged, transaction.ddl), MessageKind.DDL)
    if marked:
        yield _control(transaction, day, f"{_PREFIX}.transaction", _marker(transaction, "BEGIN"))
    counts: Counter[str] = Counter()
    for number, change in enumerate(logged.changes, start=1):
        counts[change.schema.table] += 1
        block = {
            "id": _transaction_id(transaction),
            "total_order": number,
            "data_collection_order": counts[change.schema.table],
        }
        payload = {
            "before": connect.encoded(change.before, change.schema),
            "after": connect.encoded(change.after, change.schema),
            **_metadata(transaction, change, block if marked else None),
        }
        yield from _rows(transaction, change, {"schema": connect.envelope(change.schema, _PREFIX), "payload": payload})
    if marked:
        ended = _marker(transaction, "END", counts)
        yield _control(transaction, logged.changes[-1].day, f"{_PREFIX}.transaction", ended)
    if transaction.id % _HEARTBEAT_EVERY == 0:
        schema = connect.struct((("int64", "ts_ms"),), name="io.debezium.connector.common.Heartbeat")
        message = {"schema": schema, "payload": {"ts_ms": millis(transaction) + 900}}
        yield _control(transaction, day, f"__debezium-heartbeat.{_PREFIX}", message)


def _bare(logged: Logged) -> Iterator[Entry]:
    transaction = logged.transaction
    for change in logged.changes:
        message = {
            "before": connect.as_text(change.before),
            "after": connect.as_text(change.after),
            **_metadata(transaction, change, None),
        }
        yield replace(_control(transaction, change.day, "", message, MessageKind.ROWS), rows=1)
    if transaction.id % _HEARTBEAT_EVERY == 0:
        yield _control(transaction, transaction.committed_at.date(), "", {"ts_ms": millis(transaction) + 900})


def _rows(transaction: Transaction, change: Change, message: Json) -> Iterator[Entry]:
    """Yield the record of a row event, and the tombstone after a delete."""
    schema = change.schema
    key = None
    if schema.key and change.op != TRUNCATE:
        struct = {"schema": connect.key(schema, _PREFIX), "payload": connect.encoded_key(change.image, schema)}
        key = msgspec.json.encode(struct)
    topic = f"{_PREFIX}.shop.{schema.table}"
    entry = replace(_control(transaction, change.day, topic, message, MessageKind.ROWS), rows=1, key=key)
    yield entry
    if change.op == "d":
        yield replace(entry, kind=MessageKind.CONTROL, rows=0, value=None)


def _control(
    transaction: Transaction, day: date, topic: str, message: Json, kind: MessageKind = MessageKind.CONTROL
) -> Entry:
    return Entry(
        kind=kind,
        day=day,
        late=transaction.late,
        value=msgspec.json.encode(message),
        topic=topic,
        timestamp=millis(transaction) + 600,
    )


def millis(transaction: Transaction) -> int:
    """Return the time of the commit in epoch ms."""
    return int(transaction.committed_at.timestamp()) * 1000


def _metadata(transaction: Transaction, change: Change, block: Json | None) -> Json:
    """Return the fields of an envelope without the images."""
    source = {
        **_source(transaction, change.place, change.schema.table),
        "snapshot": "true" if transaction.initial_load else "false",
    }
    captured = millis(transaction) + 350
    return {"source": source, "transaction": block, "op": change.op, "ts_ms": captured, "ts_us": captured * 1000 + 7}


def _source(transaction: Transaction, place: Place, table: str) -> Json:
    committed = millis(transaction)
    return {
        "version": "3.0.0.Final",
        "connector": "mysql",
        "name": _PREFIX,
        "ts_ms": committed,
        "snapshot": "false",
        "db": "shop",
        "sequence": None,
        "ts_us": committed * 1000,
        "ts_ns": committed * 1_000_000,
        "table": table,
        "server_id": 223344,
        "gtid": None if transaction.initial_load else _transaction_id(transaction),
        "file": place.file,
        "pos": place.pos,
        "row": place.row,
        "thread": 7,
        "query": None,
    }


def _transaction_id(transaction: Transaction) -> str:
    return f"{_SERVER}:{transaction.id}"


def _marker(transaction: Transaction, status: str, counts: Counter[str] | None = None) -> Json:
    collections = None
    if counts is not None:
        collections = [{"data_collection": f"shop.{table}", "event_count": counts[table]} for table in counts]
    fields = (("string", "status"), ("string", "id"), ("int64?", "event_count"), ("int64", "ts_ms"))
    return {
        "schema": connect.struct(fields, name="io.debezium.connector.common.TransactionMetadataValue"),
        "payload": {
            "status": status,
            "id": _transaction_id(transaction),
            "event_count": None if counts is None else counts.total(),
            "data_collections": collections,
            "ts_ms": millis(transaction),
        },
    }


def _schema_change(logged: Logged, ddl: SchemaEvent) -> Json:
    schema = ddl.schema
    columns = [
        {
            "name": column.name,
            "typeName": column.mysql_type.partition("(")[0].upper(),
            "typeExpression": column.mysql_type.partition("(")[0].upper(),
            "position": position,
            "optional": column.nullable,
        }
        for position, column in enumerate(schema.columns, start=1)
    ]
    change = {
        "type": "CREATE" if ddl.kind == "CREATE" else "ALTER",
        "id": f'"shop"."{schema.table}"',
        "table": {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": list(schema.key), "columns": columns},
    }
    payload = {
        "source": _source(logged.transaction, logged.place, schema.table),
        "ts_ms": millis(logged.transaction) + 350,
        "databaseName": "shop",
        "schemaName": None,
        "ddl": ddl.statement,
        "tableChanges": [] if ddl.kind == "TRUNCATE" else [change],
    }
    return {"schema": connect.struct((("string", "databaseName"), ("string?", "ddl"))), "payload": payload}
