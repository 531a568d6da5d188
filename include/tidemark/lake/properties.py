"""Properties of the tables that Tidemark makes, by purpose of the table."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyiceberg.table import Table
from pyiceberg.table.update import SetPropertiesUpdate

from tidemark.errors import ConfigurationError

TABLE_PROPERTIES: Mapping[str, str] = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}

LOG_PROPERTIES: Mapping[str, str] = {
    **TABLE_PROPERTIES,
    # These tables are read by partition; statistics of whole messages would only make the metadata large.
    "write.metadata.metrics.default": "none",
    # Rows go to the file of their partition as they arrive, without a shuffle.
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
}
"""Of append-only tables."""

KEPT_PROPERTIES: Mapping[str, str] = {
    **LOG_PROPERTIES,
    # Bounds of positions in files show whether a batch is newer than all tombstones: see docs/adr/0020.
    "write.metadata.metrics.column.position": "full",
}
"""Of tables in which a run keeps what later runs need."""

FILE_ORDER_PROPERTY = "tidemark.file-order"

BY_NUMBERS = "all-numbers"
"""Of a change log in whose positions the numbers in paths of files count as numbers: see docs/adr/0033."""

BY_NUMBERS_WITH_LENGTHS = "numbers"
"""Of a change log of an earlier version, in whose positions the length of a number may decide before later numbers."""

CHANGE_LOG_PROPERTIES: Mapping[str, str] = {
    **LOG_PROPERTIES,
    # For tables without a key, positions are looked up among earlier events: see docs/adr/0011.
    "write.metadata.metrics.column.position": "full",
    # A transaction that arrives again is looked up among the events of its time: see docs/adr/0013.
    "write.metadata.metrics.column.committed_at": "full",
    FILE_ORDER_PROPERTY: BY_NUMBERS,
}

STATE_PROPERTIES: Mapping[str, str] = {
    **TABLE_PROPERTIES,
    # Only the changed rows are written: see docs/adr/0004.
    "write.merge.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.distribution-mode": "none",
    "write.delete.distribution-mode": "none",
    # Bounds of positions in files show whether a batch is newer than all rows of a table: see docs/adr/0020.
    "write.metadata.metrics.column._cdc_position": "full",
    # A dictionary beyond this size is one of values that hardly repeat, and making it costs more than the rest of the
    # write. With 32 KiB, compact over 20 tables takes a twentieth less time, and the files are as small.
    "write.parquet.dict-size-bytes": str(32 << 10),
}
"""Of tables with one row for each key."""

WHOLE_PROPERTIES: Mapping[str, str] = {
    **STATE_PROPERTIES,
    # What a cut changed is read from the files (``lake.changed_rows``), whatever the catalog's own default is.
    "write.format.default": "parquet",
    "write.delete.format.default": "parquet",
}
"""Of tables with the whole rows or versions that published tables are made of."""

FEED_PROPERTIES: Mapping[str, str] = {
    **TABLE_PROPERTIES,
    # Rows go to files as they come: a cut adds few files, and readers take whole cuts.
    "write.distribution-mode": "none",
}
"""Of tables that hold the changes of another table's rows."""

KEY_PROPERTY = "tidemark.key"

ERAS_PROPERTY = "tidemark.key-eras"
"""JSON, of a table whose key changed: each key, with the position of its first event (``tables.eras``)."""

SEGMENTS_PROPERTY = "tidemark.segments"
"""JSON, of a table that was renamed: each name of its events, with the position that it begins at, and the end."""

OBJECT_PROPERTY = "tidemark.object"

SOURCE_PROPERTY = "tidemark.source"

PARTS_PROPERTY = "tidemark.parts"
"""JSON: the parts of the name at the source, where one holds a dot: then ``tidemark.object`` may name two tables."""

STATE_OF_PROPERTY = "tidemark.state-of"
"""Of a state table: the published table that it belongs to, as ``names.state`` does not tell all names apart."""

TOMBSTONES_PROPERTY = "tidemark.tombstones-gone"
"""JSON, of a state table: newest batch and highest position of the tombstones that went because of their age."""

RULES_PROPERTY = "tidemark.columns"
"""JSON: the columns that are left out, and the masks of those that are not (``tables.column_rules``); ``where`` and
``derive`` as the source file has them."""


