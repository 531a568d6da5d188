"""Partitions, sort order and properties of published tables: what the source file declares, and what owners change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.rounds import PROVING
from support.running import assert_ledgers_close, run_all
from tidemark.compaction import row_writing
from tidemark.lake.lake import Lake
from tidemark.lake.properties import STATE_PROPERTIES
from tidemark.pipeline import run_stage
from tidemark.queries import sql
from tidemark.sources.model import Source
from tidemark.stages import REBUILD

pytestmark = [pytest.mark.spark, pytest.mark.more]

DECLARED, OWNERS, LATER = Table("declared"), Table("owners"), Table("later")
BEGUN, WRONG, KEPT = Table("begun"), Table("wrong"), Table("kept")
COLUMNS = {"id": "long", "name": "string", "note": "timestamp"}
LAYOUT = {
    "partition": ["month(note)", "bucket(4, id)"],
    "sort": ["name desc", "id"],
    "properties": {"write.target-file-size-bytes": 1048576, "comment": "orders of the shop"},
}
JANUARY, MARCH, MAY = "2026-01-31 10:00:00", "2026-03-01 00:00:00", "2026-05-05 05:05:05"


def _source(landing: Path, *, without: Sequence[str] = (), **layouts: Any) -> Source:
    tables = {"declared": LAYOUT, "wrong": {"partition": ["month(id)"]}, "owners": None, "later": None, "begun": LAYOUT}
    tables |= {"kept": None, **layouts}
    fields = {
        "source": "laid_out",
        "format": "debezium_json",
        "landing": str(landing / "*"),
        "max_deletes": 1,
        "tables": {
            f"shop.{name}": {"key": ["id"], "columns": COLUMNS, "layout": layout} for name, layout in tables.items()
        },
    }
    fields["tables"]["shop.kept"] |= {"history": True, "exclude": without}
    return Source.model_validate(fields)


def _spec(table: IcebergTable) -> list[str]:
    schema = table.schema()
    return [f"{field.transform}({schema.find_column_name(field.source_id)})" for field in table.spec().fields]


def _order(table: IcebergTable) -> list[str]:
    schema = table.schema()
    fields = table.sort_order().fields
    return [
        f"{schema.find_column_name(each.source_id)} {each.direction.name} {each.null_order.name}" for each in fields
    ]


def _specs_of_files(table: IcebergTable) -> set[int]:
    return {task.file.spec_id for task in table.scan().plan_files()}


def _rows(lake: Lake, spark: SparkSession, table: str) -> dict[int, tuple[str, str]]:
    """The rows, which Spark, PyIceberg and DuckDB have to read alike; a key is there once."""
    columns = "id, name, CAST(note AS string) AS note"
    by_spark = spark.table(lake.spark_name(("laid_out", table))).selectExpr(*columns.split(", ")).collect()
    by_duckdb = sql.query(lake, f"SELECT {columns} FROM laid_out.{table}").to_pylist()  # noqa: S608  a test's own
    scanned = lake.load(("laid_out", table)).scan().to_arrow().to_pylist()
    readings = [
        sorted((row["id"], row["name"], str(row["note"])) for row in rows) for rows in (by_spark, by_duckdb, scanned)
    ]
    assert readings[0] == readings[1] == readings[2]
    assert len({row[0] for row in readings[0]}) == len(readings[0])
    return {number: (name, note) for number, name, note in readings[0]}


@pytest.fixture(scope="module")
def landing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A first run of all tables: three rows in two months."""
    landing = tmp_path_factory.mktemp("laid_out")
    rows = [(1, "a", JANUARY), (2, "b", JANUARY), (3, "c", MARCH)]
    tables = (DECLARED, OWNERS, LATER, BEGUN, WRONG, KEPT)
    deliver(landing, "0", [message(table.insert(10 + row[0], *row)) for table in tables for row in rows])
    run_all(_source(landing))
    return landing


def _second(landing: Path, source: Source, run: int) -> None:
    """Row 1 moves to May, 2 goes, 4 comes; a late event of row 3 changes nothing."""
    at = 100 * run
    changes = [
        change
        for table in (DECLARED, OWNERS, LATER, KEPT)
        for change in (
            table.update(at, 1, "moved", MAY), table.delete(at + 1, 2, "b", JANUARY),
            table.insert(at + 2, 4, "new", MARCH), table.update(5, 3, "late", MAY),
        )
    ]  # fmt: skip
    deliver(landing, f"{run}", map(message, changes))
    run_all(source)


MOVED = {1: ("moved", MAY), 3: ("c", MARCH), 4: ("new", MARCH)}


