"""The rows that are in one of two snapshots of a table and not in the other, read file by file.

Workers import this module, so it imports neither Spark nor PyIceberg.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

SIDE = "side"
"""Column of what is read: -1 for a row that went, 1 for a row that came."""

_FIELD_ID = b"PARQUET:field_id"

_Mask = npt.NDArray[np.bool_]


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file whose visible rows may differ between two snapshots."""

    location: str
    """As the table's metadata and delete files name it."""
    path: str
    """In the file system."""
    before: list[str] | None
    """Paths of the files with its position deletes in the snapshot before; None: the snapshot has no such file."""
    after: list[str] | None
    """Likewise of the snapshot after."""
    size: int
    """About how many bytes of the file the rows take that may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """What is read of the files; it can be pickled."""

    filesystem: pafs.FileSystem
    fields: Sequence[tuple[int, pa.Field]]
    """Columns: Iceberg's field id, and the name and type to return. A file without the column gives null."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of what is read."""
        return pa.schema([*(field for _, field in self.fields), pa.field(SIDE, pa.int32())])


def read(reading: FileReading, changed: ChangedFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file that went or came, with ``SIDE``."""
    gone_before = _deleted(reading, changed.location, changed.before)
    gone_after = _deleted(reading, changed.location, changed.after)
    with reading.filesystem.open_input_file(changed.path) as source, pq.ParquetFile(source) as file:
        places = _places(file, reading)
        groups = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        start = 0
        for number, size in enumerate(groups):
            alive = (_alive(gone_before, start, size), _alive(gone_after, start, size))
            side = np.subtract(alive[1], alive[0], dtype=np.int32)
            start += size
            if side.any():
                yield from _rows(reading, file, number, places, side)


def read_task(reading: FileReading, task: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, which a task names as JSON."""
    return read(reading, msgspec.json.decode(task, type=ChangedFile))


def _rows(
    reading: FileReading, file: pq.ParquetFile, group: int, places: Sequence[str | None], side: npt.NDArray[np.int32]
) -> Iterator[pa.RecordBatch]:
    names = [name for name in places if name is not None]
    start = 0
    # Without a column, a batch would not tell how many rows it has.
    for batch in file.iter_batches(row_groups=[group], columns=names or None):
        sides = side[start : start + batch.num_rows]
        start += batch.num_rows
        if not sides.any():
            continue
        found = batch.filter(pa.array(sides != 0))
        columns = [
            pa.nulls(found.num_rows, field.type) if name is None else found.column(name).cast(field.type)
            for name, (_, field) in zip(places, reading.fields, strict=True)
        ]
        yield pa.record_batch([*columns, pa.array(sides[sides != 0])], schema=reading.schema)


def _places(file: pq.ParquetFile, reading: FileReading) -> list[str | None]:
    """Return the name that each column has in a file; None for a column that the file does not have."""
    found = {int((field.metadata or {}).get(_FIELD_ID, -1)): field.name for field in file.schema_arrow}
    return [found.get(number) for number, _ in reading.fields]


def _deleted(reading: FileReading, location: str, paths: Sequence[str] | None) -> npt.NDArray[np.int64] | None:
    """Return the positions of the rows of a data file that delete files name; None where there is no data file."""
    if paths is None:
        return None
    found = [
        pq.read_table(path, columns=["pos"], filters=pc.field("file_path") == location, filesystem=reading.filesystem)
        for path in paths
    ]
    return np.sort(np.concatenate([np.empty(0, np.int64), *(each.column("pos").to_numpy() for each in found)]))


def _alive(deleted: npt.NDArray[np.int64] | None, start: int, size: int) -> _Mask:
    """Return which of the rows ``start`` to ``start + size`` of a file a snapshot shows."""
    if deleted is None:
        return np.zeros(size, np.bool_)
    alive = np.ones(size, np.bool_)
    first, last = np.searchsorted(deleted, [start, start + size])
    alive[deleted[first:last] - start] = False
    return alive
