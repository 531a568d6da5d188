"""Tables of the HBase kind in Lindorm: the key column ``ROW``, and values that are all Base64 of raw bytes."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.events import Encoding
from tidemark.formats._debezium.options import Options
from tidemark.formats._json import RowLayout, untyped


def has(layout: RowLayout, options: Options) -> bool:
    """Return whether a layout is of such a table."""
    if options.dialect != "lindorm":
        return False
    return "ROW" in layout.names if options.hbase is None else options.hbase


def of_columns(names: Iterable[str]) -> RowLayout:
    """Return the layout of columns of such a table."""
    return untyped(tuple(names), "binary", Encoding.BASE64)
