"""DTS Records from a short notation, written by fastavro: an encoder that shares no code with the reader.

``records.jsonl`` beside a ``messages.b64`` holds one object a message: fields of the Record that matter, ``fields`` as
pairs, values as ``{"Integer": "1"}``, ``{"Character": "text"}``, ``{"Character": {"charset": "gbk", "hex": "c4e3"}}``,
``{"Decimal": ["1.10", 10, 2]}``, ``{"DateTime": [2024, 2, 29, null, null, null, null]}``; ``born`` is
``bornTimestamp``, absent in Records before June 2020; ``{"hex": "..."}`` is a message of these bytes.
"""

from __future__ import annotations

import base64
import functools
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro

from tidemark.demo.renderers.dts_schema import NAMESPACE, record_schema

PARTS = ("year", "month", "day", "hour", "minute", "second", "millis")


@functools.cache
def _schema(*, born: bool) -> Any:
    return fastavro.parse_schema(record_schema(born=born))


def encode(notation: dict[str, Any]) -> bytes:
    """Write a Record in Avro's binary form."""
    if "hex" in notation:
        return bytes.fromhex(notation["hex"])
    target = io.BytesIO()
    born = "born" in notation
    fastavro.schemaless_writer(target, _schema(born=born), record(**notation))
    return target.getvalue()


def messages(path: Path) -> list[str]:
    """Return the Records of a file in Base64."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [base64.b64encode(encode(json.loads(line))).decode() for line in lines]


def decoded(message: bytes, *, born: bool) -> Any:
    """Read a Record with fastavro."""
    return fastavro.schemaless_reader(io.BytesIO(message), _schema(born=born), None, return_record_name=True)


def record(**notation: Any) -> dict[str, Any]:
    """Return a Record as fastavro takes it."""
    fields = notation.get("fields")
    if isinstance(fields, list):
        fields = [{"name": name, "dataTypeNumber": number} for name, number in fields]
    return {
        "version": 0,
        "id": notation.get("id", 81234),
        "sourceTimestamp": notation.get("seconds", 1696984408),
        "sourcePosition": notation.get("position", "67008@78"),
        "safeSourcePosition": "67000@78",
        "sourceTxid": notation.get("txid", "0"),
        "source": {"sourceType": notation.get("source", "MySQL"), "version": "8.0.28"},
        "operation": notation["operation"],
        "objectName": notation.get("object"),
        "processTimestamps": notation.get("times"),
        "tags": notation.get("tags", {}),
        "fields": fields,
        "beforeImages": _image(notation.get("before")),
        "afterImages": _image(notation.get("after")),
        "bornTimestamp": notation.get("born", 0),
    }


def _image(image: Any) -> Any:
    return [_value(value) for value in image] if isinstance(image, list) else image


def _value(value: dict[str, Any] | None) -> Any:
    if value is None:
        return None
    ((branch, content),) = value.items()
    if branch == "EmptyObject":
        return content
    return f"{NAMESPACE}.{branch}", _content(branch, content)


def _content(branch: str, content: Any) -> Any:
    return _CONTENTS[branch](content)


def _character(content: Any) -> Any:
    if isinstance(content, str):
        return {"charset": "utf8mb4", "value": content.encode()}
    return {"charset": content["charset"], "value": bytes.fromhex(content["hex"])}


def _date(content: Any) -> Any:
    return dict(zip(PARTS, content, strict=True))


def _bytes(content: str) -> Any:
    return {"type": "", "value": bytes.fromhex(content)}


def _text(content: str) -> Any:
    return {"type": "", "value": content}


_CONTENTS: dict[str, Callable[[Any], Any]] = {
    "Integer": lambda content: {"precision": 8, "value": content},
    "Character": _character,
    "Decimal": lambda content: dict(zip(("value", "precision", "scale"), content, strict=True)),
    "Float": lambda content: {"value": float(content), "precision": 0, "scale": 0},
    "Timestamp": lambda content: dict(zip(("timestamp", "millis"), content, strict=True)),
    "DateTime": _date,
    "TimestampWithTimeZone": lambda content: {"value": _date(content[0]), "timezone": content[1]},
    "BinaryGeometry": _bytes,
    "TextGeometry": _text,
    "BinaryObject": _bytes,
    "TextObject": _text,
}
