"""The rows that went and came in changed files (``lake.changed_rows``), as a frame."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import msgspec
import pyarrow as pa
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StructField, StructType

from tidemark.lake.changed_rows import SIDE, ChangedFile, FileReading, read, read_task
from tidemark.spark import on_workers

_FEW_BYTES = 8 << 20
"""Up to this size, changed rows are read in this process: workers of Spark would take longer to start."""

_MOST_TASKS = 256


def rows_of(
    session: SparkSession,
    filesystem: FileSystem,
    files: Sequence[ChangedFile],
    columns: Sequence[tuple[int, StructField]],
) -> DataFrame:
    """Return the rows that went and came in some files, with ``SIDE``; few are read in this process.

    Args:
        session: the session.
        filesystem: access to the files.
        files: as ``lake.changed_files`` gives them.
        columns: Iceberg's field id, and the name and type to return.
    """
    types = StructType([field for _, field in columns])
    ids = [number for number, _ in columns]
    reading = FileReading(filesystem=filesystem, fields=list(zip(ids, to_arrow_schema(types), strict=True)))
    schema = types.add(SIDE, IntegerType())
    if sum(file.size for file in files) <= _FEW_BYTES:
        rows = itertools.chain.from_iterable(read(reading, file) for file in files)
        return session.createDataFrame(pa.Table.from_batches(rows, reading.schema), schema)
    tasks = [msgspec.json.encode(file) for file in files]
    numbers = session.range(0, len(tasks), 1, min(len(tasks), _MOST_TASKS))
    return numbers.mapInArrow(on_workers.rows_of(tasks, partial(read_task, reading)), schema)