def test_a_table_begins_as_it_is_declared(landing: Path, lake: Lake, spark: SparkSession) -> None:
    """Partitions, sort order and properties are there with the first rows, which lie in their partitions."""
    table = lake.load(("laid_out", "begun"))
    assert _spec(table) == ["month(note)", "bucket[4](id)"]
    assert _order(table) == ["name DESC NULLS_LAST", "id ASC NULLS_FIRST"]
    assert table.properties["write.target-file-size-bytes"] == "1048576"
    assert table.properties["comment"] == "orders of the shop"
    assert {task.file.partition[0] for task in table.scan().plan_files()} == {672, 674}
    assert _rows(lake, spark, "begun") == {1: ("a", JANUARY), 2: ("b", JANUARY), 3: ("c", MARCH)}


def test_a_layout_that_does_not_fit_stops_its_table_alone(landing: Path, lake: Lake) -> None:
    """The reason names the field of the source file, the function and the type."""
    status = sql.query(lake, "SELECT reason FROM ledger.tables WHERE object = 'shop.wrong'").to_pylist()
    assert status[0]["reason"] == "shop.wrong: layout.partition[0]: month() needs a date or timestamp; id is long"
    assert lake.find(("laid_out", "wrong")) is None


def test_layouts_change_and_rows_move(
    landing: Path, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand and by the source file: no copy of a moved row stays, and no hand's work is undone."""
    owners = lake.load(("laid_out", "owners"))
    with owners.update_spec() as spec:
        spec.add_field("note", DayTransform(), "created_day")
    with owners.update_sort_order() as order:
        order.asc("name", IdentityTransform())
    with owners.transaction() as transaction:
        transaction.set_properties({"comment": "mine", "write.target-file-size-bytes": "268435456"})
    with lake.load(("laid_out", "kept__history")).update_sort_order() as order:
        order.asc("name", IdentityTransform())
    changed = _source(landing, later={"partition": ["name"]}, without=["name"])
    _second(landing, changed, 1)
    stopped = sql.query(lake, "SELECT reason FROM ledger.tables WHERE object = 'shop.kept' AND state = 'stopped'")
    assert "column 'name' goes or gets another type, and laid_out.kept__history is" in str(stopped.to_pylist())
    for name in ("declared", "owners", "later"):
        assert _rows(lake, spark, name) == MOVED, name
    assert _spec(lake.load(("laid_out", "later"))) == ["identity(name)"]
    moved = lake.load(("laid_out", "later")).scan(row_filter=EqualTo("name", "moved")).to_arrow()  # type: ignore[call-arg]
    assert moved.column("id").to_pylist() == [1]

    monkeypatch.setattr(row_writing, "LARGE", 1)
    changed = _source(landing, later={"partition": ["bucket(2, id)"], "sort": ["id"]}, declared=None)
    deliver(landing, "2", [message(table.update(300, 4, "again", JANUARY)) for table in (DECLARED, OWNERS, LATER)])
    run_all(changed)
    monkeypatch.undo()
    now = MOVED | {4: ("again", JANUARY)}
    for name in ("declared", "owners", "later"):
        assert _rows(lake, spark, name) == now, name
    later, declared = (lake.load(("laid_out", name)) for name in ("later", "declared"))
    assert (_spec(later), _order(later)) == (["bucket[2](id)"], ["id ASC NULLS_FIRST"])
    assert (_spec(declared), _order(declared)) == ([], [])
    assert "comment" not in declared.properties
    merging = "write.merge.distribution-mode"
    assert declared.properties[merging] == STATE_PROPERTIES[merging]
    assert len(_specs_of_files(later)) > 1

    monkeypatch.setattr("tidemark.stages.maintain.NAMES", ())  # the ledger's tables, which take most of the time
    run_stage("maintain", changed, None, None)
    for name in ("declared", "owners", "later"):
        table = lake.load(("laid_out", name))
        assert _specs_of_files(table) == {table.metadata.default_spec_id}, name
        assert _rows(lake, spark, name) == now, name
    snapshots = len(lake.load(("laid_out", "later")).snapshots())
    if PROVING:
        run_stage("maintain", changed, None, None)
        assert len(lake.load(("laid_out", "later")).snapshots()) == snapshots

    if PROVING:
        for stage in REBUILD:
            run_stage(stage, changed, None, None)
        for name in ("declared", "owners", "later"):
            assert _rows(lake, spark, name) == now, name
    owners = lake.load(("laid_out", "owners"))
    assert (_spec(owners), _order(owners)) == (["day(note)"], ["name ASC NULLS_LAST"])
    assert owners.properties["comment"] == "mine"
    assert owners.properties["write.target-file-size-bytes"] == "268435456"
    assert_ledgers_close(lake, "laid_out")
