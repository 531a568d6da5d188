"""The demo's history through all stages on real Spark and Iceberg: every source publishes the same tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.table.snapshots import Snapshot
from pyspark.sql import SparkSession

from support.lakes import empty_lake
from support.running import run_all
from tidemark.demo.comparison import differences
from tidemark.demo.render import SOURCES, Rendered, deliver_late, render
from tidemark.demo.secret import environment_of_masks, make_secret
from tidemark.demo.story.shop_history import ShopHistory, history
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.files import default_folder, load_source
from tidemark.sources.model import Source

DAYS = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
TELLS_STATEMENTS = {"shop_canal", "shop_datahub_blob", "shop_debezium", "shop_dts"}
"""Of the others, columns that went stay in the published table, null in every row."""


UNLIKE = ("shop_canal", "shop_datahub_tuple")
"""One that sends schema changes and whole rows, and one that sends neither: each is run once over all its dumps. In
``make test`` what the dumps of all sources decode to is folded in ``test_demo_history.py``, and the example of the
README goes through all stages. ``make prove`` takes each source of the demo through all its days too."""


@pytest.fixture(scope="module")
def shop() -> ShopHistory:
    """The one history."""
    return history()


@pytest.fixture(autouse=True)
def _lake_without_other_tests(home: Path) -> Iterator[None]:
    """Let each test begin with an empty lake: two of them run sources of one name."""
    yield
    empty_lake(home)


def _source(name: str, landing: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setenv("TIDEMARK_LANDING", str(landing))
    make_secret()
    for variable, secret in environment_of_masks().items():
        monkeypatch.setenv(variable, secret)
    return load_source(default_folder() / f"{name}.yaml")


def _columns(lake: Lake, source: str, table: str) -> list[str]:
    return [field.name for field in lake.load((source, table)).schema().fields if not field.name.startswith("_cdc_")]


def _snapshots(lake: Lake, source: str) -> dict[str, Snapshot | None]:
    """Return the current snapshot of each published table, history and feed."""
    return {name[-1]: lake.load(name).current_snapshot() for name in lake.catalog.list_tables(source)}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.prove) for name in sorted(SOURCES)],
)
def test_every_source_publishes_the_history(
    name: str, shop: ShopHistory, spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run a day, a late file after the third, a re-run: the tables are what the history ends with."""
    source = _source(name, tmp_path, monkeypatch)
    rendered = render(name, shop, tmp_path)
    for number, day in enumerate(DAYS):
        run_all(source, start=day, end=day + timedelta(days=1))
        if number == 2:
            assert deliver_late(name, tmp_path)
            reports = run_all(source, start=DAYS[2], end=DAYS[3])
            assert reports["land"].summary["files"] == len(rendered.late_files)
    assert differences(lake, name, shop) == []
    for table in shop.schemas if name in TELLS_STATEMENTS else ():
        assert _columns(lake, name, table) == [column.name for column in shop.columns(table)]
    before = _snapshots(lake, name)
    assert run_stage("land", source, DAYS[1], DAYS[2]).summary["files"] == 0
    assert run_all(source)["land"].summary["files"] == 0
    assert _snapshots(lake, name) == before
    _assert_counted(lake, name, rendered)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.prove
@pytest.mark.parametrize("name", UNLIKE)
def test_one_run_over_all_dumps_publishes_the_history(
    name: str, shop: ShopHistory, spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four days and the late file in one run: the tables are the history's final state. The next run finds nothing."""
    source = _source(name, tmp_path, monkeypatch)
    rendered = render(name, shop, tmp_path)
    assert deliver_late(name, tmp_path)
    run_all(source)
    assert differences(lake, name, shop) == []
    for table in shop.schemas if name in TELLS_STATEMENTS else ():
        assert _columns(lake, name, table) == [column.name for column in shop.columns(table)]
    before = _snapshots(lake, name)
    assert run_all(source)["land"].summary["files"] == 0
    assert _snapshots(lake, name) == before
    _assert_counted(lake, name, rendered)


def _assert_counted(lake: Lake, name: str, rendered: Rendered) -> None:
    """The ledger counts every message that was written, and every one that cannot be read."""
    batches = Ledger(lake, name).read("batches")
    assert sum(row["quarantined"] for row in batches) == rendered.total.broken + rendered.total.unknown_operation
    assert sum(row["landed"] for row in batches) == rendered.total.messages
