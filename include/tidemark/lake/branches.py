"""Branches, tags and snapshots of a table: reading them, and moving them.

Each move is one commit in the catalog, by PyIceberg. Beside this module only ``copies`` moves branches that have rows:
those of copies, and a candidate that was built beside its table. Nothing here needs Spark.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
    update_table_metadata,
)

from tidemark.errors import PublishConflictError
from tidemark.lake import metadata_files
from tidemark.lake.names import tagged_cut
from tidemark.lake.properties import REBUILT_PROPERTY, noted, noted_names, published

MARKER = "tidemark."
"""Prefix of the entries that Tidemark writes into snapshot summaries, in the commit that holds the data."""

KEPT_MARKER = "tidemark.marker."
"""Prefix of the properties that repeat a log's newest markers, for when their snapshots have expired."""


def ancestry(table: Table, ref: str = MAIN_BRANCH) -> Iterator[Snapshot]:
    """Yield the snapshots of a branch or tag, newest first, as far back as they are kept."""
    snapshot = table.snapshot_by_name(ref)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent) if parent is not None else None


def marker(table: Table | None, key: str, ref: str = MAIN_BRANCH) -> str | None:
    """Return what Tidemark last wrote under ``key`` into a snapshot summary on a branch; None if it never did.

    Where other engines expired all snapshots that say so, the table's properties repeat it.
    """
    if table is None:
        return None
    oldest = None
    for snapshot in ancestry(table, ref):
        if snapshot.summary is not None and (value := snapshot.summary.additional_properties.get(MARKER + key)):
            return str(value)
        oldest = snapshot
    cut_off = oldest is not None and oldest.parent_snapshot_id is not None
    return table.properties.get(KEPT_MARKER + key) if cut_off else None


def head(table: Table, ref: str = MAIN_BRANCH) -> int:
    """Return the id of the snapshot that a branch stands on.

    Raises:
        PublishConflictError: there is no such branch.
    """
    snapshot = table.snapshot_by_name(ref)
    if snapshot is None:
        raise PublishConflictError(f"{'.'.join(table.name())} has no branch {ref!r}: run compact again")
    return snapshot.snapshot_id


def branch_from_main(table: Table, branch: str) -> Table:
    """Put a branch where ``main`` stands, and return the table.

    What an earlier attempt left on the branch is dropped: no half-built candidate is continued.

    Raises:
        PublishConflictError: somebody moved the branch meanwhile.
    """
    known, main = table.refs().get(branch), head(table)
    stands = known.snapshot_id if known is not None else None
    if stands != main:
        _commit(table, (AssertRefSnapshotId(ref=branch, snapshot_id=stands),), to(branch, main))
    return table


def drop_branch(table: Table, name: str) -> None:
    """Remove a branch, if it is there; the snapshots stay until they expire."""
    if name in table.refs():
        _commit(table, (), RemoveSnapshotRefUpdate(ref_name=name))


def cut_tags(table: Table) -> list[int]:
    """Return the numbers of the published cuts whose tags a table has, ascending."""
    return sorted(number for name in table.refs() if (number := tagged_cut(name)) is not None)


def remove_tags(table: Table, names: Sequence[str]) -> None:
    """Remove tags in one commit; the snapshots stay until they expire."""
    if names:
        with table.manage_snapshots() as refs:
            for name in names:
                refs.remove_tag(name)


def put_back(table: Table, snapshot_id: int, earlier: Schema) -> None:
    """Set ``main`` to a snapshot that is still kept.

    Args:
        table: the table.
        snapshot_id: the snapshot.
        earlier: the schema that the table had with it. It is the current one again where a column of it is gone, or has
            another id: the rows of the snapshot would read as null there.
    """
    if (base := head(table)) != snapshot_id:
        schema = published(table.properties).get("schema", table.metadata.current_schema_id)
        updates = list[TableUpdate]()
        ids = {field.field_id for field in table.schema().fields}
        if not {field.field_id for field in earlier.fields} <= ids:
            schema = earlier.schema_id
            updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": schema}))
        updates += [noted(snapshot_id, schema), to(MAIN_BRANCH, snapshot_id)]
        _commit(table, (AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=base),), *updates)


def descends_from_main(table: Table, branch: str) -> bool:
    """Return whether ``main`` is where a branch began, or further on along it."""
    return head(table) in {snapshot.snapshot_id for snapshot in ancestry(table, branch)}


def moved_meanwhile(table: Table, branch: str) -> str:
    """Return what happened to a candidate that another writer was faster than, as the beginning of a sentence."""
    return f"main of {'.'.join(table.name())} moved since {branch} was built"


def fast_forward(table: Table, branch: str, tag: str | None = None, changes: Sequence[TableUpdate] = ()) -> None:
    """Move ``main`` to the head of a branch that descends from it, and drop the branch: one commit in the catalog.

    Args:
        table: the table.
        branch: the branch. It may stand on ``main`` already.
        tag: name of a tag for the snapshot.
        changes: of the table's schema and properties; no reader sees them without the rows, or the rows without them.

    Raises:
        PublishConflictError: ``main`` is not an ancestor of the branch, or it or the schema changed meanwhile.
    """
    updates = _forward(table, branch, tag, changes)
    if not descends_from_main(table, branch):
        raise PublishConflictError(f"{moved_meanwhile(table, branch)}: run compact again")
    unchanged = AssertCurrentSchemaId.model_validate({"current-schema-id": table.metadata.current_schema_id})
    _commit(table, (AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=head(table)), unchanged), *updates)


