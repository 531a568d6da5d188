"""What connectors write into rows of the log, other than into those of a load, and what is not in the row."""

from __future__ import annotations

import msgspec

from tidemark.events import Operation
from tidemark.formats._debezium.enum_labels import with_plain_labels
from tidemark.formats._debezium.source import Source
from tidemark.formats._debezium.unlogged import without_unlogged


def corrected(
    image: bytes | None,
    operation: Operation,
    record_key: bytes | None,
    source: Source,
    schema: msgspec.Raw | bytes | None,
) -> bytes | None:
    """Return an image as the row was: see ``enum_labels`` and ``unlogged``."""
    if operation is Operation.SNAPSHOT:
        return image
    if operation is Operation.DELETE:
        image = without_unlogged(image, record_key, source, schema)
    return with_plain_labels(image, source, schema)
