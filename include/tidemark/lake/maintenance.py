"""Upkeep of one Iceberg table: fewer and larger files, fewer snapshots, no file that nothing refers to.

Iceberg's own procedures do the work in Spark; what is decided here is decided from metadata alone: the totals in the
summary of the newest snapshot, the list of manifests, the refs. No function changes a row that a reader of ``main`` or
of a tag that stays can see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyspark.sql import Row, SparkSession

from tidemark.lake.branches import MARKER, ancestry, total
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.text import quoted

MANY_FILES = 8
"""So many data files are worth a rewrite, where they are small."""

SMALL_FILE = 64 * 1024 * 1024
"""Data files below this size, on the average, are small."""

MANY_DELETE_FILES = 5
"""So many delete files are worth a rewrite: every reader of the table opens them all."""

MANY_MANIFESTS = 50
"""So many manifests are worth a rewrite: every plan of a scan reads the list of them."""

_FILE_SYSTEMS = frozenset({"", "file", "hdfs"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Size(NamedTuple):
    """What ``main`` of a table consists of."""

    files: int
    delete_files: int
    bytes: int


def size_of(table: Table) -> Size:
    """Data files, delete files and the bytes of both, as the newest snapshot of ``main`` tells."""
    names = ("total-data-files", "total-delete-files", "total-files-size")
    return Size(*(total(table, name) for name in names))


def is_crowded(size: Size) -> bool:
    """Whether the data files of a table are many and small."""
    return size.files >= MANY_FILES and size.bytes < size.files * SMALL_FILE


def rewrite(session: SparkSession, lake: Lake, identifier: Identifier) -> None:
    """Rewrite small data files into larger ones, fold deletes into them, and gather manifests; nothing where few.

    ``main`` moves by snapshots that replace files and change no row.
    """
    size = size_of(lake.load(identifier))
    if is_crowded(size) or size.delete_files >= MANY_DELETE_FILES:
        options = "map('min-input-files', '2', 'remove-dangling-deletes', 'true')"
        _call(session, lake, f"rewrite_data_files(table => :table, options => {options})", identifier)
    size = size_of(lake.load(identifier))
    # There is one delete file a data file at least: rewriting them when they are that few would gain nothing.
    if size.delete_files >= MANY_DELETE_FILES and size.delete_files > size.files:
        options = "map('min-input-files', '2')"
        _call(session, lake, f"rewrite_position_delete_files(table => :table, options => {options})", identifier)
    table = lake.load(identifier)
    snapshot = table.current_snapshot()
    if snapshot and len(snapshot.manifests(table.io)) >= MANY_MANIFESTS:
        _call(session, lake, "rewrite_manifests(table => :table)", identifier)


def expire(session: SparkSession, lake: Lake, identifier: Identifier, before: datetime) -> int:
    """Expire the snapshots older than a time that nothing needs, and remove the files that only they had.

    What stays whatever its age: the snapshots that a branch or tag stands on, those of a branch that ``main`` does not
    have, and those of ``main`` down to the newest that carries a marker: it tells what the table holds.

    Returns:
        How many went.
    """
    ids = list(_expirable(lake.load(identifier), int(before.timestamp() * 1000)))
    if ids:
        # By id alone: by age, Iceberg would look at the age of everything that no ref stands on.
        statement = "expire_snapshots(table => :table, snapshot_ids => :ids, older_than => :never)"
        _call(session, lake, statement, identifier, ids=ids, never=_EPOCH)
    return len(ids)


def _expirable(table: Table, before: int) -> Iterator[int]:
    kept = set(_to_marker(table))
    on_main = {snapshot.snapshot_id for snapshot in ancestry(table)}
    for name, ref in table.refs().items():
        kept.add(ref.snapshot_id)
        if ref.snapshot_ref_type is SnapshotRefType.BRANCH and name != MAIN_BRANCH:
            kept |= {snapshot.snapshot_id for snapshot in ancestry(table, name)} - on_main
    for snapshot in table.metadata.snapshots:
        if snapshot.timestamp_ms < before and snapshot.snapshot_id not in kept:
            yield snapshot.snapshot_id


def _to_marker(table: Table) -> list[int]:
    passed = []
    for snapshot in ancestry(table):
        passed.append(snapshot.snapshot_id)
        summary: Mapping[str, Any] = snapshot.summary.additional_properties if snapshot.summary else {}
        if any(name.startswith(MARKER) for name in summary):
            return passed
    return []


def remove_orphans(session: SparkSession, lake: Lake, identifier: Identifier, before: datetime) -> int:
    """Remove files in the table's folder that no snapshot refers to and that were last changed before a time.

    Files of a run that is going on belong to no snapshot yet: the time must lie before the longest run began.

    Returns:
        How many went.
    """
    # An object store is listed by Iceberg's own access to it: Spark may have no file system of that name.
    scheme = urlsplit(lake.load(identifier).location()).scheme
    statement = "remove_orphan_files(table => :table, older_than => :before, prefix_listing => :flat)"
    return len(_call(session, lake, statement, identifier, before=before, flat=scheme not in _FILE_SYSTEMS))


def _call(session: SparkSession, lake: Lake, procedure: str, identifier: Identifier, **values: object) -> list[Row]:
    """Call a procedure of Iceberg; names are quoted, values are parameters."""
    statement = f"CALL {quoted(lake.name)}.system.{procedure}"
    name = ".".join(quoted(part) for part in identifier)
    return session.sql(statement, args={"table": name, **values}).collect()
