"""Canonical events as JSON, as ``tidemark decode`` prints them and the golden files of the formats hold them."""

from __future__ import annotations

import json

import msgspec

from tidemark.errors import MalformedMessageError
from tidemark.events import (
    TIMES,
    ChangeEvent,
    ControlEvent,
    Event,
    Message,
    Quarantined,
    SchemaChange,
    Shape,
    TableId,
    Transaction,
)
from tidemark.values.iso8601 import instant
from tidemark.values.plain import read_value
from tidemark.values.plain_types import Value

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def event_to_json(event: Event | Quarantined, message: Message) -> dict[str, object]:
    """Return ``event``, which was decoded from ``message``, as an object that ``to_line`` writes.

    The members are the same for every event of a kind. A member that the event has no value for is null. Images hold
    the columns that were captured: numbers and decimals as text, bytes as Base64, times as ISO 8601. Times are in UTC
    if their column has a time zone.

    Raises:
        UnreadableValueError: a value of an image does not fit its column.
        MalformedMessageError: a time of the event is outside of ``TIMES``.
    """
    origin: dict[str, object] = {"file": message.file, "position": message.place}
    match event:
        case Quarantined():
            return {"quarantined": {"reason": event.reason, "detail": event.detail}, "origin": origin}
        case ChangeEvent():
            return _change(event) | {"origin": origin}
        case SchemaChange():
            return {
                "table": _table(event.table),
                "schema_change": {"statement": event.statement, "dialect": event.dialect},
                **_place(event),
                "origin": origin,
            }
        case ControlEvent():
            transaction = _transaction(event.transaction)
            return {"control": event.kind, **_place(event), "transaction": transaction, "origin": origin}


def to_line(printed: dict[str, object]) -> bytes:
    """Return an object of ``event_to_json`` as one line of JSON, without the line end."""
    return json.dumps(printed, ensure_ascii=False, separators=(",", ":")).encode()


def _change(event: ChangeEvent) -> dict[str, object]:
    return {
        "table": _table(event.table),
        "operation": str(event.operation),
        **_place(event),
        "transaction": _transaction(event.transaction),
        "key": None if event.key is None else list(event.key),
        "before": _image(event.before, event.shape, ()),
        "after": _image(event.after, event.shape, event.absent),
    }


def _image(image: bytes | None, shape: Shape | None, absent: tuple[str, ...]) -> dict[str, Value] | None:
    """Return the captured columns of an image in the order of its shape."""
    if image is None or shape is None:
        return None
    found = _members.decode(image)
    present = [column for column in shape.columns if column.name in found and column.name not in absent]
    return {column.name: read_value(bytes(found[column.name]), column) for column in present}


def _place(event: Event) -> dict[str, object]:
    return {
        "position": list(event.position),
        "committed_at": _time(event.committed_at),
        "captured_at": _time(event.captured_at),
    }


def _time(micros: int | None) -> str | None:
    if micros is None:
        return None
    if micros not in TIMES:
        raise MalformedMessageError("a time outside of the years 1 to 9999")
    return f"{instant(micros)}Z"


def _table(table: TableId | None) -> dict[str, str | None] | None:
    return None if table is None else {"database": table.database, "schema": table.schema, "name": table.name}


def _transaction(transaction: Transaction | None) -> dict[str, str | int | bool | None] | None:
    if transaction is None:
        return None
    return {"id": transaction.id, "number": transaction.number, "last": transaction.last}
