"""The envelope of a Debezium message, field by field."""

from __future__ import annotations

import msgspec

from tidemark.formats._debezium.source import Number, Source, TransactionBlock
from tidemark.formats._json import ABSENT


class Payload(msgspec.Struct, gc=False):
    """The change event envelope."""

    op: str | None = None
    before: msgspec.Raw = ABSENT
    after: msgspec.Raw = ABSENT
    source: Source | None = None
    ts_ms: Number = None
    """At the connector, epoch ms."""
    ts_us: Number = None
    transaction: TransactionBlock | None = None


class Envelope(Payload, gc=False):
    """A message: the envelope itself, or ``{schema, payload}`` with the envelope in it."""

    schema: msgspec.Raw = ABSENT
    payload: Payload | msgspec.UnsetType | None = msgspec.UNSET
