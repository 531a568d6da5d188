"""Partitions, sort order and properties of published tables: what the source file declares, and what owners change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyspark.sql import DataFrame, SparkSession

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
WRONG, KEPT = Table("wrong"), Table("kept")
CHANGING = ("declared", "owners", "later")
COLUMNS = {"id": "long", "name": "string", "note": "timestamp"}
LAYOUT = {
    "partition": ["month(note)", "bucket(4, id)"],
    "sort": ["name desc", "id"],
    "properties": {"write.target-file-size-bytes": 1048576, "comment": "orders of the shop"},
}
JANUARY, MARCH, MAY = "2026-01-31 10:00:00", "2026-03-01 00:00:00", "2026-05-05 05:05:05"


def _source(landing: Path, *, without: Sequence[str] = (), **layouts: Any) -> Source:
    tables = {"declared": LAYOUT, "wrong": {"partition": ["month(id)"]}, "owners": None, "later": None}
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


def _rows(lake: Lake, spark: SparkSession, *names: str) -> list[dict[int, tuple[str, str]]]:
    """The rows of each table, which Spark, PyIceberg and DuckDB have to read alike; a key is there once."""
    columns = ("id", "name", "CAST(note AS string) AS note")
    frames = [
        spark.table(lake.spark_name(("laid_out", name))).selectExpr(f"{number} AS number", *columns)
        for number, name in enumerate(names)
    ]
    by_spark = reduce(DataFrame.unionAll, frames).collect()
    found = []
    for number, name in enumerate(names):
        by_duckdb = sql.query(lake, f"SELECT {', '.join(columns)} FROM laid_out.{name}").to_pylist()  # noqa: S608  a test's own
        readings = [
            sorted((row["id"], row["name"], str(row["note"])) for row in rows)
            for rows in (
                [row for row in by_spark if row["number"] == number],
                by_duckdb,
                lake.load(("laid_out", name)).scan().to_arrow().to_pylist(),
            )
        ]
        assert readings[0] == readings[1] == readings[2]
        assert len({row[0] for row in readings[0]}) == len(readings[0])
        found.append({number: (name, note) for number, name, note in readings[0]})
    return found


class Begun(NamedTuple):
    """A table as its first run left it."""

    spec: list[str]
    order: list[str]
    properties: dict[str, str]
    months: set[int]
    rows: dict[int, tuple[str, str]]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of dumps."""
    return tmp_path_factory.mktemp("laid_out")


@pytest.fixture(scope="module")
def begun(spark: SparkSession, lake: Lake, landing: Path) -> Begun:
    """A first run of all tables, three rows in two months; then the one that has a layout."""
    rows = [(1, "a", JANUARY), (2, "b", JANUARY), (3, "c", MARCH)]
    tables = (DECLARED, OWNERS, LATER, WRONG, KEPT)
    deliver(landing, "0", [message(table.insert(10 + row[0], *row)) for table in tables for row in rows])
    run_all(_source(landing))
    table = lake.load(("laid_out", "declared"))
    months = {task.file.partition[0] for task in table.scan().plan_files()}
    (rows_of_it,) = _rows(lake, spark, "declared")
    return Begun(_spec(table), _order(table), table.properties, months, rows_of_it)


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


def test_a_table_begins_as_it_is_declared(begun: Begun) -> None:
    """Partitions, sort order and properties are there with the first rows, which lie in their partitions."""
    assert begun.spec == ["month(note)", "bucket[4](id)"]
    assert begun.order == ["name DESC NULLS_LAST", "id ASC NULLS_FIRST"]
    assert begun.properties["write.target-file-size-bytes"] == "1048576"
    assert begun.properties["comment"] == "orders of the shop"
    assert begun.months == {672, 674}
    assert begun.rows == {1: ("a", JANUARY), 2: ("b", JANUARY), 3: ("c", MARCH)}


