"""What check finds in candidates by itself, whatever the source file declares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.running import run_all
from tidemark.lake.branches import head
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.pipeline import run_stage
from tidemark.quality import invariants
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark

TABLES = [Table(f"table_{number}") for number in range(5)]


@pytest.mark.parametrize(("at_once", "small"), [(1, True), (3, False), (invariants._AT_ONCE, True)])
def test_each_table_is_told_what_is_wrong_with_it(
    source: Callable[..., Source],
    lake: Lake,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
    small: bool,  # noqa: FBT001
) -> None:
    """Keys that are null or there twice, and rows that the ledger does not know, are found in the table they are in."""
    monkeypatch.setattr(invariants, "_AT_ONCE", at_once)
    monkeypatch.setattr(invariants, "is_small", lambda _: small)
    made = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": {"id": "long", "name": "string"}}})
    folder = Path(made.landing).parent
    deliver(folder, "0", (message(table.insert(n, n, "a", "b")) for table in TABLES for n in range(1, 5)))
    run_all(made)
    deliver(folder, "1", (message(table.update(9, 2, "c", "d")) for table in TABLES))
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, made, None, None)
    rows = {"table_1": "(2L, 'twice')", "table_3": "(NULL, 'none'), (7L, 'unknown')"}
    for name, values in rows.items():
        branch = lake.spark_name((made.source, name), "candidate_2")
        spark.sql(f"INSERT INTO {branch} (id, name) VALUES {values}")  # noqa: S608  the test's own
    ledger = Ledger(lake, made.source)
    rows_of_cut = ledger.tables(equals("cut", 2))
    snapshots = {row.object: head(lake.load(row.identifier), "candidate_2") for row in rows_of_cut}
    moved = [msgspec.structs.replace(row, snapshot=snapshots[row.object]) for row in rows_of_cut]
    ledger.replace(TableRow, moved, equals("cut", 2))
    problems = sorted(run_stage("check", made, None, None).problems)
    found = [
        (name, kind)
        for name in rows
        for kind in ("null", "duplicate", "beyond")
        for p in problems
        if name in p and kind in p
    ]
    assert found == [("table_1", "duplicate"), ("table_1", "beyond"), ("table_3", "null"), ("table_3", "beyond")]
    assert len(problems) == len(found)


def test_a_key_may_have_any_name(source: Callable[..., Source], lake: Lake) -> None:
    """Also those that counting rows gives to columns of its own."""
    table = Table("totals", key=("count", "place"), columns=("count", "place", "rows"))
    made = source("debezium_json", tables={"shop.totals": {"key": ["count", "place"]}})
    for number, change in enumerate((table.insert(1, 1, 2, "a"), table.update(2, 1, 2, "b"))):
        deliver(Path(made.landing).parent, f"{number}", [message(change)])
        assert not run_all(made)["check"].problems
    (row,) = lake.load((made.source, "totals")).scan().to_arrow().to_pylist()
    assert (row["count"], row["place"], row["rows"]) == (1, 2, "b")
