"""Removes from a table all snapshots but the newest, and physically every file that is not part of it.

Used after an erasure, while the source's lock is held: so no run of the source has files that are not committed yet.
Every file is named by the table's metadata, or lies within the table's own location; no folder is searched that other
tables may use as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import pyarrow.fs as pafs
import structlog
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemoveSnapshotRefUpdate

from tidemark.lake.names import is_fence
from tidemark.lake.stores import path_of, store_of
from tidemark.text import first_line

log = structlog.get_logger(__name__)

_METADATA_FILE = ".metadata.json"

_WITH_FOLDERS = frozenset({"local", "hdfs"})

_COMMITTED_BY_NOW = timedelta(hours=1)
"""Age from which on a data file belongs to no commit that is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What was removed of one table."""

    refs: tuple[str, ...] = ()
    snapshots: int = 0
    files: int = 0


def purge(table: Table, keep: str | None = None) -> Purged:
    """Remove every branch and tag but ``main`` and ``keep``, every snapshot that none of them stands on, and its files.

    A branch without rows that shuts out lost writers (``fences``) stays.

    A second call removes what the first one, cut short, left in the table's own location. The table must not be a copy
    that shares files with another (``copies``).
    """
    table.refresh()
    gone = sorted(name for name in table.refs() if name not in {MAIN_BRANCH, keep} and not is_fence(name))
    if gone:
        updates = tuple(RemoveSnapshotRefUpdate(ref_name=name) for name in gone)
        table.catalog.commit_table(table, (), updates)
        table.refresh()
    before = files_of(table)
    needed = {ref.snapshot_id for ref in table.refs().values()}
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id not in needed]
    if old:
        table.maintenance.expire_snapshots().by_ids(old).commit()
        table.refresh()
    removed = _remove_unused(table, before)
    log.info("purged", table=".".join(table.name()), refs=len(gone), snapshots=len(old), files=removed)
    return Purged(refs=tuple(gone), snapshots=len(old), files=removed)


def drop(table: Table) -> None:
    """Drop a table from the catalog, and delete all files that its snapshots consist of, which nothing else would find.

    The table must not be a copy that shares files with another (``copies``). If its own list of files is gone, only
    what the catalog has is dropped.
    """
    try:
        used = files_of(table)
    except FileNotFoundError as error:
        used = set()
        log.warning("dropped_without_its_files", table=".".join(table.name()), reason=first_line(error))
    table.catalog.drop_table(table.name())
    files, _ = store_of(table, table.location())
    there = [path for path in sorted(used) if files.get_file_info(path).type is pafs.FileType.File]
    for path in there:
        files.delete_file(path)
    _remove_empty_folders(table)
    log.info("dropped", table=".".join(table.name()), files=len(there))


def purge_shared(table: Table, owner: str) -> Purged:
    """Remove all snapshots but the newest of a table that others write meanwhile, and old data files of one owner.

    The table is partitioned by its owners alone. Data files that no snapshot has, of whomever, go once they are an hour
    old: a younger one may be of a commit that is under way. A second call removes what the first one, cut short, left.

    Raises:
        CommitFailedException: another commit was faster.
    """
    table.refresh()
    newest = table.current_snapshot()
    needed = {ref.snapshot_id for ref in table.refs().values()} | ({newest.snapshot_id} if newest else set())
    old = [each for each in table.metadata.snapshots if each.snapshot_id not in needed]
    kept = _data_files(table, [each for each in table.metadata.snapshots if each.snapshot_id in needed])
    known = _data_files(table, table.metadata.snapshots)
    gone = {path for path, of in known.items() if path not in kept and of == owner}
    # The files go first: once their snapshots are gone, nothing says whose they are.
    latest = datetime.now(UTC) - _COMMITTED_BY_NOW
    removed = 0
    for files, path in stored_data_files(table):
        if path in gone or (path not in known and files.get_file_info(path).mtime < latest):
            files.delete_file(path)
            removed += 1
    if old:
        table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in old]).commit()
        table.refresh()
    log.info("purged", table=".".join(table.name()), snapshots=len(old), files=removed)
    return Purged(snapshots=len(old), files=removed)


def stored_data_files(table: Table) -> list[tuple[pafs.FileSystem, str]]:
    """Return every data file in the folders of the table, used or not."""
    return [(files, path) for files, path in stored_files(table) if path.endswith(".parquet")]


def files_of(table: Table) -> set[str]:
    """Return the paths of all files that the table's snapshots consist of, in its file system."""
    return {path_of(table, location) for location in _used(table)}


