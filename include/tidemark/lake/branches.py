"""Branches, tags and snapshots of a table: what they tell, and the only place that moves them.

Each move is one commit in the catalog, by PyIceberg: none of it needs Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import structlog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.types import NestedField
from pyiceberg.utils.properties import property_as_bool

from tidemark.errors import PublishConflictError

log = structlog.get_logger(__name__)

MARKER = "tidemark."
"""Prefix of what Tidemark writes into snapshot summaries, in the commit that holds the data."""

CUT_TAG = "cut_"
"""Begins the tag that each table of a published cut has; the cut's number follows."""


def ancestry(table: Table, ref: str = MAIN_BRANCH) -> Iterator[Snapshot]:
    """The snapshots of a branch or tag, newest first, as far back as they are kept."""
    snapshot = table.snapshot_by_name(ref)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent) if parent is not None else None


def greatest(table: Table, column: str, ref: str = MAIN_BRANCH) -> str | None:
    """No value of a text column is above this one, as the files of a branch tell; None where one of them does not."""
    files = (task.file for task in table.scan(snapshot_id=head(table, ref)).plan_files())
    return upper_bound(table, files, column)


def upper_bound(table: Table, files: Iterable[DataFile], column: str) -> str | None:
    """No value of a text column is above this one in some files of a table; None where one of them does not tell."""
    field = table.schema().find_field(column)
    bounds = [(file.upper_bounds or {}).get(field.field_id) for file in files if file.record_count]
    return None if None in bounds else max((bound.decode() for bound in bounds if bound is not None), default="")


def marker(table: Table | None, key: str, ref: str = MAIN_BRANCH) -> str | None:
    """What Tidemark last wrote under ``key`` into a snapshot summary on a branch; None when never."""
    if table is None:
        return None
    for snapshot in ancestry(table, ref):
        if snapshot.summary is not None and (value := snapshot.summary.additional_properties.get(MARKER + key)):
            return str(value)
    return None


def head(table: Table, ref: str = MAIN_BRANCH) -> int:
    """Id of the snapshot that a branch stands on.

    Raises:
        PublishConflictError: there is no such branch.
    """
    snapshot = table.snapshot_by_name(ref)
    if snapshot is None:
        raise PublishConflictError(f"{'.'.join(table.name())} has no branch {ref!r}: run compact again")
    return snapshot.snapshot_id


def data_files(table: Table, snapshot: int) -> set[str]:
    """Paths of the data files of a snapshot, as engines tell them in ``_file``."""
    return {task.file.file_path for task in table.scan(snapshot_id=snapshot).plan_files()}


def total(table: Table, name: str) -> int:
    """A total that the newest snapshot of ``main`` tells (Iceberg specification, Optional Snapshot Summary Fields)."""
    snapshot = table.current_snapshot()
    told = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
    return int(told.get(name, 0))


def rows_in(table: Table) -> int:
    """Rows in the data files of ``main``, those that delete files took away among them."""
    return total(table, "total-records")


def branch_from_main(table: Table, branch: str) -> Table:
    """Put a branch where ``main`` stands, whatever an earlier attempt left on it: no half-built candidate is continued.

    Raises:
        PublishConflictError: somebody moved the branch meanwhile.
    """
    known, main = table.refs().get(branch), head(table)
    stands = known.snapshot_id if known is not None else None
    if stands != main:
        _commit(table, (AssertRefSnapshotId(ref=branch, snapshot_id=stands),), to(branch, main))
    return table


def drop_ref(table: Table, name: str) -> None:
    """Remove a branch or tag, if it is there; the snapshots stay until they expire."""
    if name in table.refs():
        _commit(table, (), RemoveSnapshotRefUpdate(ref_name=name))


def cut_tags(table: Table) -> list[int]:
    """Numbers of the published cuts that a table is tagged for, ascending."""
    numbers = (name.removeprefix(CUT_TAG) for name in table.refs() if name.startswith(CUT_TAG))
    return sorted(int(number) for number in numbers if number.isdecimal())


def remove_tags(table: Table, names: Sequence[str]) -> None:
    """Remove tags in one commit; the snapshots stay until they expire."""
    if names:
        with table.manage_snapshots() as refs:
            for name in names:
                refs.remove_tag(name)


def put_back(table: Table, snapshot_id: int) -> None:
    """Set ``main`` to a snapshot that is still kept."""
    if head(table) != snapshot_id:
        table.manage_snapshots().set_current_snapshot(snapshot_id=snapshot_id).commit()


