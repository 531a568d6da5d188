"""Kafka records as ``kcat -J`` writes them: JSON objects with ``topic partition offset tstype ts key payload``.

https://github.com/edenhill/kcat/blob/master/json.c
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec

from tidemark.dumps.json_text import is_valid
from tidemark.dumps.kafka_records import Int32, Int64, Row, content

_NULL: Final = msgspec.Raw(b"null")


class _Record(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """All fields that kcat writes, and no other: an object with another field is no record of kcat."""

    topic: str
    partition: Int32
    offset: Int64
    tstype: Literal["create", "logappend", "unknown"]
    ts: Int64
    payload: msgspec.Raw
    key: msgspec.Raw = _NULL
    broker: Annotated[int, msgspec.Meta(ge=-1)] | None = None
    headers: list[str | None] | None = None
    key_schema_id: int | None = None
    value_schema_id: int | None = None
    key_error: str | None = None
    payload_error: str | None = None


_DECODE: Final = msgspec.json.Decoder(_Record).decode


def are_records(values: Sequence[bytes]) -> bool:
    """Return whether values are records of kcat: all that are JSON, and at least one."""
    sound = [value for value in values if is_valid(value)]
    return bool(sound) and all(unwrapped(value) is not None for value in sound)


def unwrapped(value: bytes) -> Row | None:
    """Return the message in a record of kcat; None if it is none. kcat writes bytes as text, and never as Base64."""
    try:
        record = _DECODE(value)
        found = content(record.key), content(record.payload)
        key, message = (text.encode() if isinstance(text, str) else text for text in found)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    timestamp = None if record.tstype == "unknown" else record.ts
    return key, message, record.topic, record.partition, record.offset, timestamp
