"""Corrects rows of the log, into which connectors write values that the row did not have. A load has none of them."""

from __future__ import annotations

import msgspec

from tidemark.events import Operation
from tidemark.formats._debezium import spanner
from tidemark.formats._debezium.enum_labels import ESCAPED, with_plain_labels
from tidemark.formats._debezium.envelope import Row
from tidemark.formats._debezium.old_images import without
from tidemark.formats._debezium.placeholders import unavailable
from tidemark.formats._debezium.source import Source
from tidemark.formats._debezium.unlogged import without_unlogged


def correct(row: Row, record_key: bytes | None, source: Source, schema: msgspec.Raw, text: str) -> None:
    """Let the images of a row be as the row was.

    Args:
        row: of an envelope.
        record_key: of its record.
        source: the block of this name.
        schema: of the message.
        text: the placeholder for values that the log does not have.

    Raises:
        IncompleteMessageError: nothing tells what the row was.
    """
    if row.before is not None and row.layout is not None:
        absent = unavailable(row.before, row.layout, text)  # as `captured`, without a call for each message
        row.before = without(row.before, absent) if absent else row.before
    has_less = row.operation is Operation.DELETE and source.connector == "postgresql"
    if has_less or ESCAPED in (row.before or b"") or ESCAPED in (row.after or b""):
        row.before = corrected(row.before, row.operation, record_key, source, schema)
        row.after = corrected(row.after, row.operation, record_key, source, schema)
    if source.connector == spanner.CONNECTOR:
        spanner.correct(row, source)


def corrected(
    image: bytes | None,
    operation: Operation,
    record_key: bytes | None,
    source: Source,
    schema: msgspec.Raw | bytes | None,
) -> bytes | None:
    """Return an image as the row was: see ``enum_labels`` and ``unlogged``."""
    if image is None or operation is Operation.SNAPSHOT:
        return image
    if operation is Operation.DELETE:
        image = without_unlogged(image, record_key, source.connector, schema)
    return with_plain_labels(image, source, schema)
