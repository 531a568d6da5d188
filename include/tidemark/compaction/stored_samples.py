"""Stored rows as they were before a batch, read in this process: of a large table, those in some of its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.table import FileScanTask

from tidemark.compaction.candidate import Prepared
from tidemark.folding.frames import key_names
from tidemark.lake import changed_files, changed_rows
from tidemark.lake.changed_rows import FileReading
from tidemark.lake.statistics import upper_bound
from tidemark.positions import DELIVERY
from tidemark.tables.schemas import DELETED, POSITION
from tidemark.values import typed_values
from tidemark.values.image_reader import field

_ROWS, _ROWS_AN_EVENT = 200_000, 1
_BYTES, _BYTES_AN_EVENT = 8 << 20, 40
"""Most rows, and bytes of their files, that are read: so many, and so many more for each new event."""


def read(prepared: Prepared, numbers: Sequence[int], start: int) -> Iterator[pa.Table]:
    """Yield rows that events of the log wrote: keys as ``k0 .. kn``, their positions, and columns as ``c<n>``.

    Args:
        prepared: the table.
        numbers: of the columns; one that the table does not have is left out.
        start: the snapshot.
    """
    plan, table = prepared.plan, prepared.current()
    tasks = [task for task in table.scan(snapshot_id=start).plan_files() if _may_have_changes(prepared, task)]
    own = {**dict(zip(key_names(plan), plan.key_numbers, strict=True)), **{field(number): number for number in numbers}}
    ids = {each.name: each.field_id for each in table.schema().fields}
    columns = {name: plan.columns[number] for name, number in own.items()}
    stored = {name: (ids.get(plan.stored(column.name)), column.type) for name, column in columns.items()}
    fields = [
        (number, pa.field(name, typed_values.arrow_type(kind)))
        for name, (number, kind) in stored.items()
        if number is not None
    ]
    fields.append((ids[POSITION], pa.field(POSITION, pa.string())))
    if plan.soft:
        fields.append((ids[DELETED], pa.field(DELETED, pa.bool_())))
    reading = FileReading(filesystem=changed_files.file_system(table), fields=fields)
    for file in changed_files.whole(_some(tasks, plan.found.events, prepared.run.cut.number)):
        for batch in changed_rows.read(reading, file):
            yield pa.Table.from_batches([batch])


def are_older(rows: pa.Table, positions: pa.ChunkedArray) -> list[bool]:
    """Return which rows stand, written by events of the log before the ones at these positions.

    A row of a load may have the place where the load began, without a delivery (``folding.log_places``).
    """
    deleted = rows.column(DELETED).to_pylist() if DELETED in rows.schema.names else [False] * rows.num_rows
    compared = zip(rows.column(POSITION).to_pylist(), positions.to_pylist(), deleted, strict=True)
    return [
        not gone
        and at is not None
        and _is_change(at)
        and (DELIVERY in at or DELIVERY not in new)
        and at.split(DELIVERY)[0] < new.split(DELIVERY)[0]
        for at, new, gone in compared
    ]


def _is_change(position: str) -> bool:
    """Return whether a position has a place in the log (``folding.row_needs.is_placed``)."""
    return position.partition(".")[0][-1:] in {"1", "3", "5", "7", "9"}


def _may_have_changes(prepared: Prepared, task: FileScanTask) -> bool:
    """Return whether a data file can be read here, and may have rows that events of the log wrote."""
    greatest = upper_bound(prepared.table, [task.file], POSITION)
    readable = next(changed_files.not_parquet([task]), None) is None
    return readable and (greatest is None or _is_change(greatest))


def _some(tasks: Sequence[FileScanTask], events: int, cut: int) -> Iterator[FileScanTask]:
    """Yield all files where they are few; else as many as a batch is worth, beginning with another one in each cut."""
    rows, size = _ROWS + events * _ROWS_AN_EVENT, _BYTES + events * _BYTES_AN_EVENT
    first = cut % max(1, len(tasks))
    for task in [*tasks[first:], *tasks[:first]]:
        if task.file.record_count <= rows and task.file.file_size_in_bytes <= size:
            rows, size = rows - task.file.record_count, size - task.file.file_size_in_bytes
            yield task
