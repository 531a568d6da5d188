"""Properties of the tables that Tidemark makes, by their purpose."""

from __future__ import annotations

from collections.abc import Mapping

TABLE_PROPERTIES: Mapping[str, str] = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}

LOG_PROPERTIES: Mapping[str, str] = {
    **TABLE_PROPERTIES,
    # They are read by partition; statistics of whole messages would only make the metadata large.
    "write.metadata.metrics.default": "none",
    # Rows go to the file of their partition as they come.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
}
"""Append-only tables."""

KEPT_PROPERTIES: Mapping[str, str] = {
    **LOG_PROPERTIES,
    # Whether a batch is newer than all tombstones is told by the positions of their files: see docs/adr/0020.
    "write.metadata.metrics.column.position": "full",
}
"""What runs keep of a table for later ones."""

CHANGE_LOG_PROPERTIES: Mapping[str, str] = {
    **LOG_PROPERTIES,
    # Tables without a key look for positions among earlier events: see docs/adr/0011.
    "write.metadata.metrics.column.position": "full",
    # An event of a transaction that comes again is looked for among those of its time: docs/adr/0013.
    "write.metadata.metrics.column.committed_at": "full",
}

STATE_PROPERTIES: Mapping[str, str] = {
    **TABLE_PROPERTIES,
    # Only the changed rows are written; see docs/adr/0004.
    "write.merge.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.distribution-mode": "none",
    "write.delete.distribution-mode": "none",
    # Whether a batch is newer than all of a table is told by the positions of its files: see docs/adr/0020.
    "write.metadata.metrics.column._cdc_position": "full",
    # A longer one is of values that hardly repeat. Making it costs more than all else of a write, and small files
    # seldom get beyond it: 32 KiB save a twentieth of compact over 20 tables, and their files are as small.
    "write.parquet.dict-size-bytes": str(32 << 10),
}
"""Tables that hold one row a key."""

KEY_PROPERTY = "tidemark.key"

OBJECT_PROPERTY = "tidemark.object"

SOURCE_PROPERTY = "tidemark.source"

VOID_DOC = "No value so far; its type is that of the first ones"
"""Marks columns whose type nothing has told yet: Iceberg has none for them that every reader knows."""
