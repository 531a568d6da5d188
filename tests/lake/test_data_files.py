"""Data files that workers write are Iceberg's own: ids, partitions, statistics, and all of a commit or nothing."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tidemark.lake import data_files
from tidemark.lake.branches import marker
from tidemark.lake.data_files import FileWriter, TableFolder, WrittenFile
from tidemark.lake.filters import above
from tidemark.lake.lake import Lake
from tidemark.lake.properties import LOG_PROPERTIES

SCHEMA = pa.schema(
    [("batch", pa.int32()), ("name", pa.string()), ("tags", pa.list_(pa.string())), ("value", pa.binary())]
)


def rows(batch: int, *names: str | None) -> pa.RecordBatch:
    """Rows of ``SCHEMA``."""
    records = [{"batch": batch, "name": name, "tags": [name], "value": (name or "").encode()} for name in names]
    return pa.RecordBatch.from_pylist(records, schema=SCHEMA)


def local(folder: Path) -> TableFolder:
    """A target without a table."""
    return TableFolder(filesystem=pafs.LocalFileSystem(), folder=str(folder), location=folder.as_uri(), schema=SCHEMA)


def test_a_partition_is_one_file_however_its_rows_come(tmp_path: Path) -> None:
    """Rows of two partitions that take turns end up in two files, in their order."""
    writer = FileWriter(local(tmp_path))
    for name in "abc":
        writer.write((1, "x"), rows(1, name))
        writer.write((2, None), rows(2, name, name))
    written = {file.partition: file for file in writer.close()}
    assert set(written) == {(1, "x"), (2, None)}
    read = pq.read_table(_path(written[1, "x"].location))
    assert read.column("name").to_pylist() == ["a", "b", "c"]
    assert written[2, None].size == Path(_path(written[2, None].location)).stat().st_size


def test_columns_that_repeat_themselves_have_dictionaries_and_statistics(tmp_path: Path) -> None:
    """Lists too; what is said to be plain has neither."""
    writer = FileWriter(replace(local(tmp_path), plain=frozenset({"value"})))
    writer.write((1,), rows(1, *"aabbb"))
    group = pq.read_metadata(_path(writer.close()[0].location)).row_group(0)
    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    assert {path for path, column in columns.items() if column.has_dictionary_page} == {*columns} - {"value"}
    assert {path for path, column in columns.items() if column.is_stats_set} == {*columns} - {"value"}


def test_files_and_row_groups_end_where_they_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds one row group of a partition, and a large partition is several files."""
    size = rows(1, "a", "b").nbytes
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 2 * size)
    monkeypatch.setattr(data_files, "FILE_BYTES", 4 * size)
    writer = FileWriter(local(tmp_path))
    for _ in range(9):
        writer.write((1,), rows(1, "a", "b"))
    files = [pq.ParquetFile(_path(file.location)) for file in writer.close()]
    assert [file.metadata.num_row_groups for file in files] == [2, 2, 1]
    assert sum(file.metadata.num_rows for file in files) == 18


def test_memory_does_not_grow_with_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many partitions whose rows take turns, the one that holds most is written when all hold too much."""
    size = rows(1, "a", "b").nbytes
    monkeypatch.setattr(data_files, "HELD_BYTES", 5 * size)
    writer = FileWriter(local(tmp_path))
    for batch in (1, 2, 3, 2, 2):
        writer.write((batch,), rows(batch, "a", "b"))
    assert list(tmp_path.iterdir()) == []
    writer.write((4,), rows(4, "a", "b"))
    assert len(list(tmp_path.iterdir())) == 1
    for batch in (2, 1):
        writer.write((batch,), rows(batch, "c", "d"))
    files = {file.partition[0]: pq.ParquetFile(_path(file.location)) for file in writer.close()}
    assert {batch: file.metadata.num_row_groups for batch, file in files.items()} == {1: 1, 2: 2, 3: 1, 4: 1}
    assert files[2].read().column("name").to_pylist() == ["a", "b"] * 3 + ["c", "d"]


def test_rows_without_a_file_are_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits in memory joins another writer's file, a larger partition has files of its own; each row once."""
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 2 * rows(1, "a").nbytes)
    writer, other = FileWriter(local(tmp_path)), FileWriter(local(tmp_path))
    other.write((1,), rows(1, "z"))
    for name in "abc":
        writer.write((2,), rows(2, name))
    writer.write((1,), rows(1, "y"))
    own, others = writer.hand_over(other), other.close()
    assert [_names(file) for file in own] == [["a", "b", "c"]]
    assert [_names(file) for file in others] == [["z", "y"]]
    assert len(list(tmp_path.iterdir())) == 2


