"""Rows that differ between two snapshots, read from single files: positions, columns by field id, row groups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from tidemark.lake.changed_rows import SIDE, ChangedFile, FileReading, read

LOCATION = "s3://lake/data.parquet"
GROUP = 3


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Ten rows in groups of three, written before a column was renamed and another one widened."""
    schema = pa.schema([_field("before", pa.string(), 1), _field("n", pa.int32(), 2)])
    path = tmp_path / "data.parquet"
    rows = {"before": [f"r{number}" for number in range(10)], "n": list(range(10))}
    pq.write_table(pa.table(rows, schema), path, row_group_size=GROUP)
    return path


def _deletes(folder: Path, name: str, positions: Sequence[int]) -> str:
    """A file of position deletes, with positions of another data file too."""
    rows = {"file_path": [LOCATION, *([LOCATION] * len(positions))], "pos": [4, *positions]}
    rows["file_path"][0] = "s3://lake/other.parquet"
    pq.write_table(pa.table(rows, pa.schema([("file_path", pa.string()), ("pos", pa.int64())])), folder / name)
    return str(folder / name)


READING = FileReading(
    filesystem=pafs.LocalFileSystem(),
    fields=[
        (2, pa.field("n", pa.int64())), (7, pa.field("new", pa.decimal128(9, 2))), (1, pa.field("now", pa.string()))
    ],
)  # fmt: skip


def _read(data: Path, before: list[str] | None, after: list[str] | None) -> list[tuple[Any, ...]]:
    changed = ChangedFile(location=LOCATION, path=str(data), before=before, after=after, size=1)
    return [tuple(row.values()) for batch in read(READING, changed) for row in batch.to_pylist()]


def test_a_new_file_tells_rows_that_came_and_a_gone_one_rows_that_went(data: Path, tmp_path: Path) -> None:
    """But for those that deletes hide. Columns are found by field id: renamed, widened, or null where there is none."""
    deletes = [_deletes(tmp_path, "one", [9, 0])]
    came = [(number, None, f"r{number}", 1) for number in range(1, 9)]
    assert _read(data, None, deletes) == came
    assert _read(data, deletes, None) == [(*row[:3], -1) for row in came]
    assert len(_read(data, None, [])) == 10


def test_a_file_of_both_tells_what_other_deletes_changed(data: Path, tmp_path: Path) -> None:
    """Rows deleted since then went, rows that are not deleted any more came, the others are the same."""
    one, two = _deletes(tmp_path, "one", [1, 2]), _deletes(tmp_path, "two", [8, 2])
    assert _read(data, [one], [one, two]) == [(8, None, "r8", -1)]
    assert _read(data, [one], [two]) == [(1, None, "r1", 1), (8, None, "r8", -1)]
    assert _read(data, [one, two], []) == [(number, None, f"r{number}", 1) for number in (1, 2, 8)]
    assert _read(data, [one], [one]) == []


def test_row_groups_without_a_change_are_not_read(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large file, one changed row costs one row group."""
    groups: list[list[int]] = []
    original = pq.ParquetFile.iter_batches

    def counted(file: pq.ParquetFile, row_groups: list[int], **options: Any) -> Any:
        groups.append(row_groups)
        return original(file, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    assert _read(data, [], [_deletes(tmp_path, "one", [7])]) == [(7, None, "r7", -1)]
    assert groups == [[2]]


def test_a_file_without_any_of_the_columns_gives_nulls(data: Path) -> None:
    """Every column was added after the file was written: its rows are still returned."""
    reading = FileReading(filesystem=pafs.LocalFileSystem(), fields=[(9, pa.field("later", pa.string()))])
    changed = ChangedFile(location=LOCATION, path=str(data), before=None, after=[], size=1)
    rows = [row for batch in read(reading, changed) for row in batch.to_pylist()]
    assert rows == [{"later": None, SIDE: 1}] * 10