def unknown_files(table: Table) -> list[str]:
    """Return the files beside those of the table in folders outside of its own that its properties name.

    They may be what a failed task or a purge left, or another table's. So nothing removes them.
    """
    used = files_of(table)
    return [path for _, path in _stored_in(table, _folders_elsewhere(table)) if path not in used]


def stored_files(table: Table) -> list[tuple[pafs.FileSystem, str]]:
    """Return every file in the folders of the table, used or not, but for Iceberg's metadata files."""
    return _stored_in(table, _folders(table))


def _stored_in(table: Table, folders: Iterable[str]) -> list[tuple[pafs.FileSystem, str]]:
    found = []
    for folder in dict.fromkeys(folders):
        files, path = store_of(table, folder)
        if files.get_file_info(path).type is pafs.FileType.NotFound:
            continue
        stored = files.get_file_info(pafs.FileSelector(path, recursive=True))
        paths = (info.path for info in stored if info.type is pafs.FileType.File)
        found += [(files, path) for path in paths if not path.endswith(_METADATA_FILE)]
    return found


def _remove_unused(table: Table, before: set[str]) -> int:
    """Delete the files that were part of the table ``before``, or lie in its folders, and are not part of it now."""
    used = files_of(table)
    stored = dict.fromkeys(path for _, path in stored_files(table))
    gone = [path for path in dict.fromkeys([*stored, *sorted(before)]) if path not in used]
    files, _ = store_of(table, table.location())
    removed = 0
    for path in gone:
        if path in stored or files.get_file_info(path).type is pafs.FileType.File:
            files.delete_file(path)
            removed += 1
    _remove_empty_folders(table)
    return removed


def _remove_empty_folders(table: Table) -> None:
    """Remove the folders within a table's own that hold no file: the name of one may have the value of a column in it.

    An object store has no folders.
    """
    for folder in dict.fromkeys(_folders(table)):
        files, path = store_of(table, folder)
        if files.type_name not in _WITH_FOLDERS or files.get_file_info(path).type is not pafs.FileType.Directory:
            continue
        stored = files.get_file_info(pafs.FileSelector(path, recursive=True))
        used = {str(parent) for info in stored if info.is_file for parent in PurePosixPath(info.path).parents}
        empty = {info.path for info in stored if info.type is pafs.FileType.Directory} - used
        for each in sorted(empty, reverse=True):  # a folder comes behind those in it
            files.delete_dir(each)


def _data_files(table: Table, snapshots: Iterable[Snapshot]) -> dict[str, str]:
    """Return the paths of the data files of snapshots, each with the first value of its partition."""
    return {
        path_of(table, entry.data_file.file_path): str(entry.data_file.partition[0])
        for snapshot in snapshots
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }


def _used(table: Table) -> Iterator[str]:
    for snapshot in table.metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            yield manifest.manifest_path
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield entry.data_file.file_path
    for statistics in table.metadata.statistics:
        yield statistics.statistics_path
    for partitions in table.metadata.partition_statistics:
        yield partitions.statistics_path


def _folders(table: Table) -> Iterator[str]:
    """Yield the folders that hold no file of another table: those within the table's own location."""
    location = table.location()
    yield from (f"{location}/data", f"{location}/metadata")
    yield from (folder for folder in _folders_named(table) if folder.startswith(f"{location}/"))


def _folders_elsewhere(table: Table) -> Iterator[str]:
    yield from (folder for folder in _folders_named(table) if not folder.startswith(f"{table.location()}/"))


def _folders_named(table: Table) -> list[str]:
    named = (table.properties.get(name, "").rstrip("/") for name in ("write.data.path", "write.metadata.path"))
    return [folder for folder in named if folder]
