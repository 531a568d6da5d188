"""The history as DataWorks writes it to a BLOB topic of DataHub ("StreamX").

The fields are from "DataHub message formats" of DataWorks. Nulls are left out, as fastjson does it. An update is two
messages, or sometimes one with both images, as real writers do. The six types have no exact decimals and no
microseconds, so decimals and times are STRING, and dates are DATE.
"""

from __future__ import annotations

import base64
import functools
import random
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby

import msgspec

from tidemark.demo.renderers import datahub
from tidemark.demo.renderers.connect import Json
from tidemark.demo.renderers.datahub import Step
from tidemark.demo.renderers.debezium_json import millis, unknown_operation
from tidemark.demo.renderers.dump import (
    PRETTY_VALUES,
    VALUE_ARRAY,
    VALUE_LINES_ZST,
    DumpFile,
    Entry,
    MessageKind,
    Packing,
    files,
    gz,
)
from tidemark.demo.story.model import Column, Row, Schema, SchemaEvent, ShopHistory, Transaction
from tidemark.events import Operation

_TYPES = {"bigint": "LONG", "int": "LONG", "tinyint(1)": "LONG", "double": "DOUBLE", "date": "DATE"}

_HEARTBEAT_EVERY = 20

_ONE_MESSAGE_EVERY = 5


def base64_lines(entries: Iterable[Entry]) -> bytes:
    """Return the values as DataHub delivers them: Base64, one a line."""
    return b"".join(base64.b64encode(entry.value) + b"\n" for entry in entries if entry.value is not None)


_BASE64_LINES_GZ = Packing(suffix="txt.gz", container=gz(base64_lines), records=False)

_PACKINGS = (VALUE_ARRAY, VALUE_LINES_ZST, PRETTY_VALUES, _BASE64_LINES_GZ)
"""One for each day."""


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: rows and statements with their sequences, transaction markers and heartbeats."""
    entries = [
        entry
        for _, group in groupby(datahub.steps(history), key=lambda step: step.transaction.id)
        for entry in _transaction(list(group))
    ]
    return files(entries, _PACKINGS, random.Random("datahub_blob"), unknown_operation)  # noqa: S311 - the mixing of a demo


def _transaction(steps: list[Step]) -> Iterator[Entry]:
    transaction = steps[0].transaction
    marked = transaction.ddl is None and not transaction.initial_load
    if marked:
        yield _control(transaction, steps[0].day, "TRANSACTION_BEGIN")
    for step in steps:
        if step.ddl is not None:
            emptied = int(step.ddl.kind == "TRUNCATE")
            yield _entry(transaction, step.day, MessageKind.DDL, _statement(step, step.ddl), rows=emptied)
        else:
            for message in _row_messages(step):
                yield _entry(transaction, step.day, MessageKind.ROWS, message, rows=1)
    if marked:
        yield _control(transaction, steps[-1].day, "TRANSACTION_END")
    if transaction.id % _HEARTBEAT_EVERY == 0:
        yield _control(transaction, steps[0].day, "MHEARTBEAT")


def _entry(transaction: Transaction, day: date, kind: MessageKind, message: Json, rows: int = 0) -> Entry:
    return Entry(kind=kind, day=day, late=transaction.late, rows=rows, value=msgspec.json.encode(message))


def _control(transaction: Transaction, day: date, op: str) -> Entry:
    committed = millis(transaction)
    times = {"eventTime": committed, "checkpointTime": committed}
    message = {"schema": {}, "payload": {"op": op, "timestamp": times}, "version": "0.0.1"}
    return _entry(transaction, day, MessageKind.CONTROL, message)


def _message(step: Step, op: str, schema: Json, **members: Json | None) -> Json:
    committed, loaded = millis(step.transaction), step.transaction.initial_load
    times = {
        "eventTime": -1 if loaded else committed,
        "systemTime": committed + 736,
        "checkpointTime": -1 if loaded else committed,
    }
    sequence = "-1" if loaded else str(step.sequence)
    payload = {"op": op, "sequenceId": sequence, **members, "timestamp": times}
    return {"schema": schema, "payload": payload, "version": "0.0.1"}


def _row_messages(step: Step) -> Iterator[Json]:
    event = step.event
    if event is None:
        return
    schema = _schema(event.schema)
    before = None if event.before is None else _image(event.before)
    after = None if event.after is None else _image(event.after)
    match event.operation:
        case Operation.DELETE:
            yield _message(step, "DELETE", schema, before=before, after=None)
        case Operation.UPDATE if step.sequence % _ONE_MESSAGE_EVERY == 0:
            yield _message(step, "UPDATE_AFTER", schema, before=before, after=after, ddl=None)
        case Operation.UPDATE:
            yield _message(step, "UPDATE_BEFOR", schema, before=before)  # sic
            yield _message(step, "UPDATE_AFTER", schema, after=after)
        case _:
            yield _message(step, "INSERT", schema, after=after)


def _statement(step: Step, ddl: SchemaEvent) -> Json:
    schema = {"source": _source(ddl.schema)}
    # It begins like a serialised Java object. A reader must never deserialise it.
    meta = base64.b64encode(b"\xac\xed\x00\x05sr" + ddl.statement.encode()).decode()
    return _message(step, ddl.kind, schema, ddl={"text": ddl.statement, "ddlMeta": meta})


@functools.cache
def _schema(schema: Schema) -> Json:
    columns = [{"name": column.name, "type": _type(column)} for column in schema.columns]
    return {"dataColumn": columns, "primaryKey": list(schema.key), "source": _source(schema)}


def _source(schema: Schema) -> Json:
    return {"dbType": "MySQL", "dbVersion": "8.0", "dbName": "shop", "tableName": schema.table}


def _type(column: Column) -> str:
    if column.type == "binary":
        return "BYTES"
    return _TYPES.get(column.mysql_type, "STRING")


def _image(row: Row) -> Json:
    return {"dataColumn": {name: _value(value) for name, value in row.items() if value is not None}}


def _value(value: object) -> object:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat(sep=" ", timespec="microseconds")
        case date():
            return datahub.micros(value) // 1000
        case Decimal() | float():
            return datahub.number_text(value)
        case _:
            return value