def test_discarded_rows_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither files that were closed stay, nor those that were begun, nor rows in memory."""
    size = rows(1, "a").nbytes
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 2 * size)
    monkeypatch.setattr(data_files, "FILE_BYTES", 4 * size)
    writer = FileWriter(local(tmp_path))
    for name in "abcdefg":
        writer.write((1,), rows(1, name))
    writer.write((2,), rows(2, "a"))
    assert len(list(tmp_path.iterdir())) == 2
    writer.discard()
    assert not list(tmp_path.iterdir())


def test_dumps_of_many_tables_keep_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message may name any table: the number of open files has a limit, and no row is lost by it."""
    monkeypatch.setattr(data_files, "OPEN_FILES", 3)
    writer = FileWriter(local(tmp_path))
    for round_ in range(2):
        for name in "abcdefgh":
            writer.write((name,), rows(round_, name))
    written = writer.close()
    assert len(written) == 16
    read = [pq.read_table(_path(file.location)).column("name").to_pylist() for file in written]
    assert sorted(name for names in read for name in names) == sorted("abcdefgh" * 2)


@pytest.mark.spark
def test_committed_files_are_read_by_every_engine(lake: Lake, spark: SparkSession) -> None:
    """PyIceberg and Spark read what was committed, prune by partition, and find the marker in the same snapshot."""
    name = ("raw", f"files_{uuid.uuid4().hex[:8]}")
    table = lake.ensure(name, SCHEMA, LOG_PROPERTIES, partition_by=["batch", "name"])
    for batch in (1, 2):
        writer = FileWriter(lake.folder_of(table, SCHEMA, plain=["value"]))
        for partition in ("a", "ä 'quoted' / ../x", None):
            writer.write((batch, partition), rows(batch, partition, partition))
        lake.append_files(table, writer.close(), {"batch": str(batch)})
    table = lake.load(name)
    assert marker(table, "batch") == "2"
    assert table.scan(row_filter=above("batch", 1)).to_arrow().num_rows == 6
    assert len(list(table.scan(row_filter=above("batch", 1)).plan_files())) == 3
    read = [
        tuple(row) for row in spark.table(lake.spark_name(name)).where("batch = 2").select("name", "tags").collect()
    ]
    expected = [("a", ["a"]), ("ä 'quoted' / ../x", ["ä 'quoted' / ../x"]), (None, [None])]
    assert sorted(read, key=str) == sorted(expected * 2, key=str)


@pytest.mark.spark
def test_a_commit_replaces_what_an_aborted_attempt_left(lake: Lake) -> None:
    """The rows that are replaced go in the same snapshot in which the new ones come."""
    name = ("raw", f"files_{uuid.uuid4().hex[:8]}")
    table = lake.ensure(name, SCHEMA, LOG_PROPERTIES, partition_by=["batch", "name"])
    for attempt in ("first", "second"):
        writer = FileWriter(lake.folder_of(table, SCHEMA))
        writer.write((1, "kept"), rows(1, "kept"))
        writer.write((2, attempt), rows(2, attempt))
        files = writer.close()
        lake.append_files(table, files if attempt == "first" else files[1:], {}, instead_of=above("batch", 1))
    assert sorted(lake.load(name).scan().to_arrow().column("name").to_pylist()) == ["kept", "second"]


def _names(file: WrittenFile) -> list[str]:
    names: list[str] = pq.read_table(_path(file.location)).column("name").to_pylist()
    return names


def _path(location: str) -> str:
    return location.removeprefix("file://")