def keeps_whole(properties: Mapping[str, str]) -> bool:
    """Return whether a table's rows are made from whole rows that are kept beside it (``names.whole``)."""
    return not json.loads(properties.get(RULES_PROPERTY, "{}")).keys().isdisjoint({"where", "derive"})


NAMES_PROPERTY = "tidemark.names"
"""JSON: columns that have other names than at the source; name there to published name."""

SHARDS_PROPERTY = "tidemark.shards"
"""JSON: the tables that are folded into it, by the source's names, each with the columns that are added to its rows. A
table that took the place of these, as they are published apart now, still has it."""

SHARDS_EVER_PROPERTY = "tidemark.shards-ever"
"""JSON: the tables that were ever folded into it, by the source's names. Folded tables of earlier versions lack it."""

FOLDED_PROPERTY = "tidemark.folded"
"""Of a folded table that is seen as one of its shards (``queries.shard_views``): the name that all have together."""

LAYOUT_PROPERTY = "tidemark.layout"
"""JSON: the layout that the source file declared when the table last followed it (``tables.layouts``)."""

REWRITTEN_PROPERTY = "tidemark.rewritten"
"""The partitions and the sort order, by their numbers, that maintenance last rewrote all files for."""

VOID_DOC = "No value so far; its type is that of the first ones"
"""Comment of a column whose type is not known yet. Iceberg has no type for such a column that every reader knows."""

PUBLISHED_PROPERTY = "tidemark.published"
"""JSON: ``snapshot`` and ``schema``, the ids that Tidemark's last move of ``main`` left; see ``other_writers``."""


def published(properties: Mapping[str, str]) -> dict[str, int]:
    """Return the ``snapshot`` and ``schema`` that Tidemark left on ``main``; empty if an earlier version moved it."""
    recorded: dict[str, int] = json.loads(properties.get(PUBLISHED_PROPERTY, "{}"))
    return recorded


def noted(snapshot_id: int, schema_id: int) -> SetPropertiesUpdate:
    """Return the change of a table that notes what ``main`` is moved to, for the commit that moves it."""
    text = json.dumps({"snapshot": snapshot_id, "schema": schema_id})
    return SetPropertiesUpdate(updates={PUBLISHED_PROPERTY: text})


SHOWN_PROPERTY = "tidemark.shown"
"""JSON: the schema that a snapshot was published with, if it was written under other names; by snapshot id."""


def shown(properties: Mapping[str, str]) -> dict[int, int]:
    """Return the ids of snapshots that were published with other names than they were written under, and of schemas."""
    recorded: dict[str, int] = json.loads(properties.get(SHOWN_PROPERTY, "{}"))
    return {int(snapshot): schema for snapshot, schema in recorded.items()}


def noted_names(table: Table, snapshot_id: int, schema_id: int) -> SetPropertiesUpdate:
    """Return the change of a table that notes the schema of ``shown``, for the commit that moves ``main``."""
    kept = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
    known = {snapshot: schema for snapshot, schema in shown(table.properties).items() if snapshot in kept}
    return SetPropertiesUpdate(updates={SHOWN_PROPERTY: json.dumps(known | {snapshot_id: schema_id})})


REBUILT_PROPERTY = "tidemark.rebuilt"
"""Sequence number of the snapshot that the table's last rebuild published: it outlives the snapshots and the tags."""

LAKE_PROPERTY = "tidemark.lake"
"""Property of the ledger's tables: the version of the lake, a whole number. A lake without it has version 1."""

LAKE_VERSION = 1
"""The version of the lake that this program reads and writes: the meaning of its tables, markers and properties.

Who changes what an earlier program would read wrongly raises it, and lets the first run set it in all tables of the
ledger."""


def require_known(table: Table) -> Table:
    """Return a table of the ledger, if this program may read it.

    Raises:
        ConfigurationError: a newer version of Tidemark wrote the lake.
    """
    found = int(table.properties.get(LAKE_PROPERTY, 1))
    if found > LAKE_VERSION:
        raise ConfigurationError(
            f"this lake is of version {found}, and this Tidemark knows lakes up to version {LAKE_VERSION}: a newer "
            "Tidemark wrote it. Install that version or a newer one. Nothing was changed."
        )
    return table
