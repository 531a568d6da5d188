"""Upkeep of one Iceberg table: fewer and larger files, fewer snapshots, no orphan files.

Iceberg's own procedures do the work in Spark. This module decides when, from metadata alone: the totals in the summary
of the newest snapshot, the list of manifests, the branches and tags. No function changes a row that readers of ``main``
or of a remaining tag can see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyspark.sql import Row, SparkSession

from tidemark.lake.branches import MARKER, ancestry
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import REWRITTEN_PROPERTY
from tidemark.lake.statistics import rows_in, total
from tidemark.text import quoted

MANY_FILES = 8
"""Data files from which on a rewrite is worthwhile, if they are small."""

SMALL_FILE = 64 * 1024 * 1024
"""Bytes. Data files are small if their average size is below it."""

MANY_DELETE_FILES = 5
"""Delete files from which on a rewrite is worthwhile: every reader of the table opens them all."""

MANY_MANIFESTS = 50
"""Manifests from which on a rewrite is worthwhile: the plan of every scan reads the list of them."""

_FILE_SYSTEMS = frozenset({"", "file", "hdfs"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Size(NamedTuple):
    """The files that ``main`` of a table consists of."""

    files: int
    delete_files: int
    bytes: int


def size_of(table: Table) -> Size:
    """Return the data files, delete files and the bytes of both, from the newest snapshot of ``main``."""
    names = ("total-data-files", "total-delete-files", "total-files-size")
    return Size(*(total(table, name) for name in names))


def is_crowded(size: Size) -> bool:
    """Return whether the data files of a table are many and small."""
    return size.files >= MANY_FILES and size.bytes < size.files * SMALL_FILE


def rewrite(session: SparkSession, lake: Lake, identifier: Identifier) -> None:
    """Rewrite small data files into larger ones, apply deletes to them, and rewrite manifests.

    What is below the limits of this module is left alone. But all files are rewritten once after the partitions or the
    sort order of the table changed. The new snapshots of ``main`` replace files and change no row.
    """
    table = lake.load(identifier)
    size, is_old = size_of(table), _has_old_layout(table)
    if is_old or is_crowded(size) or size.delete_files >= MANY_DELETE_FILES:
        options = f"map('min-input-files', '2', 'remove-dangling-deletes', 'true', 'rewrite-all', '{is_old}')".lower()
        strategy = "sort" if table.sort_order().fields else "binpack"
        rewriting = f"rewrite_data_files(table => :table, strategy => '{strategy}', options => {options})"
        _call(session, lake, rewriting, identifier)
    if is_old:
        with lake.load(identifier).transaction() as transaction:
            transaction.set_properties({REWRITTEN_PROPERTY: _layout_of(table)})
    size = size_of(lake.load(identifier))
    # A data file with deletes has at least one delete file: with one for each data file, a rewrite would gain nothing.
    if size.delete_files >= MANY_DELETE_FILES and size.delete_files > size.files:
        options = "map('min-input-files', '2')"
        _call(session, lake, f"rewrite_position_delete_files(table => :table, options => {options})", identifier)
    table = lake.load(identifier)
    snapshot = table.current_snapshot()
    if snapshot and len(snapshot.manifests(table.io)) >= MANY_MANIFESTS:
        _call(session, lake, "rewrite_manifests(table => :table)", identifier)


def _has_old_layout(table: Table) -> bool:
    """Return whether files were written before the partitions or the sort order became what they are."""
    snapshot = table.current_snapshot()
    if snapshot is None or not rows_in(table):
        return False
    live = (each for each in snapshot.manifests(table.io) if each.has_added_files() or each.has_existing_files())
    of_data = (each for each in live if each.content == ManifestContent.DATA)
    if any(each.partition_spec_id != table.metadata.default_spec_id for each in of_data):
        return True
    return bool(table.sort_order().fields) and table.properties.get(REWRITTEN_PROPERTY) != _layout_of(table)


def _layout_of(table: Table) -> str:
    return f"partitions {table.metadata.default_spec_id}, order {table.metadata.default_sort_order_id}"


def expire(session: SparkSession, lake: Lake, identifier: Identifier, before: datetime) -> int:
    """Expire the snapshots older than a time that nothing needs, and remove files that only they use.

    Some snapshots stay whatever their age:

    - the newest snapshot of each branch, and the snapshot of each tag;
    - the snapshots of a branch that are not on ``main``;
    - the snapshots of ``main`` down to the newest with a marker, because the marker says what the table holds.

    Returns:
        The number of expired snapshots.
    """
    ids = list(_expirable(lake.load(identifier), int(before.timestamp() * 1000)))
    if ids:
        # By id alone: by age, Iceberg would also expire every old snapshot that no branch or tag stands on.
        statement = "expire_snapshots(table => :table, snapshot_ids => :ids, older_than => :never)"
        _call(session, lake, statement, identifier, ids=ids, never=_EPOCH)
    return len(ids)


def _expirable(table: Table, before: int) -> Iterator[int]:
    """Yield the ids of the snapshots that may expire; ``before`` is in epoch ms."""
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
    """Return the ids of the snapshots of ``main`` down to the newest with a marker; none if there is no marker."""
    passed = []
    for snapshot in ancestry(table):
        passed.append(snapshot.snapshot_id)
        summary: Mapping[str, Any] = snapshot.summary.additional_properties if snapshot.summary else {}
        if any(name.startswith(MARKER) for name in summary):
            return passed
    return []


def remove_orphans(session: SparkSession, lake: Lake, identifier: Identifier, before: datetime) -> int:
    """Remove files in the table's folder that no snapshot uses and that were last changed before a time.

    The files of a running job belong to no snapshot yet. So the time must be before the oldest running job began.

    Returns:
        The number of removed files.
    """
    # Iceberg lists an object store by its own access to it: Spark may have no file system for that scheme.
    scheme = urlsplit(lake.load(identifier).location()).scheme
    statement = "remove_orphan_files(table => :table, older_than => :before, prefix_listing => :flat)"
    return len(_call(session, lake, statement, identifier, before=before, flat=scheme not in _FILE_SYSTEMS))


def _call(session: SparkSession, lake: Lake, procedure: str, identifier: Identifier, **values: object) -> list[Row]:
    """Call a procedure of Iceberg, and return its rows. Names are quoted, values are parameters."""
    statement = f"CALL {quoted(lake.name)}.system.{procedure}"
    name = ".".join(quoted(part) for part in identifier)
    return session.sql(statement, args={"table": name, **values}).collect()
