"""The tables between the stages, as Arrow schemas: ``raw`` holds messages verbatim, the change log canonical events."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

INSTANT = pa.timestamp("us", "UTC")

RAW = pa.schema(
    [
        ("batch", pa.int32()),
        ("interval_start", INSTANT),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("checksum", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("landed_at", INSTANT),
        ("sealed", pa.string()),
    ]
)
"""``raw.<source>``: one row for each message, verbatim. ``batch`` counts the land commits of a source. ``file`` and
``place`` say where the message was, ``checksum`` is the SHA-256 of that file as it was then. ``interval_start`` is the
time that the path of the file names, as the clock of its zone shows it. ``sealed`` names the key that ``key`` and
``value`` are encrypted with (``values.sealing``); null if they are plain. Append only, partitioned by ``batch``."""

CHANGE_LOG = pa.schema(
    [
        ("batch", pa.int32()),
        ("kind", pa.string()),
        ("object", pa.string()),
        ("database", pa.string()),
        ("schema", pa.string()),
        ("name", pa.string()),
        ("operation", pa.string()),
        ("position", pa.string()),
        ("committed_at", INSTANT),
        ("captured_at", INSTANT),
        ("landed_at", INSTANT),
        ("transaction_id", pa.string()),
        ("transaction_number", pa.int64()),
        ("transaction_last", pa.bool_()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("shape", pa.string()),
        ("partial", pa.bool_()),
        ("absent", pa.list_(pa.string())),
        ("key", pa.list_(pa.string())),
        ("detail", pa.string()),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("row", pa.int32()),
        ("upsert", pa.bool_()),
    ]
)
"""``changelog.<source>``: one row for each event. ``kind`` is a ``RowKind``. ``object`` is the table as source files
name it. ``position`` sorts as text. ``before`` and ``after`` are verbatim JSON objects; ``shape`` is the id of the row
in the ledger's ``shapes`` that describes their columns. ``absent`` names the columns that a ``partial`` image did not
capture. ``file``, ``place`` and ``row`` (number of the event in its message, from 0) lead back to the bytes. ``upsert``
is whether a ``partial`` UPDATE also makes rows; null for whole images, and in rows of an older Tidemark. Append only,
partitioned by ``batch``, ``kind`` and ``object``."""

QUARANTINE = pa.schema(
    [
        ("batch", pa.int32()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("object", pa.string()),
        ("interval_start", INSTANT),
        ("file", pa.string()),
        ("place", pa.int64()),
        ("checksum", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("landed_at", INSTANT),
        ("sealed", pa.string()),
    ]
)
"""``quarantine.<source>``: one row for each message that was set aside, with its bytes, the reason, and all that a
decoder needs. ``object`` is the table whose candidate could not take the event; null if the message was not decoded.
``detail`` is null where the row has no bytes any more (``retention: quarantine_days``)."""


class RowKind(StrEnum):
    """The kind of a row of the change log."""

    CHANGE = "change"
    SCHEMA_CHANGE = "schema_change"
    """``detail`` is the statement, and ``operation`` is its SQL dialect. Of an encrypted statement, the dialect has the
    reference of the key behind it (``values.sealing``)."""
    CONTROL = "control"
    """``operation`` says which kind of control event it is. ``detail`` says it too; for the end of a transaction that
    counts its events by collection, it has these counts (JSON)."""
    ERASED = "erased"
    """What an erasure left of a change event: its place, without images, shape and key. ``operation`` is the event's;
    ``detail`` is ``again`` if the event was recognised when its message was decoded, after the erasure."""


ERASED = "erased"
"""In place of the checksum of a message in ``raw``: an erasure removed the message's bytes."""

VARIED = ("before", "after", "position", "value")
"""Columns of these tables whose values hardly repeat."""
