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
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.refs import MAIN_BRANCH

from tidemark.errors import RetriableLakeError
from tidemark.lake.branches import BRINGS, KEPT_MARKER, MARKER, ancestry, head, marker
from tidemark.lake.commits import commit_files
from tidemark.lake.data_files import Partition, Target, Writer
from tidemark.lake.lake import Lake

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
    """Of the files that are written: see ``data_files.Target``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows that an edit is about."""

    files: int = 0
    rows: int = 0
    """That readers see."""
    skipped: int = 0
    """That are in the files although a delete hides them."""

    def __add__(self, other: Found) -> Found:
        return Found(files=self.files + other.files, rows=self.rows + other.rows, skipped=self.skipped + other.skipped)


NOTHING = Found()


def find(table: Table, edit: Edit, branch: str = MAIN_BRANCH) -> Found:
    """Return how many files and rows an edit concerns."""
    return sum((found for _, found in _touched(table, edit, branch)), NOTHING)


def apply(lake: Lake, table: Table, schema: pa.Schema, edit: Edit, branch: str = MAIN_BRANCH) -> Found:
    """Replace the files that hold the rows, in one commit that keeps the table's markers; return what was found.

    A second commit changes nothing: it leaves the entries of the replaced files, which have bounds of their values,
    to a snapshot that expires (``purging``).

    Raises:
        RetriableLakeError: a file has an older partition spec than the table.
    """
    table.refresh()
    touched = list(_touched(table, edit, branch))
    marks = markers(table, branch)
    if touched:
        target = lake.target(table, schema, plain=edit.plain, bounded=edit.bounded)
        writer = Writer(target)
        for task, _ in touched:
            _rewrite(table, task, edit, partial(_write, writer, target))
        replaced = [task.file for task, _ in touched]
        commit_files(table, writer.close(), replaced=replaced, summary=marks, branch=branch)
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


def _touched(table: Table, edit: Edit, branch: str) -> Iterator[tuple[FileScanTask, Found]]:
    scan = table.scan(row_filter=edit.where, snapshot_id=head(table, branch))
    for task in scan.plan_files():
        # Without its delete files, a task reads the rows that deletes hide too.
        every = sum(pc.sum(edit.holds(rows)).as_py() or 0 for rows in _rows(table, FileScanTask(task.file)))
        if every:
            _require_current_spec(table, task.file)
            seen = every
            if task.delete_files:
                seen = sum(pc.sum(edit.holds(rows)).as_py() or 0 for rows in _rows(table, task))
            yield task, Found(files=1, rows=seen, skipped=every - seen)


def _rows(table: Table, task: FileScanTask) -> Iterator[pa.RecordBatch]:
    return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_record_batches([task])


def _rewrite(table: Table, task: FileScanTask, edit: Edit, write: Callable[[Partition, pa.RecordBatch], None]) -> None:
    partition = tuple(task.file.partition[place] for place in range(len(task.file.partition)))
    for rows in _rows(table, task):
        holds = edit.holds(rows)
        write(partition, rows.filter(pc.invert(holds)))
        for other, instead in edit.instead(partition, rows.filter(holds)):
            write(other, instead)


def _write(writer: Writer, target: Target, partition: Partition, rows: pa.RecordBatch) -> None:
    if rows.num_rows:
        fitting = pa.Table.from_batches([rows]).select(target.schema.names).cast(target.schema)
        for batch in fitting.combine_chunks().to_batches():
            writer.write(partition, batch)


def _require_current_spec(table: Table, file: DataFile) -> None:
    if file.spec_id != table.metadata.default_spec_id:
        raise RetriableLakeError(
            f"{'.'.join(table.name())}: {file.file_path} has an older layout than the table. Rewrite the table's files "
            f"with Iceberg's `rewrite_data_files` (option `rewrite-all`), then run this again."
        )
