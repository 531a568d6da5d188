"""Rows are taken out of data files, and nothing but these rows: values, columns and markers stay, old files go."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.types import StringType

from support.running import die_at
from tidemark.errors import ConfigurationError
from tidemark.lake import file_edits, purging
from tidemark.lake.branches import MARKER, branch_from_main, fast_forward, head, marker
from tidemark.lake.commits import commit_files
from tidemark.lake.file_edits import Edit
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import TABLE_PROPERTIES

SCHEMA = pa.schema([
    ("id", pa.int64()), ("small", pa.int32()), ("amount", pa.decimal128(38, 10)), ("day", pa.date32()),
    ("at", pa.timestamp("us")), ("instant", pa.timestamp("us", "UTC")), ("bytes", pa.binary()), ("text", pa.string()),
    ("yes", pa.bool_()), ("ratio", pa.float32()), ("exact", pa.float64()), ("part", pa.string()),
    ("names", pa.list_(pa.string())), ("versions", pa.map_(pa.string(), pa.string())),
])  # fmt: skip


def _row(number: int, part: str) -> dict[str, object]:
    return {
        "id": number, "small": number, "amount": Decimal("1234567890123456789.1234567891") + number,
        "day": date(2026, 1, 1), "at": datetime(1969, 12, 31, 23, 59, 59, 1),  # noqa: DTZ001  a time without a zone
        "instant": datetime(2026, 1, 1, tzinfo=UTC),
        "bytes": b"\x00\xff", "text": f"row {number} \x00 ä", "yes": number % 2 == 0, "ratio": 1.5, "exact": 0.1,
        "part": part, "names": ["a", None], "versions": [("", "1"), ("x", None)],
    }  # fmt: skip


def _rows(lake: Lake, identifier: Identifier) -> list[dict[str, object]]:
    return sorted(lake.load(identifier).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def _edit(number: int) -> Edit:
    def holds(rows: pa.RecordBatch) -> pa.Array:
        return pc.fill_null(pc.equal(rows.column("id"), number), fill_value=False)

    return Edit(where=AlwaysTrue(), holds=holds, plain=("versions",))


def _table(lake: Lake, name: str) -> Identifier:
    """A partitioned table of four rows in two files, with a marker, and a column that came later."""
    identifier = Identifier("edited", name)
    schema = assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(SCHEMA))
    table = lake.ensure(identifier, schema, TABLE_PROPERTIES, partition_by=["part"])
    for part, numbers in (("a", (1, 2)), ("b", (3, 4))):
        table.append(pa.Table.from_pylist([_row(number, part) for number in numbers], schema=SCHEMA))
    with table.update_schema() as update:
        update.add_column("late", StringType()).rename_column("small", "little")
    commit_files(table, [], summary={MARKER + "batch": "7"})
    table = lake.load(identifier)
    table.manage_snapshots().create_tag(head(table), "cut_1").commit()
    return identifier


def _stored(lake: Lake, identifier: Identifier) -> list[Path]:
    return sorted(Path(lake.load(identifier).location().removeprefix("file://")).rglob("*.parquet"))


def test_only_the_rows_go_and_their_bytes_with_them(lake: Lake) -> None:
    """Rows of every type stay as they were; the file with the row goes, also from a tag; the other file stays."""
    identifier = _table(lake, "types")
    before, files = _rows(lake, identifier), _stored(lake, identifier)
    table = branch_from_main(lake.load(identifier), "candidate_2")
    schema = table.schema().as_arrow()
    found = file_edits.apply(lake, table, schema, _edit(2), "candidate_2")
    assert (found.files, found.rows, found.skipped) == (1, 1, 0)
    assert _rows(lake, identifier) == before
    fast_forward(lake.load(identifier), "candidate_2", "cut_2")
    assert _rows(lake, identifier) == [row for row in before if row["id"] != 2]
    purged = purging.purge(lake.load(identifier), "cut_2")
    assert purged.refs == ("cut_1",)
    table = lake.load(identifier)
    assert _rows(lake, identifier) == [row for row in before if row["id"] != 2]
    assert (marker(table, "batch"), len(table.metadata.snapshots), sorted(table.refs())) == ("7", 1, ["cut_2", "main"])
    left = _stored(lake, identifier)
    assert len(left) == 2
    assert len(set(left) & set(files)) == 1
    assert not any(2 in pq.ParquetFile(path).read()["id"].to_pylist() for path in left)


def test_the_folder_of_a_partition_that_is_empty_goes(lake: Lake) -> None:
    """Its name has the value of a column; a folder that holds a file stays."""
    identifier = _table(lake, "folders")
    folder = _stored(lake, identifier)[0].parent.parent
    assert sorted(path.name for path in folder.iterdir()) == ["part=a", "part=b"]
    for number in (1, 2):
        table = lake.load(identifier)
        file_edits.apply(lake, table, table.schema().as_arrow(), _edit(number))
    purging.purge(lake.load(identifier))
    assert [path.name for path in folder.iterdir()] == ["part=b"]
    assert [row["id"] for row in _rows(lake, identifier)] == [3, 4]


def test_an_edit_that_finds_nothing_changes_no_row(lake: Lake) -> None:
    """No file is written for rows that are not there, and markers go on."""
    identifier = _table(lake, "nothing")
    files, before = _stored(lake, identifier), _rows(lake, identifier)
    table = lake.load(identifier)
    assert file_edits.find(table, _edit(9)) == file_edits.NOTHING
    file_edits.apply(lake, table, table.schema().as_arrow(), _edit(9))
    assert (_stored(lake, identifier), _rows(lake, identifier)) == (files, before)
    assert marker(lake.load(identifier), "batch") == "7"


def test_a_killed_purge_is_finished_by_the_next(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a purge that was cut short left in the table's folders goes with the next."""
    identifier = _table(lake, "killed")
    table = lake.load(identifier)
    file_edits.apply(lake, table, table.schema().as_arrow(), _edit(2))
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.lake.purging.stored_files", 1)
        with pytest.raises(SystemExit):
            purging.purge(lake.load(identifier))
    assert len(_stored(lake, identifier)) == 3
    purging.purge(lake.load(identifier))
    assert len(_stored(lake, identifier)) == 2
    assert [row["id"] for row in _rows(lake, identifier)] == [1, 3, 4]


