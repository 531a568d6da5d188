"""The history as Qlik Replicate's task writes it: rows with masks, and metadata messages in place of DDL.

Fields and spellings are from "Metadata and data messages", https://help.qlik.com. The source does not log unchanged
large values: a column of text or bytes that an UPDATE does not change is null and not in ``columnMask``, unless the
UPDATE changes the key. A DELETE has only the key. In a table without a key, all columns are logged. Metadata messages
have the columns of a table, but not their old names: changes of rows show the effect of statements, and of a TRUNCATE.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from tidemark.demo.renderers.dump import (
    SENT_AGAIN,
    DumpFile,
    Entry,
    MessageKind,
    Packing,
    numbered,
    spread,
    with_faults,
)
from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.story.model import Column, Row, RowEvent, Schema, ShopHistory, Transaction
from tidemark.events import Operation

Json = dict[str, Any]

OPERATIONS = {
    Operation.SNAPSHOT: "REFRESH",
    Operation.INSERT: "INSERT",
    Operation.UPDATE: "UPDATE",
    Operation.DELETE: "DELETE",
}

TYPES = {
    "bigint": "INT8",
    "bigint unsigned": "UINT8",
    "date": "DATE",
    "datetime": "DATETIME",
    "decimal": "NUMERIC",
    "double": "REAL8",
    "int": "INT4",
    "text": "NCLOB",
    "tinyint": "INT1",
    "varbinary": "BYTES",
    "varchar": "WSTRING",
}

_LARGE = frozenset({"text", "varbinary"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """How a target endpoint writes messages. It gets masks as bytes, and images with the history's own values."""

    metadata: Callable[[Schema, Json], bytes]
    """Returns a metadata message. Its arguments are the schema and the body of the message."""
    row: Callable[[Schema, Json], bytes]
    """Returns a data message. Its arguments are the schema and the body of the message with its ``schemaId``."""
    unknown: Callable[[bytes], bytes]
    """Returns a data message with an unknown operation or type."""
    packings: Sequence[Packing]
    """One for each day."""


def dump(history: ShopHistory, endpoint: Endpoint) -> list[DumpFile]:
    """Return the dump files. The messages of a day are mixed over its files, so rows may stand before their metadata.

    The metadata of all tables is sent again on day 2, when the task was restarted. The last rows of day 2 are sent
    again on day 3.
    """
    entries = list(_entries(rows_only(history), endpoint))
    records = numbered(_sent_again(with_faults(entries, endpoint.unknown)))
    return spread(records, endpoint.packings, random.Random("replicate"))  # noqa: S311 - the mixing of a demo


def _sent_again(entries: Sequence[Entry]) -> list[Entry]:
    _, second, third, *_ = sorted({entry.day for entry in entries})
    rows = [entry for entry in entries if entry.day == second and entry.kind is MessageKind.ROWS and not entry.late]
    return [*entries, *(replace(entry, day=third, duplicate=True) for entry in rows[-SENT_AGAIN:])]


def _entries(history: ShopHistory, endpoint: Endpoint) -> Iterator[Entry]:
    current: dict[str, Schema] = {}
    sequence = itertools.count(1)
    days = sorted({transaction.committed_at.date() for transaction in history.transactions})
    restart = next(each for each in history.transactions if each.committed_at.date() == days[1])
    for transaction in history.transactions:
        ddl = transaction.ddl
        described = list(current.values()) if transaction is restart else []
        if ddl is not None and current.get(ddl.schema.table) != ddl.schema:  # an index does not change the columns
            current[ddl.schema.table] = ddl.schema
            described.append(ddl.schema)
        for schema in described:
            yield _metadata(transaction, schema, history, endpoint)
        for number, statement in enumerate(transaction.statements()):
            day = transaction.committed_at.date() + timedelta(days=int(transaction.split and number > 0))
            for event in statement:
                yield _row(transaction, event, next(sequence), day, endpoint)


def schema_id(schema: Schema) -> str:
    """Return 32 hexadecimal digits, which are different for each version of a table."""
    return hashlib.sha256(repr(schema).encode()).hexdigest()[:32].upper()


def base_type(column: Column) -> str:
    """Return a column's MySQL type without its length or digits."""
    return column.mysql_type.partition("(")[0]


def _entry(transaction: Transaction, kind: MessageKind, day: date, topic: str, value: bytes, rows: int = 0) -> Entry:
    timestamp = int(transaction.committed_at.timestamp()) * 1000 + 700
    return Entry(kind=kind, day=day, late=transaction.late, rows=rows, value=value, topic=topic, timestamp=timestamp)


