"""The table that says who writes a source, in a catalog that has no locks: reading it, and changing it.

The table has no rows. The summary of its one snapshot is the record. A change puts a new snapshot in its place and
requires that ``main`` still stands on the old one. So it is a compare-and-set in every catalog.
"""

from __future__ import annotations

import time
from datetime import datetime

import msgspec
import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotsUpdate,
)

from tidemark.lake import metadata_files, names
from tidemark.lake.branches import MARKER, head, to
from tidemark.lake.lake import Lake
from tidemark.lake.properties import TABLE_PROPERTIES

_ENTRY = f"{MARKER}lease"

_SCHEMA = pa.schema([pa.field("source", pa.string())])


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes a source."""

    token: int
    """Number of the newest writer: each is above those before it."""

    owner: str | None = None
    """Name of the lease, another for each; None if nobody writes the source."""

    who: str = ""
    """Process, machine and command, for people."""

    since: datetime | None = None
    seconds: float = 0.0
    """How long the record is good for without a change of it."""

    machine: str = ""
    """The machine since its start and the process numbers that it uses; see ``lock_holders.Process``."""

    pid: int = 0
    began: float = 0.0


FREE = LeaseRecord(token=0)


def open_table(lake: Lake, source: str) -> Table:
    """Return the table of a source's lease; make it if it is missing."""
    return lake.ensure(names.lease(source), _SCHEMA, TABLE_PROPERTIES)


def read(table: Table) -> LeaseRecord:
    """Return what the newest snapshot of a loaded table says."""
    snapshot = table.current_snapshot()
    entries = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return msgspec.json.decode(entries[_ENTRY], type=LeaseRecord) if _ENTRY in entries else FREE


def exchange(table: Table, record: LeaseRecord) -> bool:
    """Put a record in the place of the one that ``table`` was loaded with; return whether it was still that one."""
    before, base = table.metadata, table.snapshot_by_id(head(table))
    if base is None:
        return False
    # Nobody reads the (empty) list of files, so all snapshots share the first one's. Clocks of machines differ, and
    # catalogs refuse times that go back.
    snapshot = Snapshot(
        snapshot_id=table.metadata.new_snapshot_id(),
        parent_snapshot_id=None,
        sequence_number=table.metadata.next_sequence_number(),
        timestamp_ms=max(time.time_ns() // 1_000_000, before.last_updated_ms),
        manifest_list=base.manifest_list,
        summary=Summary(Operation.APPEND, **{_ENTRY: msgspec.json.encode(record).decode()}),
        schema_id=before.current_schema_id,
    )
    requirements = (
        AssertTableUUID.model_validate({"uuid": before.table_uuid}),
        AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": base.snapshot_id}),
    )
    updates = (
        AddSnapshotUpdate(snapshot=snapshot),
        to(MAIN_BRANCH, snapshot.snapshot_id),
        RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [base.snapshot_id]}),
    )
    try:
        committed = table.catalog.commit_table(table, requirements, updates)
    except CommitFailedException:
        return False
    table.metadata, table.metadata_location = committed.metadata, committed.metadata_location
    metadata_files.remove_dropped(table, before, committed.metadata)
    return True
