"""Qlik (Attunity) Replicate's messages in JSON, as its Kafka, MapR Streams and other stream endpoints write them.

"Metadata and data messages" and "The Replicate envelope", https://help.qlik.com. A data message holds one row:

    {"magic": "atMSG", "type": "DT", "headers": null, "messageSchemaId": "94345778F0A920B9F6634C541177EBB2",
     "messageSchema": null, "message": {"data": {"emp_no": 14472, "salary": 49592}, "beforeData": null,
     "headers": {"operation": "UPDATE", "changeSequence": "20190502181731000000000000000000197",
     "timestamp": "2019-05-02T18:17:31.000", "streamPosition": "...", "transactionId": "0000000000000000000000000006",
     "changeMask": "02", "columnMask": "03", "transactionEventCounter": 1, "transactionLastEvent": true}}}

The envelope may be missing. Table, types, ordinals and key are in a metadata message (``MD``), found by the schema id.
It may stand in another topic, and behind its rows. ``columnMask`` says which columns the row has. Any other column
shows null, but its value is unknown. A DELETE has its row in ``data`` or in ``beforeData``, often with nulls in the
columns outside the key.

The flat messages of Attunity's first versions (``task_name``, ``op``, ``bu_data``) are not read, because they write
null and the text "NULL" in the same way.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tidemark.errors import MalformedMessageError, UnknownOperationError
from tidemark.events import ControlEvent, Event, Message
from tidemark.formats import NOTHING, Known, Traits
from tidemark.formats._json import ABSENT, NULL, is_empty, read
from tidemark.formats._positions import of_a_sequence
from tidemark.formats._replicate.changes import change, schema_change
from tidemark.formats._replicate.structure import index, structure
from tidemark.formats._replicate.structure_of_row import structure_of_row
from tidemark.formats._replicate.wire import DATA, MAGIC, METADATA, METADATA_MARK, Headers, MetadataBody, Row, content
from tidemark.formats._replicate.wire import Options as CommonOptions
from tidemark.positions import changed

TOOLS = ("Qlik Replicate",)

UNTOLD = ("anything about a row whose metadata message did not land",)

TRAITS = Traits(ranks_by_commit=of_a_sequence)

__all__ = ["METADATA_MARK", "Body", "Envelope", "Options", "decode", "metadata"]


class Options(CommonOptions):
    """Facts that Replicate's messages in JSON do not contain."""

    metadata: Literal["required", "optional"] = "required"
    """``optional``: a row with an unknown schema id is read without types. Its topic names the table."""


class Body(MetadataBody, gc=False):
    """A message without envelope, with the fields of data messages."""

    data: msgspec.Raw = ABSENT
    beforeData: msgspec.Raw = ABSENT  # noqa: N815 - the wire's spelling, as below
    headers: Headers | None = None
    schema: str | None = None
    """``schema`` and ``table`` are options of the endpoint. Most messages lack them."""
    table: str | None = None


class Envelope(Body, gc=False):
    """A message: the envelope with the body in it, or the body itself."""

    magic: str | None = None
    type: str | None = None
    messageSchemaId: str | None = None  # noqa: N815
    """In a metadata message, the id of its own schema. Data messages refer to the ``schemaId`` inside it."""
    message: Body | msgspec.UnsetType | None = msgspec.UNSET


_envelope = msgspec.json.Decoder(Envelope)


def metadata(message: Message, options: Options) -> tuple[str, bytes] | None:  # noqa: ARG001 - as every format's
    """Return the schema id and the content of a metadata message; None for any other message.

    Raises:
        DecodeError: the message is a metadata message, and is broken.
    """
    if not message.value:
        return None
    envelope = read(_envelope, message.value)
    body = _body(envelope)
    return None if body.tableStructure is None else _content(envelope, body)


def decode(message: Message, options: Options, known: Known = NOTHING) -> list[Event]:
    """Return the one event of ``message``.

    Raises:
        DecodeError: the message is set aside.
    """
    if message.value is None or message.value == NULL:
        return [ControlEvent(kind="tombstone", position=changed(*message.order))]
    envelope = read(_envelope, message.value)
    body = _body(envelope)
    if body.tableStructure is not None:
        if not (is_empty(bytes(body.data)) and is_empty(bytes(body.beforeData))):
            raise MalformedMessageError("a metadata message carries a row: what is to become of it?")
        _, statement = _content(envelope, body)
        found = structure(statement)
        return [schema_change(message, body.lineage, statement, found)]
    if body.headers is None:
        raise MalformedMessageError("a data message without `headers`; flat messages of old versions are not read")
    row = Row(
        headers=body.headers,
        data=_image(body.data),
        before=_image(body.beforeData),
        schema=body.schema,
        table=body.table,
        id=envelope.messageSchemaId,
    )
    required = options.metadata == "required"
    table, guessed = structure_of_row(row, message, options, index(known, structure), required=required)
    return [change(message, row, table, options, guessed=guessed)]


def _body(envelope: Envelope) -> Body:
    """Return the body in the envelope, or the message itself if it has no envelope.

    Raises:
        MalformedMessageError: the envelope is broken.
        UnknownOperationError: Replicate has no such type of message.
    """
    body = envelope.message
    if body is msgspec.UNSET:
        return envelope
    if envelope.magic != MAGIC or body is None:
        raise MalformedMessageError(f"`magic` is {envelope.magic!r}, not {MAGIC}, or `message` is null")
    if envelope.type not in {METADATA, DATA}:
        raise UnknownOperationError(f"`type` is {envelope.type!r}; Replicate has {METADATA}, {DATA}")
    if (envelope.type == METADATA) != (body.tableStructure is not None):
        raise MalformedMessageError(f"`type` is {envelope.type}, and `message` is of the other type")
    return body


def _content(envelope: Envelope, body: Body) -> tuple[str, bytes]:
    body.dataSchema = None  # it describes the same rows in Avro
    return content(body, envelope.messageSchemaId)


def _image(raw: msgspec.Raw) -> bytes | None:
    """Return the bytes of an image; None if it is missing or null.

    One without columns is passed on: masks and keys judge it.
    """
    image = bytes(raw)
    return None if not image or image == NULL else image
