"""Images of a row before its change, as the change log keeps them."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tidemark.formats._debezium import hbase
from tidemark.formats._debezium.options import Options
from tidemark.formats._debezium.placeholders import unavailable
from tidemark.formats._json import NULL, RowLayout, members


def of_update(before: bytes, layout: RowLayout, typed: RowLayout | None, options: Options) -> tuple[bytes, RowLayout]:
    """Return the image of the row before an UPDATE, and the layout widened by the columns of this image.

    Args:
        before: the image.
        layout: of the new row, which lacks columns that the UPDATE deleted.
        typed: the layout of old rows in the message's schema.
        options: of the source.
    """
    if not layout.fits(before):
        found = members(before)
        layout = layout.widened(found, hbase.of_columns(found) if hbase.has(layout, options) else typed)
        if options.dialect == "lindorm":
            before = msgspec.json.encode(found | dict.fromkeys(layout.missing(found), msgspec.Raw(NULL)))
    return before, layout


def captured(before: bytes, layout: RowLayout, text: str) -> bytes:
    """Return an image of the row before without the columns that hold the placeholder ``text``.

    Oracle's connector writes it for a LOB that the change wrote, and MySQL's for a BLOB or TEXT with
    ``binlog_row_image=NOBLOB``: the log does not have the old value.
    """
    absent = unavailable(before, layout, text)
    return without(before, absent) if absent else before


def without(before: bytes, absent: Collection[str]) -> bytes:
    """Return an image of the row before without the columns that the log does not have."""
    return msgspec.json.encode({name: raw for name, raw in members(before).items() if name not in absent})
