"""The history as Replicate writes it in JSON: numbers with digits and dates as text, bytes in hexadecimal."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import msgspec

from tidemark.demo.renderers import replicate
from tidemark.demo.renderers.dump import RECORD_LINES_GZ, RECORD_PARQUET, VALUE_LINES_BZ2, VALUE_LINES_ZST, DumpFile
from tidemark.demo.renderers.replicate import Endpoint, Json
from tidemark.demo.story.model import Row, Schema, ShopHistory, Value


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: rows and metadata in envelopes, as Kafka records on days 1 and 3."""
    packings = (RECORD_LINES_GZ, VALUE_LINES_ZST, RECORD_PARQUET, VALUE_LINES_BZ2)
    return replicate.dump(history, Endpoint(metadata=_metadata, row=_row, unknown=_unknown, packings=packings))


def _metadata(_schema: Schema, body: Json) -> bytes:
    return _envelope("MD", body["schemaId"], {**body, "dataSchema": ""})


def _row(_schema: Schema, body: Json) -> bytes:
    headers = {
        name: value.hex().upper() if isinstance(value, bytes) else value for name, value in body["headers"].items()
    }
    images = {"data": _image(body["data"]), "beforeData": _image(body["beforeData"])}
    return _envelope("DT", body["schemaId"], {**images, "headers": headers})


def _envelope(kind: str, id_: str, message: Json) -> bytes:
    return msgspec.json.encode(
        {
            "magic": "atMSG",
            "type": kind,
            "headers": None,
            "messageSchemaId": id_,
            "messageSchema": None,
            "message": message,
        }
    )


def _image(row: Row | None) -> Json | None:
    return None if row is None else {name: text(value) for name, value in row.items()}


def text(value: Value) -> object:
    """Return a value as an endpoint without logical types writes it."""
    match value:
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex().upper()
        case datetime():
            return value.isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            return value


def _unknown(value: bytes) -> bytes:
    message = msgspec.json.decode(value)
    message["message"]["headers"]["operation"] = "UPSERT"
    return msgspec.json.encode(message)
