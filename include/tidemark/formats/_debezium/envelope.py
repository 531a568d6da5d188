"""The envelope of a Debezium message, field by field, and the row in its images."""

from __future__ import annotations

import msgspec

from tidemark.events import Operation
from tidemark.formats._debezium.source import Number, Source, TransactionBlock
from tidemark.formats._json import ABSENT, NULL, RowLayout


class Payload(msgspec.Struct, gc=False):
    """The change event envelope."""

    op: str | None = None
    before: msgspec.Raw = ABSENT
    after: msgspec.Raw = ABSENT
    source: Source | None = None
    ts_ms: Number = None
    """Time at the connector, epoch ms."""
    ts_us: Number = None
    transaction: TransactionBlock | None = None


class Envelope(Payload, gc=False):
    """A message: the envelope itself, or ``{schema, payload}`` with the envelope in it."""

    schema: msgspec.Raw = ABSENT
    payload: Payload | msgspec.UnsetType | None = msgspec.UNSET


class Row(msgspec.Struct, gc=False):
    """The row in the images of an envelope: the fields of ``events.ChangeEvent`` that the images decide."""

    operation: Operation
    before: bytes | None = None
    after: bytes | None = None
    layout: RowLayout | None = None
    partial: bool = False
    absent: tuple[str, ...] = ()
    key: tuple[str, ...] | None = None
    upsert: bool = False


def image_of(raw: msgspec.Raw) -> bytes | None:
    """Return the bytes of an image; None for null, and where there is none."""
    image = bytes(raw)
    return image if image and image != NULL else None
