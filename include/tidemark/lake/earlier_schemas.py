"""The columns that a table had at an earlier snapshot: its schema is of today, whatever snapshot ``main`` stands on."""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tidemark.lake.branches import head, was_rebuilt


def schema_with(table: Table, snapshot_id: int) -> Schema:
    """Return the schema that a table had when ``main`` stood on a snapshot; columns of the next cut may be in it too.

    A cut is written under the names from before, and renames columns when it is published. So the snapshot that was
    written next tells the names. Where that one is gone, or the table was rebuilt, the names from before have to do.
    """
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot_id == head(table):
        return table.schema()
    later = [each for each in table.metadata.snapshots if each.parent_snapshot_id == snapshot_id]
    after = min(later, key=lambda each: each.sequence_number or 0, default=snapshot)
    written = snapshot if was_rebuilt(table, snapshot_id) else after
    return table.schema() if written.schema_id is None else table.schemas()[written.schema_id]


def has_other_names(table: Table, snapshot_id: int) -> bool:
    """Return whether a column that a table had with a snapshot of ``main`` has another name now, or is gone."""
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.schema_id is None:
        return False
    own = {field.field_id for field in table.schemas()[snapshot.schema_id].fields}
    now = {field.field_id: field.name for field in table.schema().fields}
    earlier = schema_with(table, snapshot_id).fields
    return any(now.get(field.field_id) != field.name for field in earlier if field.field_id in own)