def tag(table: Table, name: str, snapshot_id: int) -> None:
    """Tag a snapshot; the same tag on the same snapshot again is nothing."""
    existing = table.refs().get(name)
    if existing is not None and existing.snapshot_id == snapshot_id:
        return
    table.manage_snapshots().create_tag(snapshot_id=snapshot_id, tag_name=name).commit()


def fast_forward(table: Table, branch: str) -> int:
    """Move ``main`` to the head of a branch that descends from it: one compare-and-set in the catalog.

    Returns:
        The snapshot that ``main`` stands on afterwards. Doing it again is nothing.

    Raises:
        PublishConflictError: ``main`` is not an ancestor of the branch, or moved meanwhile.
    """
    target, base = head(table, branch), head(table)
    if target == base:
        return base
    if base not in {snapshot.snapshot_id for snapshot in ancestry(table, branch)}:
        name = ".".join(table.name())
        raise PublishConflictError(f"main of {name} moved since {branch} was built: run compact again")
    _commit(
        table,
        (AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=base),),
        *_brought(table, target),
        to(MAIN_BRANCH, target),
    )
    return target


def put_schema(
    table: Table, fields: Sequence[NestedField], properties: Mapping[str, str], without: Sequence[str]
) -> None:
    """Give a table another schema, whose fields keep their ids, and properties, all in one commit.

    Raises:
        PublishConflictError: the schema was changed meanwhile.
    """
    known = table.schemas()
    schema = Schema(*fields, schema_id=max(known) + 1)
    number = next((number for number, told in known.items() if told == schema), None)
    added = [] if number is not None else [AddSchemaUpdate.model_validate({"schema": schema})]
    _commit(
        table,
        (AssertCurrentSchemaId.model_validate({"current-schema-id": table.metadata.current_schema_id}),),
        *added,
        SetCurrentSchemaUpdate.model_validate({"schema-id": -1 if number is None else number}),
        SetPropertiesUpdate(updates=dict(properties)),
        RemovePropertiesUpdate(removals=list(without)),
    )


def to(branch: str, snapshot_id: int) -> SetSnapshotRefUpdate:
    """The change of a table's metadata that puts a branch on a snapshot."""
    return SetSnapshotRefUpdate.model_validate(
        {"ref-name": branch, "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot_id}
    )


BRINGS = f"{MARKER}brings"
"""In the summary of a rebuilt snapshot: properties (JSON) that its table has from the moment that ``main`` is on it."""


def properties_at(table: Table, snapshot_id: int) -> dict[str, str]:
    """Properties of the table as it is, or will be, once ``main`` stands on a snapshot."""
    snapshot = table.snapshot_by_id(snapshot_id)
    summary = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return {**table.properties, **json.loads(summary.get(BRINGS, "{}"))}


def _brought(table: Table, snapshot_id: int) -> list[TableUpdate]:
    """A rebuilt snapshot brings its schema and properties with it, in the commit that moves ``main``."""
    properties = properties_at(table, snapshot_id)
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.summary is None or BRINGS not in snapshot.summary.additional_properties:
        return []
    updates: list[TableUpdate] = [SetPropertiesUpdate(updates=properties)] if properties != table.properties else []
    if snapshot.schema_id is not None and snapshot.schema_id != table.metadata.current_schema_id:
        updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": snapshot.schema_id}))
    return updates


def _commit(table: Table, requirements: tuple[TableRequirement, ...], *updates: TableUpdate) -> None:
    """Commit, and let the table stand where it then stands; a transaction would copy its metadata for each step."""
    before = table.metadata
    try:
        told = table.catalog.commit_table(table, requirements, updates)
    except CommitFailedException as error:
        raise PublishConflictError(f"{'.'.join(table.name())}: {error}: run compact again") from error
    table.metadata, table.metadata_location = told.metadata, told.metadata_location
    if _may_delete(told.metadata):
        for path in _metadata_files(before) - _metadata_files(told.metadata):
            _remove(table, path)


def _may_delete(metadata: TableMetadata) -> bool:
    """Whether files that leave the log go: not so where a copy names those of the real table in it."""
    return property_as_bool(
        metadata.properties,
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED,
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT,
    )


def _metadata_files(metadata: TableMetadata) -> set[str]:
    return {entry.metadata_file for entry in metadata.metadata_log}


def _remove(table: Table, path: str) -> None:
    """Remove a file that nothing needs; what stays is an orphan, which maintenance finds."""
    try:
        table.io.delete(path)
    except FileNotFoundError:
        return  # another writer was here first
    except OSError as error:
        log.warning("metadata_file_left", file=path, error=str(error))