def require_forward(table: Table, branch: str, changes: Sequence[TableUpdate]) -> None:
    """Make the changes of ``fast_forward`` in memory alone, with the checks that a commit makes.

    Raises:
        ValueError: the metadata cannot be so.
        ValidationError: a column that goes is needed for partitions or the sort order.
    """
    update_table_metadata(table.metadata, tuple(_forward(table, branch, None, changes)))


def _forward(table: Table, branch: str, tag: str | None, changes: Sequence[TableUpdate]) -> list[TableUpdate]:
    target, base = head(table, branch), head(table)
    updates = [*(_brought(table, target) if target != base else ()), *changes]
    schemas = [each.schema_id for each in updates if isinstance(each, SetCurrentSchemaUpdate)]
    if updates or target != base:
        updates += [noted(target, *(schemas or [table.metadata.current_schema_id])), to(MAIN_BRANCH, target)]
    if changes and schemas:
        updates.append(noted_names(table, target, *schemas))
    if tag is not None:
        updates.append(to(tag, target, SnapshotRefType.TAG))
    return [*updates, RemoveSnapshotRefUpdate(ref_name=branch)]


def to(ref: str, snapshot_id: int, kind: SnapshotRefType = SnapshotRefType.BRANCH) -> SetSnapshotRefUpdate:
    """Return the change of a table's metadata that puts a branch or a tag on a snapshot."""
    return SetSnapshotRefUpdate.model_validate({"ref-name": ref, "type": kind, "snapshot-id": snapshot_id})


BRINGS = f"{MARKER}brings"
"""Entry in the summary of a rebuilt snapshot: properties (JSON) that the table gets when ``main`` moves to it."""


def properties_at(table: Table, snapshot_id: int) -> dict[str, str]:
    """Return the properties that a table has, or will have, when ``main`` stands on a snapshot."""
    snapshot = table.snapshot_by_id(snapshot_id)
    summary = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return {**table.properties, **json.loads(summary.get(BRINGS, "{}"))}


def _brings(snapshot: Snapshot | None) -> TypeGuard[Snapshot]:
    """Return whether a snapshot was rebuilt."""
    return snapshot is not None and snapshot.summary is not None and BRINGS in snapshot.summary.additional_properties


def brought_schema(table: Table, snapshot_id: int) -> Schema | None:
    """Return the schema that a rebuilt snapshot brings when ``main`` moves to it; None for any other snapshot."""
    snapshot = table.snapshot_by_id(snapshot_id)
    return table.schemas()[snapshot.schema_id] if _brings(snapshot) and snapshot.schema_id is not None else None


def was_rebuilt(table: Table, snapshot_id: int) -> bool:
    """Return whether the table was rebuilt after an earlier snapshot of ``main``.

    The rows of the snapshot may then have other masks, another key or other columns than the table's properties and its
    schema say.
    """
    written, rebuilt = table.snapshot_by_id(snapshot_id), table.properties.get(REBUILT_PROPERTY)
    if written is not None and rebuilt is not None:
        return (written.sequence_number or 0) < int(rebuilt)
    # Rebuilt by an earlier version, if at all: the snapshots show it, as far back as all of them are still there.
    later = itertools.takewhile(lambda snapshot: snapshot.snapshot_id != snapshot_id, ancestry(table))
    return any(map(_brings, later))


def _brought(table: Table, snapshot_id: int) -> list[TableUpdate]:
    """Return the changes of schema and properties that a rebuilt snapshot brings; none for any other snapshot.

    They belong into the commit that moves ``main`` to the snapshot.
    """
    snapshot = table.snapshot_by_id(snapshot_id)
    if not _brings(snapshot):
        return []
    rebuilt = {REBUILT_PROPERTY: str(snapshot.sequence_number or 0)}
    updates: list[TableUpdate] = [SetPropertiesUpdate(updates=properties_at(table, snapshot_id) | rebuilt)]
    if snapshot.schema_id is not None and snapshot.schema_id != table.metadata.current_schema_id:
        updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": snapshot.schema_id}))
    return updates


def _commit(table: Table, requirements: tuple[TableRequirement, ...], *updates: TableUpdate) -> None:
    """Commit changes, and update ``table`` to the result.

    A transaction of PyIceberg would do this too, but it copies the metadata for each step.
    """
    before = table.metadata
    try:
        committed = table.catalog.commit_table(table, requirements, updates)
    except (CommitFailedException, BadRequestError) as error:  # the second: a REST catalog refuses the metadata
        raise PublishConflictError(f"{'.'.join(table.name())}: {error}: run compact again") from error
    table.metadata, table.metadata_location = committed.metadata, committed.metadata_location
    metadata_files.remove_dropped(table, before, committed.metadata)
