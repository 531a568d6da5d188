"""The history as Replicate writes it in Avro, with logical types and a schema for each version of a table.

Schemas are from "The Replicate envelope" and "Supported data types", https://help.qlik.com.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import fastavro
import msgspec

from tidemark.demo.renderers import replicate
from tidemark.demo.renderers.dump import BINARY_LINES_GZ, BINARY_PARQUET, DumpFile
from tidemark.demo.renderers.replicate import TYPES, Endpoint, Json, base_type
from tidemark.demo.story.model import Column, Row, Schema, ShopHistory, Value

_EXACT = Context(prec=60)

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock, no zone

_AVRO: dict[str, Json] = {
    "INT1": {"type": "int"},
    "INT4": {"type": "int"},
    "INT8": {"type": "long"},
    "UINT8": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
    "REAL8": {"type": "double"},
    "DATE": {"type": "int", "logicalType": "date"},
    "DATETIME": {"type": "long", "logicalType": "timestamp-micros"},
    "NCLOB": {"type": "string"},
    "WSTRING": {"type": "string"},
    "BYTES": {"type": "bytes"},
}

_COLUMN = (
    *(("ordinal", "int"), ("type", "string"), ("length", "int"), ("precision", "int"), ("scale", "int")),
    *(("primaryKeyPosition", "int"), ("nullable", "boolean")),
)

_TEXTS = tuple((name, "string") for name in ("server", "task", "schema", "table"))


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: Kafka records with binary values."""
    packings = (BINARY_PARQUET, BINARY_LINES_GZ, BINARY_PARQUET, BINARY_LINES_GZ)
    return replicate.dump(history, Endpoint(metadata=_metadata, row=_row, unknown=_unknown, packings=packings))


def _record(name: str, fields: Iterable[tuple[str, Any]]) -> Json:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": type_} for field, type_ in fields]}


_ENVELOPE = _record(
    "MessageEnvelope",
    [
        ("magic", {"type": "fixed", "name": "Magic", "size": 5}),
        ("type", "string"),
        ("headers", ["null", {"type": "map", "values": "string"}]),
        ("messageSchemaId", ["null", "string"]),
        ("messageSchema", ["null", "string"]),
        ("message", "bytes"),
    ],
)

_HEADERS = _record(
    "Headers",
    [
        ("operation", {"type": "enum", "name": "operation", "symbols": ["INSERT", "UPDATE", "DELETE", "REFRESH"]}),
        *((name, "string") for name in ("changeSequence", "timestamp", "streamPosition", "transactionId")),
        *((name, ["null", "bytes"]) for name in ("changeMask", "columnMask")),
        ("transactionEventCounter", ["null", "long"]),
        ("transactionLastEvent", ["null", "boolean"]),
    ],
)


def _metadata(schema: Schema, body: Json) -> bytes:
    listed = [(column.name, _record(column.name, _COLUMN)) for column in schema.columns]
    structure = _record("TableStructure", [("tableColumns", _record("TableColumns", listed))])
    lineage = _record("Lineage", [*_TEXTS, ("tableVersion", "long"), ("timestamp", "string")])
    fields = [("schemaId", "string"), ("lineage", lineage), ("tableStructure", structure), ("dataSchema", "string")]
    own = _record("MetadataMessage", fields)
    message = {**body, "dataSchema": msgspec.json.encode(_data_schema(schema)).decode()}
    return _envelope(
        "MD", body["schemaId"], _written(fastavro.parse_schema(own), message), msgspec.json.encode(own).decode()
    )


def _row(schema: Schema, body: Json) -> bytes:
    images = {name: _stored(body[name], schema) for name in ("data", "beforeData")}
    return _envelope("DT", body["schemaId"], _written(_data_writer(schema), {**images, "headers": body["headers"]}))


def _envelope(kind: str, id_: str, message: bytes, schema: str | None = None) -> bytes:
    ids = {"messageSchemaId": id_, "messageSchema": schema}
    return _written(_PARSED, {"magic": b"atMSG", "type": kind, "headers": None, **ids, "message": message})


_PARSED = fastavro.parse_schema(_ENVELOPE)


def _written(schema: Any, datum: Json) -> bytes:  # noqa: ANN401 - what fastavro makes of a schema
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, datum)
    return stream.getvalue()


def _data_schema(schema: Schema, *, logical: bool = True) -> Json:
    columns = [
        (column.name, ["null", _type(column) if logical else _type(column)["type"]]) for column in schema.columns
    ]
    images = [("data", _record("Data", columns)), ("beforeData", ["null", "Data"])]
    return _record("DataRecord", [*images, ("headers", _HEADERS)])


@functools.cache
def _data_writer(schema: Schema) -> Any:  # noqa: ANN401 - what fastavro makes of a schema
    return fastavro.parse_schema(_data_schema(schema, logical=False))


def _type(column: Column) -> Json:
    type_ = TYPES[base_type(column)]
    if type_ != "NUMERIC":
        return _AVRO[type_]
    precision, scale = map(int, column.mysql_type.partition("(")[2].rstrip(")").split(","))
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _stored(row: Row | None, schema: Schema) -> Json | None:
    return None if row is None else {column.name: _value(row[column.name], column) for column in schema.columns}


def _value(value: Value, column: Column) -> object:
    """Return a value as its logical type stores it."""
    match value:
        case Decimal():
            number = int(value.scaleb(_type(column)["scale"], _EXACT))
            magnitude = number if number >= 0 else ~number
            return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
        case datetime():
            return (value - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
        case _:
            return value


def _unknown(value: bytes) -> bytes:
    """Return a data message with an unknown type. Its operation is an enum, which cannot have an unknown value."""
    return value.replace(b"atMSG\x04DT", b"atMSG\x04DX", 1)
