"""Metadata files of a table that no longer stand in its log: they are removed, as PyIceberg's own commits do."""

from __future__ import annotations

import structlog
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.utils.properties import property_as_bool

log = structlog.get_logger(__name__)


def remove_dropped(table: Table, before: TableMetadata, after: TableMetadata) -> None:
    """Remove the metadata files that a commit dropped from the table's log, where the table's properties say so.

    Of a copy (``copies``) they stay: its log names files of the real table.
    """
    if _may_delete(after):
        for path in _metadata_files(before) - _metadata_files(after):
            _remove(table, path)


def _may_delete(metadata: TableMetadata) -> bool:
    return property_as_bool(
        metadata.properties,
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED,
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT,
    )


def _metadata_files(metadata: TableMetadata) -> set[str]:
    return {entry.metadata_file for entry in metadata.metadata_log}


def _remove(table: Table, path: str) -> None:
    """Remove a file that nothing needs. If this fails, the file is an orphan, which maintenance removes."""
    try:
        table.io.delete(path)
    except FileNotFoundError:
        return  # another writer was here first
    except OSError as error:
        log.warning("metadata_file_left", file=path, error=str(error))
