"""The history as Canal writes it: ``FlatMessage`` values in Kafka records, all of one topic.

Fields and spellings are from ``MQMessageUtils.messageConverter`` of https://github.com/alibaba/canal. The Kafka offset
gives the order, so each table stays in one partition. DDL goes to partition 0, where the tables are that it changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import msgspec

from tidemark.demo.renderers.dump import (
    RECORD_LINES_GZ,
    RECORD_PARQUET,
    DumpFile,
    Entry,
    MessageKind,
    Packing,
    numbered,
    with_faults,
)
from tidemark.demo.story.model import Column, Row, RowEvent, Schema, SchemaEvent, ShopHistory, Transaction, Value
from tidemark.events import Operation

_TYPES = {
    Operation.SNAPSHOT: "INIT",
    Operation.INSERT: "INSERT",
    Operation.UPDATE: "UPDATE",
    Operation.DELETE: "DELETE",
}

_PARTITIONS = {"order_lines": 1}
"""Partition of the topic for each table that is not in partition 0."""

_JDBC_TYPES = {
    "bigint": -5,
    "bigint unsigned": 3,
    "date": 91,
    "datetime": 93,
    "decimal": 3,
    "double": 8,
    "int": 4,
    "text": 2005,
    "tinyint": -6,
    "varbinary": 2004,
    "varchar": 12,
}
"""MySQL type -> its number in ``java.sql.Types``, for ``sqlType``."""

_EXACT = Context(prec=60)

_FILE_RECORDS = 60

_SENT_AGAIN = 25

_PACKINGS = (RECORD_LINES_GZ, RECORD_PARQUET, RECORD_LINES_GZ, RECORD_PARQUET)
"""One for each day."""


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: several for each day and partition, each in the order of offsets.

    A consumer that was restarted writes the last records of day 3 again, with the same offsets, at the start of day 4.
    """
    entries = [entry for transaction in history.transactions for entry in _entries(transaction)]
    records = numbered(with_faults(entries, _unknown_operation))
    days = sorted({record.day for record in records})
    files: list[DumpFile] = []
    for day, packing in zip(days, _PACKINGS, strict=True):
        for late in (False, True):
            mine = [record for record in records if record.day == day and record.late == late]
            again = _sent_again(records, days[2]) if day == days[3] and not late else []
            files += _files([*again, *mine], packing)
    return files


def _files(records: Sequence[Entry], packing: Packing) -> Iterator[DumpFile]:
    partitions = sorted({record.partition for record in records})
    for partition in partitions:
        mine = [record for record in records if record.partition == partition]
        for start in range(0, len(mine), _FILE_RECORDS):
            part = mine[start : start + _FILE_RECORDS]
            name = f"shop+{partition}+{part[0].offset:010d}.{packing.suffix}"
            yield DumpFile(name=name, entries=tuple(part), container=packing.container)


def _sent_again(records: Iterable[Entry], day: date) -> list[Entry]:
    last = [record for record in records if record.day == day and record.partition == 1][-_SENT_AGAIN:]
    return [replace(record, day=day + timedelta(days=1), duplicate=True) for record in last]


def _entries(transaction: Transaction) -> Iterator[Entry]:
    day = transaction.committed_at.date()
    if transaction.ddl is not None:
        emptied = int(transaction.ddl.kind == "TRUNCATE")
        yield _entry(transaction, MessageKind.DDL, day, 0, _ddl(transaction, transaction.ddl), rows=emptied)
    for number, statement in enumerate(transaction.statements()):
        moved = day + timedelta(days=1) if transaction.split and number else day
        partition = _PARTITIONS.get(statement[0].table, 0)
        message = _message(transaction, statement)
        yield _entry(transaction, MessageKind.ROWS, moved, partition, message, rows=len(statement))


def _entry(
    transaction: Transaction, kind: MessageKind, day: date, partition: int, message: object, rows: int = 0
) -> Entry:
    return Entry(
        kind=kind,
        day=day,
        late=transaction.late,
        rows=rows,
        value=msgspec.json.encode(message),
        topic="shop",
        partition=partition,
        timestamp=_millis(transaction.committed_at) + 900,
    )


def _envelope(transaction: Transaction, schema: Schema) -> dict[str, Any]:
    """Return the fields that every message has."""
    es = _millis(transaction.committed_at)
    return {
        "data": None,
        "database": "shop",
        "es": es,
        "gtid": "",
        "id": transaction.id // 3 + 1,
        "isDdl": False,
        "mysqlType": None,
        "old": None,
        "pkNames": None,
        "sql": "",
        "sqlType": None,
        "table": schema.table,
        "ts": es + 417,
        "type": "",
    }


def _ddl(transaction: Transaction, ddl: SchemaEvent) -> dict[str, Any]:
    return {**_envelope(transaction, ddl.schema), "isDdl": True, "sql": ddl.statement, "type": ddl.kind}


def _message(transaction: Transaction, statement: Sequence[RowEvent]) -> dict[str, Any]:
    first = statement[0]
    columns = first.schema.columns
    return {
        **_envelope(transaction, first.schema),
        "data": [_image(event.after or event.before or {}, columns) for event in statement],
        "mysqlType": {column.name: column.mysql_type for column in columns},
        "old": list(_old(statement)) if first.operation is Operation.UPDATE else None,
        "pkNames": list(first.schema.key),
        "sqlType": {column.name: _JDBC_TYPES[_base_type(column)] for column in columns},
        "type": _TYPES[first.operation],
    }


def _old(statement: Iterable[RowEvent]) -> Iterator[dict[str, str | None]]:
    """Yield the old values of columns that changed in this row or, as in Canal, in an earlier row of the message."""
    changed: set[str] = set()
    for event in statement:
        before, after = event.before or {}, event.after or {}
        changed |= {name for name in before if before[name] != after[name]}
        yield _image(before, [column for column in event.schema.columns if column.name in changed])


def _image(row: Row, columns: Iterable[Column]) -> dict[str, str | None]:
    return {column.name: _value(row[column.name]) for column in columns}


def _value(value: Value) -> str | None:
    """Return a value as Canal writes it: everything is text, bytes are Latin-1, decimals lose their trailing zeros."""
    match value:
        case None:
            return None
        case bytes():
            return value.decode("latin-1")
        case Decimal():
            return format(value.normalize(_EXACT), "f")
        case datetime():
            return value.isoformat(sep=" ", timespec="microseconds")
        case float():
            return _double(value)
        case _:
            return str(value)


def _double(value: float) -> str:
    """Return a double as Java's ``Double.toString`` writes it."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize(_EXACT).as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{int(exponent) + len(rest)}"


def _base_type(column: Column) -> str:
    return re.sub(r"\(.*?\)", "", column.mysql_type)


def _unknown_operation(value: bytes) -> bytes:
    message = msgspec.json.decode(value)
    return msgspec.json.encode({**message, "type": "UPSERT"})


def _millis(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000
