"""Cuts that were given up when a part of the tables had moved: the next cut publishes the right rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.bags import Bag
from support.debezium_log import Log
from support.histories import Table, deliver, message
from support.reference import Change
from support.running import die_at, run_all
from tidemark.lake import names
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import STAGES

pytestmark = pytest.mark.spark
NAME = "in_part"
BAG, PARTS = Bag("bag"), Table("parts")
REWRITE = "CALL {lake}.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
DAYS: list[list[Change]] = [
    [BAG.insert(1, "a", 1), PARTS.insert(1, 1, "a", "b"), PARTS.insert(2, 2, "a", "b"), PARTS.update(3, 2, "c", ...)],
    [BAG.insert(2, "b", 1), PARTS.insert(4, 3, "a", "b")],
    [BAG.insert(3, "c", 1), PARTS.update(20, 1, "c", ...)],
    [PARTS.update(15, 1, ..., "late")],
]


@pytest.fixture(scope="module")
def rows(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[Any, ...]]]:
    """Return what is published after four days.

    On two of them a publish is killed between a table and its state, and another engine rewrites the state.
    """
    landing = tmp_path_factory.mktemp("landing")
    bag, parts = {"key": [], "columns": {"name": "string", "size": "double"}}, {"key": ["id"]}
    source = Source.model_validate(
        {
            "source": NAME,
            "format": "debezium_json",
            "landing": str(landing / "*"),
            "tables": {"shop.bag": bag, "shop.parts": parts},
        }
    )
    _run(source, landing, 0)
    _killed(spark, lake, _landed(source, landing, 1), names.state(Identifier(NAME, "bag")), moves=1)
    _killed(spark, lake, _landed(source, landing, 2), names.state(Identifier(NAME, "parts")), moves=3)
    _run(source, landing, 3)
    columns = {"bag": ("name", "size"), "parts": ("id", "name", "note")}
    return {table: _read(lake, table, names_of) for table, names_of in columns.items()}


def _landed(source: Source, landing: Path, day: int) -> Source:
    deliver(landing, f"day-{day}", map(message, DAYS[day]))
    return source


def _run(source: Source, landing: Path, day: int) -> None:
    reports = run_all(_landed(source, landing, day))
    assert [report.problems for report in reports.values()] == [()] * len(STAGES)


def _killed(spark: SparkSession, lake: Lake, source: Source, rewritten: Identifier, *, moves: int) -> None:
    for stage in STAGES[:-1]:
        run_stage(stage, source)
    with pytest.MonkeyPatch.context() as patched:
        die_at(patched, "tidemark.ledger.cuts.fast_forward", moves + 1)
        with pytest.raises(SystemExit):
            run_stage(STAGES[-1], source)
    table = lake.load(rewritten)
    stood = table.metadata.current_snapshot_id
    spark.sql(REWRITE.format(lake=lake.name, table=".".join(table.name())))
    assert table.refresh().metadata.current_snapshot_id != stood
    assert [report.problems for report in run_all(source).values()] == [()] * len(STAGES)


def _read(lake: Lake, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    found = lake.load((NAME, table)).scan(selected_fields=columns).to_arrow().select(columns).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_no_row_of_a_table_without_a_key_comes_twice(rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """Its highest position had not moved, so its events did not show that the table has them."""
    assert rows["bag"] == [("a", 1.0), ("b", 1.0), ("c", 1.0)]


def test_a_late_part_of_a_row_wins_over_older_cells(rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """Its cells' own positions had not moved, so all of them would have passed for written with the newest."""
    assert rows["parts"] == [(1, "c", "late"), (2, "c", "b"), (3, "a", "b")]


def test_columns_that_were_exchanged_are_not_exchanged_back(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """The table had moved, with its new names, when the cut was given up for another table."""
    swapped, other = Log("a_swapped"), Log("b_other")
    fields = {"format": "debezium_json", "landing": str(tmp_path / "*")}
    tables = {f"shop.{log.table}": {"key": ["id"]} for log in (swapped, other)}
    source = Source.model_validate({"source": "exchanged", **fields, "tables": tables})
    deliver(tmp_path, "1", [swapped.put(1, id=1, a="a1", b="b1"), other.put(2, id=1, a="x", b="y")])
    run_all(source)
    swap = swapped.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    deliver(tmp_path, "2", [swap, other.put(11, id=2, a="x", b="y")])
    _killed(spark, lake, source, Identifier("exchanged", "b_other"), moves=2)
    table = lake.load(("exchanged", "a_swapped"))
    assert table.scan().to_arrow().select(["id", "a", "b"]).to_pylist() == [{"id": 1, "a": "b1", "b": "a1"}]