def _metadata(transaction: Transaction, schema: Schema, history: ShopHistory, endpoint: Endpoint) -> Entry:
    body = {
        "schemaId": schema_id(schema),
        "lineage": {
            "server": "replicate-1",
            "task": "shop",
            "schema": "shop",
            "table": schema.table,
            "tableVersion": history.schemas[schema.table].index(schema) + 1,
            "timestamp": _clock(transaction.committed_at),
        },
        "tableStructure": {"tableColumns": dict(_columns(schema))},
    }
    value = endpoint.metadata(schema, body)
    return _entry(transaction, MessageKind.DDL, transaction.committed_at.date(), "shop_metadata", value)


def _columns(schema: Schema) -> Iterator[tuple[str, Json]]:
    for ordinal, column in enumerate(schema.columns, start=1):
        digits = column.mysql_type.partition("(")[2].rstrip(")").split(",")
        precision, scale = map(int, digits) if len(digits) == 2 else (0, 0)
        yield (
            column.name,
            {
                "ordinal": ordinal,
                "type": TYPES[base_type(column)],
                "length": 0,
                "precision": precision,
                "scale": scale,
                "primaryKeyPosition": schema.key.index(column.name) + 1 if column.key else 0,
                "nullable": column.nullable,
            },
        )


def _row(transaction: Transaction, event: RowEvent, sequence: int, day: date, endpoint: Endpoint) -> Entry:
    left_out = _left_out(event)
    before = event.before if event.operation is Operation.UPDATE else None
    loading = event.operation is Operation.SNAPSHOT
    body = {
        "schemaId": schema_id(event.schema),
        "data": _without(event.after or event.before or {}, left_out),
        "beforeData": None if before is None else _without(before, left_out),
        "headers": _loading() if loading else _headers(transaction, event, sequence, left_out),
    }
    return _entry(transaction, MessageKind.ROWS, day, f"shop.{event.table}", endpoint.row(event.schema, body), rows=1)


def _left_out(event: RowEvent) -> frozenset[str]:
    """Return the columns that are null because the source did not log them."""
    columns, before, after = event.schema.columns, event.before or {}, event.after or {}
    if not event.schema.key:
        return frozenset()
    if event.operation is Operation.DELETE:
        return frozenset(column.name for column in columns if not column.key)
    if event.operation is not Operation.UPDATE or event.key_changed:
        return frozenset()
    names = {column.name for column in columns if base_type(column) in _LARGE}
    return frozenset(name for name in names if before[name] == after[name])


def _without(row: Mapping[str, Any], names: frozenset[str]) -> Row:
    return {name: None if name in names else value for name, value in row.items()}


def _mask(names: Sequence[str], chosen: Sequence[str]) -> bytes:
    """Return a mask as a big-endian number; the first column is the lowest bit. It may have one spare byte."""
    number = sum(1 << names.index(name) for name in chosen)
    return number.to_bytes(len(names) // 8 + 1, "big")


def _headers(transaction: Transaction, event: RowEvent, sequence: int, left_out: frozenset[str]) -> Json:
    names = [column.name for column in event.schema.columns]
    return {
        "operation": OPERATIONS[event.operation],
        "changeSequence": f"{transaction.committed_at:%Y%m%d%H%M%S}00{sequence:019d}",
        "timestamp": _clock(transaction.committed_at),
        "streamPosition": f"mysql-bin.000009:{sequence}:{transaction.id}",
        "transactionId": f"{transaction.id:032X}",
        "changeMask": _mask(names, _changed(event)),
        "columnMask": _mask(names, [name for name in names if name not in left_out]),
        "transactionEventCounter": event.number,
        "transactionLastEvent": event.number == len(transaction.events),
    }


def _changed(event: RowEvent) -> Sequence[str]:
    """Return the columns of ``changeMask``: for a DELETE the key, for an UPDATE the changed columns, else all."""
    if event.operation is Operation.DELETE:
        return event.schema.key or list(event.before or {})
    before, after = event.before or {}, event.after or {}
    return [name for name, value in after.items() if name not in before or before[name] != value]


def _loading() -> Json:
    empty = dict.fromkeys(("changeSequence", "timestamp", "streamPosition", "transactionId"), "")
    none = dict.fromkeys(("changeMask", "columnMask", "transactionEventCounter", "transactionLastEvent"))
    return {"operation": OPERATIONS[Operation.SNAPSHOT], **empty, **none}


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000"