@pytest.mark.usefixtures("begun")
def test_a_layout_that_does_not_fit_stops_its_table_alone(lake: Lake) -> None:
    """The reason names the field of the source file, the function and the type."""
    status = sql.query(lake, "SELECT reason FROM ledger.tables WHERE object = 'shop.wrong'").to_pylist()
    assert status[0]["reason"] == "shop.wrong: layout.partition[0]: month() needs a date or timestamp; id is long"
    assert lake.find(("laid_out", "wrong")) is None


def _lay_out_by_hand(lake: Lake) -> None:
    owners = lake.load(("laid_out", "owners"))
    with owners.update_spec() as spec:
        spec.add_field("note", DayTransform(), "created_day")
    with owners.update_sort_order() as order:
        order.asc("name", IdentityTransform())
    with owners.transaction() as transaction:
        transaction.set_properties({"comment": "mine", "write.target-file-size-bytes": "268435456"})
    with lake.load(("laid_out", "kept__history")).update_sort_order() as order:
        order.asc("name", IdentityTransform())


@pytest.mark.usefixtures("begun")
def test_layouts_change_and_rows_move(
    landing: Path, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand and by the source file: no copy of a moved row stays, and no hand's work is undone."""
    _lay_out_by_hand(lake)
    changed = _source(landing, later={"partition": ["name"]}, without=["name"])
    _second(landing, changed, 1)
    stopped = sql.query(lake, "SELECT reason FROM ledger.tables WHERE object = 'shop.kept' AND state = 'stopped'")
    assert "column 'name' goes or gets another type, and laid_out.kept__history is" in str(stopped.to_pylist())
    assert _rows(lake, spark, *CHANGING) == [MOVED] * 3
    assert _spec(lake.load(("laid_out", "later"))) == ["identity(name)"]
    moved = lake.load(("laid_out", "later")).scan(row_filter=EqualTo("name", "moved")).to_arrow()  # type: ignore[call-arg]
    assert moved.column("id").to_pylist() == [1]

    monkeypatch.setattr(row_writing, "LARGE", 1)
    changed = _source(landing, later={"partition": ["bucket(2, id)"], "sort": ["id"]}, declared=None)
    deliver(landing, "2", [message(table.update(300, 4, "again", JANUARY)) for table in (DECLARED, OWNERS, LATER)])
    run_all(changed)
    monkeypatch.undo()
    now = MOVED | {4: ("again", JANUARY)}
    assert _rows(lake, spark, *CHANGING) == [now] * 3
    later, declared = (lake.load(("laid_out", name)) for name in ("later", "declared"))
    assert (_spec(later), _order(later)) == (["bucket[2](id)"], ["id ASC NULLS_FIRST"])
    assert (_spec(declared), _order(declared)) == ([], [])
    assert "comment" not in declared.properties
    merging = "write.merge.distribution-mode"
    assert declared.properties[merging] == STATE_PROPERTIES[merging]
    assert len(_specs_of_files(later)) > 1

    monkeypatch.setattr("tidemark.stages.maintain.NAMES", ())  # the ledger's tables, which take most of the time
    run_stage("maintain", changed, None, None)
    for name in CHANGING:
        table = lake.load(("laid_out", name))
        assert _specs_of_files(table) == {table.metadata.default_spec_id}, name
    assert _rows(lake, spark, *CHANGING) == [now] * 3
    snapshots = len(lake.load(("laid_out", "later")).snapshots())
    if PROVING:
        run_stage("maintain", changed, None, None)
        assert len(lake.load(("laid_out", "later")).snapshots()) == snapshots

    if PROVING:
        for stage in REBUILD:
            run_stage(stage, changed, None, None)
        assert _rows(lake, spark, *CHANGING) == [now] * 3
    owners = lake.load(("laid_out", "owners"))
    assert (_spec(owners), _order(owners)) == (["day(note)"], ["name ASC NULLS_LAST"])
    assert owners.properties["comment"] == "mine"
    assert owners.properties["write.target-file-size-bytes"] == "268435456"
    assert_ledgers_close(lake, "laid_out")
