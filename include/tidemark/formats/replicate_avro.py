"""Qlik (Attunity) Replicate's messages in Avro: the envelope is raw Avro, and so is the ``message`` in it.

"The Replicate envelope", "Metadata and data messages" and "Supported data types", https://help.qlik.com. An envelope
begins with the bytes ``atMSG``. It has no file header and needs no registry. This one holds a data message of 60 bytes:

    61 74 4d 53 47                         magic "atMSG"
    04 44 54                               type "DT"; "MD" is metadata
    00                                     headers: null
    02 40 39 34 33 34 35 37 37 38 ...      messageSchemaId "94345778F0A920B9F6634C541177EBB2"
    00                                     messageSchema: null; metadata has its own schema here
    78 ...                                 message: 60 bytes

The schema of a data message is ``dataSchema`` of the metadata message whose ``schemaId`` is ``messageSchemaId``. It
comes with the messages, so it is read as hostile text (``avro.reading``). A row becomes a JSON object of its values as
Avro stores them, with bytes in Base64. From there on, everything is as in ``replicate_json``.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec

from tidemark.avro.reading import reader, reader_of, resolve
from tidemark.errors import MalformedMessageError, UnknownOperationError
from tidemark.events import ControlEvent, Event, Message
from tidemark.formats import NOTHING, Known, Traits
from tidemark.formats._json import RowLayout, members, read
from tidemark.formats._positions import of_a_sequence
from tidemark.formats._replicate.avro_columns import check_old, column_of, record_of, stored_type
from tidemark.formats._replicate.changes import change, schema_change
from tidemark.formats._replicate.structure import Structure, facts, index
from tidemark.formats._replicate.structure_of_row import structure_named, structure_of_bytes
from tidemark.formats._replicate.wire import (
    DATA,
    MAGIC,
    METADATA,
    METADATA_MARK,
    Headers,
    MetadataBody,
    Options,
    Row,
    content,
    parsed,
)
from tidemark.positions import changed

TOOLS = ("Qlik Replicate",)
UNTOLD = ("anything about a row whose metadata message did not land",)

TRAITS = Traits(ranks_by_commit=of_a_sequence)

__all__ = ["METADATA_MARK", "Options", "decode", "metadata"]

_envelope = reader_of({
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
})  # fmt: skip
"""Reads an envelope. The schema is copied from the document."""


class Wire(msgspec.Struct, frozen=True, gc=False):
    """One message without its envelope, undecoded."""

    message: bytes
    schema_id: str | None = None
    schema: str | None = None
    is_metadata: bool = False


class AvroStructure(Structure):
    """A table with the schema of its data messages."""

    def __init__(self, text: bytes) -> None:
        stored = parsed(text)
        if not stored.dataSchema:
            raise MalformedMessageError("a metadata message without `dataSchema`: its rows cannot be read")
        tree = resolve(stored.dataSchema)
        row = record_of(tree, "data")
        record_of(tree, "headers")
        listed = stored.tableStructure["tableColumns"]
        layout = RowLayout(column_of(name, field, listed.get(name)) for name, field in row.items())
        check_old(tree, listed)
        table, ordinals, key, version = facts(stored)
        super().__init__(table, layout, ordinals, key, version=version)
        self.read = reader(tree)
        self.floats = tuple(
            name for name, field in row.items() if stored_type(name, field)["type"] in {"float", "double"}
        )


def metadata(message: Message, options: Options) -> tuple[str, bytes] | None:  # noqa: ARG001 - every format's arguments
    """Return the schema id and the content of a metadata message; None for any other message.

    Raises:
        DecodeError: the message is a metadata message, and is broken.
    """
    wire = _opened(message.value or b"")
    return content(_body(wire)) if wire.is_metadata else None


def decode(message: Message, options: Options, known: Known = NOTHING) -> list[Event]:
    """Return the one event of ``message``.

    Raises:
        DecodeError: the message is set aside.
    """
    if message.value is None:
        return [ControlEvent(kind="tombstone", position=changed(*message.order))]
    wire = _opened(message.value)
    if wire.is_metadata:
        body = _body(wire)
        _, statement = content(body)
        return [schema_change(message, body.lineage, statement, _structure(statement))]
    structures = index(known, _structure)
    table = structure_of_bytes(wire.schema_id, message, options, structures)
    row = _row(table, wire)
    if row.table or row.headers.table:
        named = structure_named(row, message, options, structures, table)
        table, row = named, row if named is table else _row(named, wire)
    return [change(message, row, table, options, guessed=not wire.schema_id)]


_MAGIC = MAGIC.encode()

_bare = msgspec.json.Decoder(MetadataBody)


def _opened(value: bytes) -> Wire:
    """Return a message without its envelope, if it has one.

    Raises:
        MalformedMessageError: the envelope is broken.
        UnknownOperationError: Replicate has no such type of message.
    """
    if not value.startswith(_MAGIC):
        return Wire(message=value, is_metadata=_is_bare_metadata(value))
    envelope = _envelope(value)
    kind = envelope["type"]
    if kind not in {METADATA, DATA}:
        raise UnknownOperationError(f"`type` is {kind[:80]!r}; Replicate has {METADATA}, {DATA}")
    return Wire(
        message=envelope["message"],
        schema_id=envelope["messageSchemaId"],
        schema=envelope["messageSchema"],
        is_metadata=kind == METADATA,
    )


def _is_bare_metadata(value: bytes) -> bool:
    """Return whether a message without envelope is a JSON object with a structure, as ``content`` writes it.

    The first byte and the mark are not enough: a row in Avro may begin with any byte, and its texts may hold any word.
    """
    if not value.startswith(b"{") or METADATA_MARK not in value:
        return False
    try:
        return METADATA_MARK.decode() in members(value)
    except MalformedMessageError:
        return False


def _body(wire: Wire) -> MetadataBody:
    """Return a metadata message, decoded: Avro with a schema in the envelope, or JSON as ``content`` writes it."""
    if wire.schema is None:
        if not wire.message.startswith(b"{"):
            raise MalformedMessageError("a metadata message without `messageSchema`: it cannot be read")
        return read(_bare, wire.message)
    try:
        datum = msgspec.json.encode(_reader(wire.schema)(wire.message))
    except (ValueError, RecursionError) as error:
        raise MalformedMessageError(f"a metadata message with values that it cannot have: {error}") from error
    body = read(_bare, datum)
    body.schemaId = body.schemaId or wire.schema_id
    return body


@functools.lru_cache(maxsize=256)
def _reader(schema: str) -> Any:  # noqa: ANN401 - a function from bytes to whatever the schema says
    return reader(resolve(schema))


@functools.lru_cache(maxsize=4096)
def _structure(text: bytes) -> AvroStructure:
    """Return the structure of a content; the same object for the same bytes."""
    return AvroStructure(text)


def _row(table: AvroStructure, wire: Wire) -> Row:
    """Return a data message, read with the schema of its table."""
    datum = table.read(wire.message)
    data, before, headers = datum.get("data"), datum.get("beforeData"), datum["headers"]
    if headers is None:
        raise MalformedMessageError("`headers` is null: neither operation nor place of the change is known")
    for mask in ("changeMask", "columnMask"):
        if type(headers.get(mask)) is bytes:
            headers[mask] = headers[mask].hex()
    try:
        converted = msgspec.convert(headers, Headers)
    except msgspec.ValidationError as error:
        raise MalformedMessageError(f"`headers` that Replicate does not write: {error}") from error
    name, schema = datum.get("table"), datum.get("schema")
    schema, name = (schema if isinstance(schema, str) else None, name) if isinstance(name, str) else (None, None)
    return Row(converted, _image(data, table), _image(before, table), schema, name, wire.schema_id)


def _image(row: dict[str, Any] | None, table: AvroStructure) -> bytes | None:
    """Return a row as exact JSON: bytes in Base64, numbers with all digits. JSON has no NaN, so that is text."""
    if row is None:
        return None
    for name in table.floats:
        value = row.get(name)
        if value is not None and not math.isfinite(value):
            row[name] = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return msgspec.json.encode(row)
