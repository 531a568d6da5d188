"""The columns that a table had at an earlier snapshot: its schema is of today, whatever snapshot ``main`` stands on."""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tidemark.lake.branches import head, was_rebuilt
from tidemark.lake.properties import shown


def schema_with(table: Table, snapshot_id: int) -> Schema:
    """Return the schema that a table had when ``main`` stood on a snapshot; columns of the next cut may be in it too.

    A cut is written under the names from before, and renames columns when it is published, which a property of the
    table notes. Cuts of earlier versions lack the note: the snapshot that was written next has the names. Where that
    one is gone, or the table was rebuilt, the names from before have to do.
    """
    snapshot, noted = table.snapshot_by_id(snapshot_id), shown(table.properties).get(snapshot_id)
    if noted in table.schemas():
        return table.schemas()[noted]
    if snapshot is None or snapshot_id == head(table):
        return table.schema()
    later = [each for each in table.metadata.snapshots if each.parent_snapshot_id == snapshot_id]
    after = min(later, key=lambda each: each.sequence_number or 0, default=snapshot)
    written = snapshot if was_rebuilt(table, snapshot_id) else after
    return table.schema() if written.schema_id is None else table.schemas()[written.schema_id]


def names_with(table: Table, snapshot_id: int) -> dict[str, str]:
    """Return the columns that readers saw when ``main`` stood on a snapshot, in order: name in its files to shown name.

    Engines read a snapshot under the names that it was written under. A column may show there under a name that another
    column had when the snapshot was published.
    """
    snapshot = table.snapshot_by_id(snapshot_id)
    known = table.schemas()
    own = known[snapshot.schema_id] if snapshot is not None and snapshot.schema_id in known else table.schema()
    written = {field.field_id: field.name for field in own.fields}
    then = schema_with(table, snapshot_id).fields
    return {written[field.field_id]: field.name for field in then if field.field_id in written}


def has_other_names(table: Table, snapshot_id: int) -> bool:
    """Return whether a column that a table had with a snapshot of ``main`` has another name now, or is gone."""
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.schema_id is None:
        return False
    own = {field.field_id for field in table.schemas()[snapshot.schema_id].fields}
    now = {field.field_id: field.name for field in table.schema().fields}
    earlier = schema_with(table, snapshot_id).fields
    return any(now.get(field.field_id) != field.name for field in earlier if field.field_id in own)
