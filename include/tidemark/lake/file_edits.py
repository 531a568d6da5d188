"""Rewrites the data files of a table that hold certain rows, so that no byte of these rows stays in a live file.

Deletes of Iceberg leave the rows in the files: readers skip them. Here each file that holds such a row, skipped or not,
is replaced by a file without it. Nothing is collected: a file is read and written batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan, _read_deletes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.refs import MAIN_BRANCH

from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.lake.branches import BRINGS, KEPT_MARKER, MARKER, ancestry, head, marker
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import FileWriter, Partition, TableFolder
from tidemark.lake.lake import Lake

_READ = frozenset({FileFormat.PARQUET, FileFormat.ORC, FileFormat.PUFFIN})

Rows = Iterable[tuple[Partition, pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What is to be done with the rows of a table."""

    where: BooleanExpression
    """Selects files that may hold the rows, by their partitions and statistics."""
    holds: Callable[[pa.RecordBatch], pa.Array]
    """Returns for each row of a batch whether it is one of them; never null."""
    instead: Callable[[Partition, pa.RecordBatch], Rows] = lambda _partition, _rows: ()
    """Returns what takes the place of these rows, given their partition; nothing by default."""
    plain: Sequence[str] = ()
    bounded: Sequence[str] = ()
    """Of the files that are written: see ``data_files.TableFolder``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsFound:
    """The rows that an edit is about."""

    files: int = 0
    rows: int = 0
    """That readers see."""
    skipped: int = 0
    """That are in the files although a delete hides them."""

    def __add__(self, other: RowsFound) -> RowsFound:
        return RowsFound(
            files=self.files + other.files, rows=self.rows + other.rows, skipped=self.skipped + other.skipped
        )


NOTHING = RowsFound()


def find(table: Table, edit: Edit, branch: str = MAIN_BRANCH) -> RowsFound:
    """Return how many files and rows an edit concerns."""
    return sum((found for _, found in _touched(table, edit, branch)), NOTHING)


def obstacle(table: Table, edit: Edit, branch: str = MAIN_BRANCH) -> str | None:
    """Return why ``apply`` would refuse or fail; None if nothing is known to stop it.

    Only files that another engine wrote, or that are older than the table's partitions, are opened.
    """
    for task in _planned(table, edit, branch):
        if unreadable := _unreadable(table, task):
            return unreadable
        if _is_of_older_spec(table, task) and _holding(table, edit, FileScanTask(task.file)):
            return f"{_named(table, task.file)} has an older layout than the table"
    return None


def apply(lake: Lake, table: Table, schema: pa.Schema, edit: Edit, branch: str = MAIN_BRANCH) -> RowsFound:
    """Replace the files that hold the rows, in one commit that keeps the table's markers; return what was found.

    A second commit changes nothing: it leaves the entries of the replaced files, which have bounds of their values,
    to a snapshot that expires (``purging``).

    Raises:
        RetriableLakeError: a file has an older partition spec than the table; ``obstacle`` tells before.
        ConfigurationError: a file cannot be read.
    """
    table.refresh()
    touched = list(_touched(table, edit, branch))
    marks = markers(table, branch)
    replaced = [task.file for task, _ in touched]
    dangling = _dangling(table, replaced, branch)
    if touched or dangling:
        target = lake.folder_of(table, schema, plain=edit.plain, bounded=edit.bounded)
        writer = FileWriter(target)
        for task, _ in touched:
            _require_current_spec(table, task)
            _rewrite(table, task, edit, partial(_write, writer, target))
        files = writer.close()
        commit_files(table, files, replaced=replaced, dropped=dangling, summary=marks, branch=branch)
        table.refresh()
    commit_files(table, [], summary=marks or {f"{MARKER}edited": "yes"}, branch=branch)
    table.refresh()
    return sum((found for _, found in touched), NOTHING)


def markers(table: Table, branch: str = MAIN_BRANCH) -> dict[str, str]:
    """Return the newest value of each marker of a branch, by its whole name in the snapshot's summary."""
    names = {name.removeprefix(KEPT_MARKER) for name in table.properties if name.startswith(KEPT_MARKER)}
    for snapshot in ancestry(table, branch):
        entries = snapshot.summary.additional_properties if snapshot.summary else {}
        names |= {name.removeprefix(MARKER) for name in entries if name.startswith(MARKER) and name != BRINGS}
    return {MARKER + name: value for name in sorted(names) if (value := marker(table, name, branch)) is not None}


