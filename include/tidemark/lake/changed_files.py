"""The data files in which two snapshots of a table may have other rows, from metadata alone.

What differs between two snapshots is in data files that only one of them has, and in files that both have with other
position deletes. ``changed_rows`` reads the rows. So the cost follows what was changed, not the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyarrow.fs import FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.table import FileScanTask, Table

from tidemark.errors import ConfigurationError
from tidemark.lake.changed_rows import ChangedFile
from tidemark.lake.stores import store_of


def between(table: Table, before: int | None, after: int) -> Sequence[ChangedFile]:
    """Return the files in which rows may differ between two snapshots; ``before`` None: nothing was there.

    Raises:
        ConfigurationError: a file is no Parquet file.
    """
    was = {} if before is None else _tasks(table, before)
    now = _tasks(table, after)
    paths = [path for path in {**was, **now} if _deletes(was.get(path)) != _deletes(now.get(path))]
    changed = [(was.get(path), now.get(path)) for path in paths]
    for file in not_parquet(task for either in changed for task in either if task):
        raise ConfigurationError(
            f"{file.file_path}: a feed reads Parquet alone. Rewrite the table's files with Iceberg's "
            "`rewrite_data_files` (option `rewrite-all`), or leave `feed` out"
        )
    return [_changed(*either) for either in changed]


def whole(tasks: Iterable[FileScanTask]) -> list[ChangedFile]:
    """Return Parquet files of a snapshot, to read all their rows that it shows."""
    return [_changed(None, task) for task in tasks]


def not_parquet(tasks: Iterable[FileScanTask]) -> Iterator[DataFile]:
    """Yield the files that ``changed_rows`` cannot read, delete files among them."""
    for task in tasks:
        for file in (task.file, *task.delete_files):
            if file.file_format is not FileFormat.PARQUET:
                yield file


def file_system(table: Table) -> FileSystem:
    """Return the access to a table's files, which can be pickled."""
    return store_of(table, table.location())[0]


def _tasks(table: Table, snapshot: int) -> Mapping[str, FileScanTask]:
    return {task.file.file_path: task for task in table.scan(snapshot_id=snapshot).plan_files()}


def _deletes(task: FileScanTask | None) -> frozenset[str] | None:
    """Return the delete files of a data file; None for no data file."""
    return None if task is None else frozenset(file.file_path for file in task.delete_files)


def _changed(was: FileScanTask | None, now: FileScanTask | None) -> ChangedFile:
    either = now or was
    if either is None:
        raise ValueError("a file is in one of the snapshots")
    rows = either.file.record_count
    if was and now:
        counts = {file.file_path: file.record_count for task in (was, now) for file in task.delete_files}
        rows = min(rows, sum(counts.values()))
    location = either.file.file_path
    return ChangedFile(
        location=location,
        path=_path(location),
        before=_paths(was),
        after=_paths(now),
        size=either.file.file_size_in_bytes * rows // max(1, either.file.record_count),
    )


def _paths(task: FileScanTask | None) -> list[str] | None:
    return None if task is None else sorted(_path(file.file_path) for file in task.delete_files)


def _path(location: str) -> str:
    return PyArrowFileIO.parse_location(location)[2]
