"""Data files of append-only tables, written by the workers that make the rows.

A task writes Parquet where it decodes, and returns what the commit must know about each file: no row passes through the
JVM (docs/adr/0010). ``Lake.append_files`` commits all files or none. The files of a failed task belong to no snapshot.
Nothing here imports Spark or PyIceberg.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

ROW_GROUP_BYTES = 32 << 20
"""Arrow bytes of rows that are written together: the most that one open file holds in memory."""

HELD_BYTES = 128 << 20
"""Arrow bytes of rows that all open files of a writer may hold in memory. Beyond that, the fullest file is flushed."""

FILE_BYTES = 512 << 20
"""Arrow bytes after which a new file begins, so that several readers can later share the work."""

OPEN_FILES = 64
"""Files that are open at the same time. A dump with more partitions closes files early, and has more of them."""

Partition = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFolder:
    """The folder where workers write and read files of a table, with the access to it; it can be pickled."""

    filesystem: pafs.FileSystem
    folder: str
    """Path of the folder in ``filesystem``."""
    location: str
    """Location of the folder, as the table's metadata writes it."""
    schema: pa.Schema
    """Schema of the files, with Iceberg's field ids."""
    plain: frozenset[str] = frozenset()
    """Columns whose values hardly repeat: they get no dictionary and no statistics."""
    bounded: frozenset[str] = frozenset()
    """Columns of ``plain`` that get statistics all the same, because readers select ranges of their values."""


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """One closed data file."""

    location: str
    size: int
    """Bytes."""
    partition: Partition
    footer: bytes
    """The file's Parquet metadata, so that nobody has to read it again."""


class FileWriter:
    """A writer of the rows of one task, with at most one open file for each partition."""

    def __init__(self, target: TableFolder) -> None:
        self._target = target
        self._open: dict[Partition, _File] = {}
        self._written: list[WrittenFile] = []

    def write(self, partition: Partition, rows: pa.RecordBatch) -> None:
        """Add rows of one partition. They have the columns of the target's schema."""
        file = self._open.pop(partition, None)
        if file is None:
            if len(self._open) >= OPEN_FILES:
                self._close(next(iter(self._open)))
            file = _File(self._target)
        self._open[partition] = file  # the file that was written last comes last
        file.write(rows)
        if file.size >= FILE_BYTES:
            self._close(partition)
        if sum(each.held for each in self._open.values()) > HELD_BYTES:
            max(self._open.values(), key=lambda each: each.held).flush()

    def close(self) -> list[WrittenFile]:
        """Close every file, and return all files that were written."""
        for partition in list(self._open):
            self._close(partition)
        return self._written

    def hand_over(self, to: FileWriter) -> list[WrittenFile]:
        """Close every file, and return all files that were written.

        Rows of partitions that have no file yet are passed to another writer.
        """
        for partition, file in list(self._open.items()):
            if not file.begun:
                for rows in self._open.pop(partition).pending:
                    to.write(partition, rows)
        return self.close()

    def discard(self) -> None:
        """Drop all rows, and delete every file."""
        self._open = {partition: file for partition, file in self._open.items() if file.begun}
        remove(self.close(), self._target)

    def _close(self, partition: Partition) -> None:
        self._written.append(self._open.pop(partition).close(partition))


def remove(files: Iterable[WrittenFile], target: TableFolder) -> None:
    """Delete files that no snapshot has."""
    for file in files:
        target.filesystem.delete_file(f"{target.folder}/{file.location.rpartition('/')[2]}")


class _File:
    """One file of a partition. It is created with its first row group; until then its rows are in memory only."""

    def __init__(self, target: TableFolder) -> None:
        self._target = target
        self._name = f"{uuid.uuid4()}.parquet"
        self._output: tuple[pa.NativeFile, pq.ParquetWriter] | None = None
        self.held = 0
        self.pending: list[pa.RecordBatch] = []
        self.size = 0

    @property
    def begun(self) -> bool:
        return self._output is not None

    def write(self, rows: pa.RecordBatch) -> None:
        self.pending.append(rows)
        self.held += rows.nbytes
        self.size += rows.nbytes
        if self.held >= ROW_GROUP_BYTES:
            self.flush()

    def close(self, partition: Partition) -> WrittenFile:
        stream, writer = self.flush()
        writer.close()
        size = stream.tell()
        stream.close()
        footer = io.BytesIO()
        writer.writer.metadata.write_metadata_file(footer)
        location = f"{self._target.location}/{self._name}"
        return WrittenFile(location=location, size=size, partition=partition, footer=footer.getvalue())

    def flush(self) -> tuple[pa.NativeFile, pq.ParquetWriter]:
        self._output = self._output or self._begin()
        if self.pending:
            arrays = (pa.chunked_array(columns) for columns in zip(*self.pending, strict=True))
            self._output[1].write_table(pa.Table.from_arrays(list(arrays), schema=self._target.schema))
        self.pending, self.held = [], 0
        return self._output

    def _begin(self) -> tuple[pa.NativeFile, pq.ParquetWriter]:
        target = self._target
        repeated = [_leaf(field) for field in target.schema if field.name not in target.plain]
        measured = [*repeated, *target.bounded]
        stream = target.filesystem.open_output_stream(f"{target.folder}/{self._name}")
        writer = pq.ParquetWriter(
            stream, target.schema, compression="zstd", use_dictionary=repeated, write_statistics=measured
        )
        return stream, writer


def _leaf(field: pa.Field) -> str:
    """Return the name of the only Parquet column of a field."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else str(field.name)
