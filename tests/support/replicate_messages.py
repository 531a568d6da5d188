"""Messages of Replicate as its endpoints write them: the envelope in JSON and in Avro, metadata, rows."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro

ID = "8A1F20B6C3D94E5FA7B8C9D0E1F20314"
MASKS = ("changeMask", "columnMask")
NAMES = ("changeSequence", "timestamp", "streamPosition", "transactionId")

ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "MessageEnvelope",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 5}},
        {"name": "type", "type": "string"},
        {"name": "headers", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "messageSchemaId", "type": ["null", "string"]},
        {"name": "messageSchema", "type": ["null", "string"]},
        {"name": "message", "type": "bytes"},
    ],
}

HEADERS: dict[str, Any] = {
    "type": "record",
    "name": "Headers",
    "fields": [
        {
            "name": "operation",
            "type": {"type": "enum", "name": "operation", "symbols": ["INSERT", "UPDATE", "DELETE", "REFRESH"]},
        },
        *({"name": name, "type": {"type": "string"}} for name in NAMES),
        *({"name": name, "type": [{"type": "null"}, {"type": "bytes"}]} for name in MASKS),
        {"name": "transactionEventCounter", "type": ["null", "long"]},
        {"name": "transactionLastEvent", "type": ["null", "boolean"]},
    ],
}


def column(ordinal: int, type_: str, precision: int = 0, scale: int = 0, key: int = 0) -> dict[str, Any]:
    """Return one column of ``tableColumns``."""
    return {
        "ordinal": ordinal,
        "type": type_,
        "length": 0,
        "precision": precision,
        "scale": scale,
        "primaryKeyPosition": key,
        "nullable": key == 0,
    }


def metadata(
    columns: Mapping[str, Any], id_: str = ID, table: str = "orders", version: int = 1, data_schema: str = ""
) -> dict[str, Any]:
    """Return a metadata message without envelope."""
    return {
        "schemaId": id_,
        "lineage": {
            "server": "replicate-1",
            "task": "shop_to_kafka",
            "schema": "shop",
            "table": table,
            "tableVersion": version,
            "timestamp": "2026-01-01T00:00:00.000",
        },
        "tableStructure": {"tableColumns": dict(columns)},
        "dataSchema": data_schema,
    }


def row(
    operation: str,
    data: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None = None,
    seq: int = 1,
    **headers: Any,
) -> dict[str, Any]:
    """Return a data message without envelope; an initial load has no sequence."""
    loading = operation == "REFRESH"
    default_headers = {
        "operation": operation,
        "changeSequence": "" if loading else f"20260102030405000000000000000000{seq:03d}",
        "timestamp": "" if loading else "2026-01-02T03:04:05.000",
        "streamPosition": "" if loading else f"mysql-bin.000003:{seq}",
        "transactionId": "" if loading else "00000000000000000000000000060008",
        "changeMask": None,
        "columnMask": None,
    }
    return {"data": data, "beforeData": before, "headers": default_headers | headers}


def in_json(kind: str, message: object, id_: str | None = ID) -> bytes:
    """Write an envelope in JSON."""
    envelope = {
        "magic": "atMSG",
        "type": kind,
        "headers": None,
        "messageSchemaId": id_,
        "messageSchema": None,
        "message": message,
    }
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode()


def data_schema(columns: Mapping[str, object]) -> dict[str, Any]:
    """Return the schema of data messages: column to Avro type, each beside null."""
    fields = [{"name": name, "type": [{"type": "null"}, type_]} for name, type_ in columns.items()]
    return {
        "type": "record",
        "name": "DataRecord",
        "fields": [
            {"name": "data", "type": ["null", {"type": "record", "name": "Data", "fields": fields}]},
            {"name": "beforeData", "type": [{"type": "null"}, "Data"]},
            {"name": "headers", "type": HEADERS},
        ],
    }


def metadata_schema(columns: Sequence[str]) -> dict[str, Any]:
    """Return the schema of a metadata message: a record for each column, named after it."""
    parts = [("ordinal", "int"), ("type", "string"), *((name, "int") for name in ("length", "precision", "scale"))]
    parts += [("primaryKeyPosition", "int"), ("nullable", "boolean")]

    def record(name: str, fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": each, "type": type_} for each, type_ in fields]}

    texts = [(name, "string") for name in ("server", "task", "schema", "table")]
    lineage = record("Lineage", [*texts, ("tableVersion", "long"), ("timestamp", "string")])
    listed = record("TableColumns", [(name, record(name, parts)) for name in columns])
    structure = record("TableStructure", [("tableColumns", listed)])
    return record(
        "MetadataMessage",
        [("schemaId", "string"), ("lineage", lineage), ("tableStructure", structure), ("dataSchema", "string")],
    )


def written(schema: Mapping[str, Any], datum: object) -> bytes:
    """Write one datum as raw Avro."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), datum)
    return stream.getvalue()


def in_avro(kind: str, message: bytes, id_: str | None = ID, schema: Mapping[str, Any] | None = None) -> bytes:
    """Write an envelope in Avro."""
    envelope = {
        "magic": b"atMSG",
        "type": kind,
        "headers": None,
        "messageSchemaId": id_,
        "messageSchema": None if schema is None else json.dumps(schema, separators=(",", ":")),
        "message": message,
    }
    return written(ENVELOPE, envelope)


def metadata_in_avro(columns: Mapping[str, Any], schema: Mapping[str, Any], id_: str = ID, **lineage: Any) -> bytes:
    """Write a metadata message in Avro, with the schema of its data messages."""
    body = metadata(columns, id_, data_schema=json.dumps(schema, separators=(",", ":")), **lineage)
    own = metadata_schema(tuple(columns))
    return in_avro("MD", written(own, body), id_, own)


def row_in_avro(schema: Mapping[str, Any], body: Mapping[str, Any], id_: str | None = ID) -> bytes:
    """Write a data message in Avro; masks are bytes there."""
    headers = {"transactionEventCounter": None, "transactionLastEvent": None, **body["headers"]}
    for mask in MASKS:
        headers[mask] = None if headers[mask] is None else bytes.fromhex(headers[mask])
    return in_avro("DT", written(schema, {**body, "headers": headers}), id_)
