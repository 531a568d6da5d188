"""The demo's history through all stages on real Spark and Iceberg: every source publishes the same tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from running import run_all
from tidemark.demo.history import History, history
from tidemark.demo.render import SOURCES, deliver_late, render
from tidemark.lake import Lake
from tidemark.ledger import Ledger
from tidemark.planning import COMMITTED_AT, POSITION
from tidemark.sources import Source, default_folder, load_source

DAYS = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
TABLES = ("customers", "orders", "order_lines", "payments")


@pytest.fixture(scope="module")
def shop() -> History:
    """The one history."""
    return history()


def _source(name: str, landing: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setenv("TIDEMARK_LANDING", str(landing))
    return load_source(default_folder() / f"{name}.yaml")


def _published(lake: Lake, source: str, table: str) -> list[dict[str, Any]]:
    rows = lake.load((source, table)).scan().to_arrow().drop_columns([POSITION, COMMITTED_AT]).to_pylist()
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_source_publishes_the_history(
    name: str, shop: History, spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four daily runs, a late file after the third, a re-run: the tables are the history's final state."""
    source = _source(name, tmp_path, monkeypatch)
    rendered = render(name, shop, tmp_path)
    for number, day in enumerate(DAYS):
        run_all(source, start=day, end=day + timedelta(days=1))
        if number == 2:
            assert deliver_late(name, tmp_path)
            reports = run_all(source, start=day, end=day + timedelta(days=1))
            assert reports["land"].summary["files"] == len(rendered.late_files)
    final = shop.final_state()
    for table in TABLES:
        wanted = sorted(final[table], key=lambda row: [str(value) for value in row.values()])
        assert _published(lake, name, table) == wanted, table
    snapshots = {table: lake.load((name, table)).current_snapshot() for table in TABLES}
    assert run_all(source, start=DAYS[1], end=DAYS[2])["land"].summary["files"] == 0
    assert run_all(source)["land"].summary["files"] == 0
    assert {table: lake.load((name, table)).current_snapshot() for table in TABLES} == snapshots
    batches = Ledger(lake, name).read("batches")
    assert sum(row["quarantined"] for row in batches) == rendered.total.broken + rendered.total.unknown_operation
    assert sum(row["landed"] for row in batches) == rendered.total.messages