def test_files_in_a_folder_elsewhere_are_told_and_stay(lake: Lake, tmp_path: Path) -> None:
    """Another table may have them: a folder outside of the table's own is looked at, and nothing there is removed."""
    identifier = _table(lake, "elsewhere")
    assert purging.unknown_files(lake.load(identifier)) == []
    with lake.load(identifier).transaction() as transaction:
        transaction.set_properties({"write.data.path": str(tmp_path)})
    table = lake.load(identifier)
    table.append(pa.Table.from_pylist([_row(5, "a")], schema=SCHEMA).rename_columns({"small": "little"}))
    left = tmp_path / "part=a" / "left.parquet"
    left.write_bytes(b"of a failed task")
    purging.purge(lake.load(identifier))
    assert purging.unknown_files(lake.load(identifier)) == [str(left)]
    assert left.exists()
    assert 5 in [row["id"] for row in _rows(lake, identifier)]


def test_what_an_edit_cannot_rewrite_is_known_before(lake: Lake) -> None:
    """A file with the row that is older than the partitions, or of a format that is not read; no other file matters."""
    identifier = _table(lake, "obstacles")
    table = lake.load(identifier)
    assert file_edits.obstacle(table, _edit(2)) is None
    with table.update_spec() as update:
        update.add_identity("id")
    table.append(pa.Table.from_pylist([_row(5, "a")], schema=SCHEMA).rename_columns({"small": "little"}))
    assert "has an older layout than the table" in (file_edits.obstacle(table, _edit(2)) or "")
    assert file_edits.obstacle(table, _edit(5)) is None
    assert file_edits.find(table, _edit(2)).rows == 1
    other = _table(lake, "avro")
    table = lake.load(other)
    (file, *_) = (task.file for task in table.scan().plan_files())
    avro = DataFile.from_args(**{name: getattr(file, name) for name in _KEPT}, file_format=FileFormat.AVRO)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        snapshot.append_data_file(avro)
    assert "is AVRO, which is not read here" in (file_edits.obstacle(table, _edit(9)) or "")
    with pytest.raises(ConfigurationError, match="is AVRO, which is not read here"):
        file_edits.find(table, _edit(9))


_KEPT = ("content", "file_path", "partition", "record_count", "file_size_in_bytes", "spec_id")
"""Fields of a data file that this test takes from another one."""
