"""The envelope of a Debezium message, field by field, and the row in its images."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidemark.errors import MalformedMessageError
from tidemark.events import Operation
from tidemark.formats._debezium.log_places import Number
from tidemark.formats._debezium.source import Source, TransactionBlock
from tidemark.formats._json import ABSENT, RowLayout, image_of


class Payload(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The change event envelope. It has no other members, so that what may be a flattened row is looked at closely."""

    op: str | None = None
    before: msgspec.Raw = ABSENT
    after: msgspec.Raw = ABSENT
    source: Source | None = None
    ts_ms: Number = None
    """Time at the connector, epoch ms."""
    ts_us: Number = None
    ts_ns: msgspec.Raw = ABSENT
    transaction: TransactionBlock | None = None
    message: msgspec.Raw = ABSENT
    """Of a logical message (``op`` m). Nothing is read from it."""
    updateDescription: msgspec.Raw = ABSENT  # noqa: N815 - the wire's spelling
    """Of MongoDB. Nothing is read from it."""


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


def check_rowless(payload: Payload) -> None:
    """Check that a message whose operation concerns no single row has none. A row in it would be lost.

    Raises:
        MalformedMessageError: it has one.
    """
    if image_of(payload.before) is not None or image_of(payload.after) is not None:
        raise MalformedMessageError(f"`op` is {payload.op}, which has no row, and `before` or `after` has one")


def has_object(found: Mapping[str, msgspec.Raw]) -> bool:
    """Return whether a source or an image is an object. Beside other members, ``op`` alone may be a row's column."""
    return any(bytes(found.get(name, b""))[:1] == b"{" for name in ("source", "before", "after"))
