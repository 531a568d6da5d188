"""Kafka Connect schemas of the shop's tables, and their values as Debezium's MySQL connector writes them.

Logical types are from https://debezium.io/documentation/reference/stable/connectors/mysql.html ("Data type mappings").
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from tidemark.demo.story.model import Column, Row, Schema, Value

Json = dict[str, Any]

_EXACT = Context(prec=60)

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock, no zone

_TYPES: dict[str, Json] = {
    "bigint": {"type": "int64"},
    "bigint unsigned": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1},
    "date": {"type": "int32", "name": "io.debezium.time.Date", "version": 1},
    "datetime(6)": {"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1},
    "double": {"type": "double"},
    "int": {"type": "int32"},
    "text": {"type": "string"},
    "tinyint(1)": {"type": "int16"},
}

_SOURCE_FIELDS = (
    ("string", "version"),
    ("string", "connector"),
    ("string", "name"),
    ("int64", "ts_ms"),
    ("string?", "snapshot"),
    ("string", "db"),
    ("string?", "sequence"),
    ("int64?", "ts_us"),
    ("int64?", "ts_ns"),
    ("string?", "table"),
    ("int64", "server_id"),
    ("string?", "gtid"),
    ("string", "file"),
    ("int64", "pos"),
    ("int32", "row"),
    ("int64?", "thread"),
    ("string?", "query"),
)

_TRANSACTION_FIELDS = (("string", "id"), ("int64", "total_order"), ("int64", "data_collection_order"))


def struct(fields: Iterable[tuple[str, str]], **attributes: object) -> Json:
    """Return the schema of a struct. Fields are (type, name); a type that ends in ``?`` is optional."""
    return {"type": "struct", "fields": [_plain(*field) for field in fields], "optional": False, **attributes}


@functools.cache
def envelope(schema: Schema, prefix: str) -> Json:
    """Return the schema of a change event of a table."""
    name = f"{prefix}.shop.{schema.table}"
    row = {"type": "struct", "fields": [_field(column) for column in schema.columns], "optional": True}
    source = struct(_SOURCE_FIELDS, name="io.debezium.connector.mysql.Source", version=1, field="source")
    transaction = struct(_TRANSACTION_FIELDS, name="event.block", version=1, field="transaction")
    return {
        "type": "struct",
        "fields": [
            {**row, "name": f"{name}.Value", "field": "before"},
            {**row, "name": f"{name}.Value", "field": "after"},
            source,
            {**transaction, "optional": True},
            *(_plain(*field) for field in (("string", "op"), ("int64?", "ts_ms"), ("int64?", "ts_us"))),
        ],
        "optional": False,
        "name": f"{name}.Envelope",
        "version": 2,
    }


@functools.cache
def key(schema: Schema, prefix: str) -> Json:
    """Return the schema of the record key of a table."""
    fields = [_field(column) for column in schema.columns if column.key]
    return {"type": "struct", "fields": fields, "optional": False, "name": f"{prefix}.shop.{schema.table}.Key"}


def encoded(row: Row | None, schema: Schema) -> Json | None:
    """Return a row with the types of the schema: decimals in Base64, times in days or microseconds since 1970."""
    return None if row is None else {column.name: _value(row[column.name], column) for column in schema.columns}


def encoded_key(row: Row, schema: Schema) -> Json:
    """Return the key columns of a row. In the shop, they are numbers."""
    return {name: row[name] for name in schema.key}


def as_text(row: Row | None) -> Json | None:
    """Return a row for readers without a schema: decimals and times as text, bytes in Base64."""
    return None if row is None else {name: _text(value) for name, value in row.items()}


def _plain(type_: str, name: str) -> Json:
    return {"type": type_.rstrip("?"), "optional": type_.endswith("?"), "field": name}


def _field(column: Column) -> Json:
    return {**_type(column), "optional": column.nullable, "field": column.name}


def _type(column: Column) -> Json:
    if column.mysql_type == "bigint unsigned":
        return {**_TYPES[column.mysql_type], "parameters": {"scale": "0"}}
    if match := re.fullmatch(r"decimal\((\d+),(\d+)\)", column.mysql_type):
        parameters = {"scale": match[2], "connect.decimal.precision": match[1]}
        return {**_TYPES["bigint unsigned"], "parameters": parameters}
    if column.mysql_type.startswith("varbinary"):
        return {"type": "bytes"}
    return _TYPES.get(column.mysql_type, _TYPES["text"])


def _value(value: Value, column: Column) -> object:
    match value:
        case Decimal():
            scale = int(column.type.rstrip(")").rpartition(" ")[2])
            return _unscaled(int(value.scaleb(scale, _EXACT)))
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return (value - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
        case _:
            return value


def _unscaled(number: int) -> str:
    """Return Base64 of the shortest two's complement of a number, as of Java's ``BigInteger.toByteArray``."""
    magnitude = number if number >= 0 else ~number
    return base64.b64encode(number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)).decode()


def _text(value: Value) -> object:
    match value:
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
        case date():
            return f"{value.isoformat()}Z"
        case _:
            return value
