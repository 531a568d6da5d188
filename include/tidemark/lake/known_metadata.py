"""The metadata files of tables, none of which PyIceberg reads that this process has read or written before.

A metadata file never changes: each commit writes a new one, with a name of its own. A run loads the same versions of
tables again and again, some two hundred times for four small tables. The catalog is still asked each time which file is
the newest.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any

from cachetools import LRUCache
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table.metadata import TableMetadata, TableMetadataCommonFields
from pyiceberg.typedef import UTF8

_MOST = 20_000
"""Snapshots, of all metadata that is kept. One takes some 3 KB; a table without any takes as much as ten."""

_read = FromInputFile.table_metadata
_write = ToOutputFile.table_metadata


def _weight(metadata: TableMetadata) -> int:
    return 10 + len(metadata.snapshots)


_known: LRUCache[str, TableMetadata] = LRUCache(_MOST, getsizeof=_weight)
"""By location. Nothing changes metadata that is here: each update of PyIceberg makes new objects of what it changes."""

_lock = Lock()


def remember() -> None:
    """Let PyIceberg's catalogs take known metadata from memory, and copy no more of it than an update changes.

    PyIceberg copies all of a table's metadata after each step of a commit, with every snapshot. All that it holds is
    frozen, or a list or dictionary that an update replaces, so a copy of the outermost object does.
    """
    reader: Any = FromInputFile
    reader.table_metadata = staticmethod(table_metadata)
    writer: Any = ToOutputFile
    writer.table_metadata = staticmethod(write_table_metadata)
    copied: Any = TableMetadataCommonFields
    copied.__deepcopy__ = _copy


def table_metadata(input_file: InputFile, encoding: str = UTF8) -> TableMetadata:
    """Return what a metadata file holds; read it, unless it is known."""
    location = input_file.location
    with _lock:
        known = _known.get(location)
    if known is None:
        known = _read(input_file, encoding)
        _keep(location, known)
    return known


def write_table_metadata(metadata: TableMetadata, output_file: OutputFile, overwrite: bool = False) -> None:  # noqa: FBT001, FBT002  PyIceberg's signature
    """Write a metadata file. What it holds is known from then on."""
    _write(metadata, output_file, overwrite)
    _keep(output_file.location, metadata)


def _keep(location: str, metadata: TableMetadata) -> None:
    with _lock, suppress(ValueError):  # it is larger than all that is kept
        _known[location] = metadata


def _copy(metadata: TableMetadata, memo: dict[int, Any] | None = None) -> TableMetadata:  # noqa: ARG001
    return metadata.model_copy()
