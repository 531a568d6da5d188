"""The metadata files of tables, each of which PyIceberg reads once in a process.

A metadata file never changes: each commit writes a new one, with a name of its own. A run loads the same versions of
tables again and again, some two hundred times for four small tables. The catalog is still asked each time which file is
the newest.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any

from cachetools import LRUCache
from pyiceberg.io import InputFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import UTF8

_MOST = 20_000
"""Snapshots, of all metadata that is kept. One takes some 3 KB; a table without any takes as much as ten."""

_read = FromInputFile.table_metadata


def _weight(metadata: TableMetadata) -> int:
    return 10 + len(metadata.snapshots)


_known: LRUCache[str, TableMetadata] = LRUCache(_MOST, getsizeof=_weight)
"""By location. PyIceberg copies metadata before it changes anything."""

_lock = Lock()


def remember() -> None:
    """Let PyIceberg's catalogs take metadata that was read before from memory."""
    reader: Any = FromInputFile
    reader.table_metadata = staticmethod(table_metadata)


def table_metadata(input_file: InputFile, encoding: str = UTF8) -> TableMetadata:
    """Return what a metadata file holds; read it, unless it is known."""
    location = input_file.location
    with _lock:
        known = _known.get(location)
    if known is not None:
        return known
    metadata = _read(input_file, encoding)
    with _lock, suppress(ValueError):  # it is larger than all that is kept
        _known[location] = metadata
    return metadata