def _touched(table: Table, edit: Edit, branch: str) -> Iterator[tuple[FileScanTask, RowsFound]]:
    for task in _planned(table, edit, branch):
        if unreadable := _unreadable(table, task):
            raise ConfigurationError(f"{unreadable}. Rewrite the table's files as Parquet, then run this again")
        # Without its delete files, a task reads the rows that deletes hide too.
        every = _holding(table, edit, FileScanTask(task.file))
        if every:
            seen = _holding(table, edit, task) if task.delete_files else every
            yield task, RowsFound(files=1, rows=seen, skipped=every - seen)


def _planned(table: Table, edit: Edit, branch: str) -> Iterable[FileScanTask]:
    return table.scan(row_filter=edit.where, snapshot_id=head(table, branch)).plan_files()


def _holding(table: Table, edit: Edit, task: FileScanTask) -> int:
    return sum(pc.sum(edit.holds(rows)).as_py() or 0 for rows in _rows(table, task))


def _unreadable(table: Table, task: FileScanTask) -> str | None:
    """Return which file of a task PyIceberg cannot read; None if it can read all."""
    other = (file for file in (task.file, *task.delete_files) if file.file_format not in _READ)
    return next((f"{_named(table, file)} is {file.file_format.name}, which is not read here" for file in other), None)


def _dangling(table: Table, replaced: Sequence[DataFile], branch: str) -> list[DataFile]:
    """Return the delete files of a partitioned table that name none of its files but those that are replaced.

    They would stay for ever, and the name of a file that they have may have the value of a column in it.
    """
    snapshot = table.snapshot_by_name(branch)
    if snapshot is None or not any(spec.fields for spec in table.specs().values()):
        return []
    files = [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        if manifest.content is ManifestContent.DELETES
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    ]
    by_position = [file for file in files if file.content is DataFileContent.POSITION_DELETES]
    if not by_position:
        return []
    live = {task.file.file_path for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()}
    live -= {file.file_path for file in replaced}
    return [file for file in by_position if live.isdisjoint(_read_deletes(table.io, file))]


def _rows(table: Table, task: FileScanTask) -> Iterator[pa.RecordBatch]:
    return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_record_batches([task])


def _rewrite(table: Table, task: FileScanTask, edit: Edit, write: Callable[[Partition, pa.RecordBatch], None]) -> None:
    partition = tuple(task.file.partition[place] for place in range(len(task.file.partition)))
    for rows in _rows(table, task):
        holds = edit.holds(rows)
        write(partition, rows.filter(pc.invert(holds)))
        for other, instead in edit.instead(partition, rows.filter(holds)):
            write(other, instead)


def _write(writer: FileWriter, target: TableFolder, partition: Partition, rows: pa.RecordBatch) -> None:
    if rows.num_rows:
        fitting = pa.Table.from_batches([rows]).select(target.schema.names).cast(target.schema)
        for batch in fitting.combine_chunks().to_batches():
            writer.write(partition, batch)


def _is_of_older_spec(table: Table, task: FileScanTask) -> bool:
    return bool(task.file.spec_id != table.metadata.default_spec_id)


def _require_current_spec(table: Table, task: FileScanTask) -> None:
    if _is_of_older_spec(table, task):
        raise RetriableLakeError(
            f"{_named(table, task.file)} has an older layout than the table. Rewrite the table's files with Iceberg's "
            "`rewrite_data_files` (option `rewrite-all`), then run this again."
        )


def _named(table: Table, file: DataFile) -> str:
    return f"{'.'.join(table.name())}: {file.file_path}"
