"""Two runs of one source that take turns stage by stage, as a schedule and a backfill do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_task
from tidemark.sources.model import Source

CHECKS = {"shop.orders": {"checks": [{"type": "expect_column_values_to_be_between", "column": "id", "min_value": 0}]}}


def deliver(landing: Path, key: int) -> None:
    """Write a dump of one inserted row."""
    head = {"database": "shop", "table": "orders", "type": "INSERT", "isDdl": False, "pkNames": ["id"], "sql": ""}
    types = {"mysqlType": {"id": "bigint"}, "sqlType": {"id": -5}, "old": None}
    (landing / f"{key}.jsonl").write_text(
        json.dumps({**head, **types, "es": 1, "ts": 1, "id": 1, "data": [{"id": str(key)}]})
    )


def keys(lake: Lake, source: Source) -> set[int]:
    """Return the published keys."""
    table = lake.find((source.source, "orders"))
    return set(table.scan().to_arrow().column("id").to_pylist()) if table else set()


@pytest.mark.spark
def test_cut_built_anew_by_another_run_is_checked_before_it_is_published(
    spark: SparkSession, lake: Lake, source: Callable[..., Source], tmp_path: Path
) -> None:
    """Between check and publish of one run, another compacts: what is published was checked, and counts as new once."""
    erp = source("canal_json", tables=CHECKS)
    deliver(tmp_path / "landing", 1)
    for stage in ("land", "normalize", "compact", "check"):
        run_task(stage, erp)
    deliver(tmp_path / "landing", 2)
    for stage in ("land", "normalize", "compact"):
        run_task(stage, erp)
    assert run_task("publish", erp).summary["fresh"] == 1
    assert keys(lake, erp) == {1, 2}
    run_task("check", erp)
    assert run_task("publish", erp).summary["fresh"] == 0

    deliver(tmp_path / "landing", 3)
    for stage in ("land", "normalize", "compact", "check"):
        run_task(stage, erp)
    deliver(tmp_path / "landing", -4)
    for stage in ("land", "normalize", "compact"):
        run_task(stage, erp)
    with pytest.raises(ExpectationError):
        run_task("publish", erp)
    assert keys(lake, erp) == {1, 2}


@pytest.mark.prove
@pytest.mark.spark
def test_compact_cut_short_leaves_nothing_for_another_run_to_publish(
    spark: SparkSession, lake: Lake, source: Callable[..., Source], tmp_path: Path
) -> None:
    """Compact begins by taking the unpublished cut back: killed after that, what was checked is there no more."""
    erp = source("canal_json", tables=CHECKS)
    for key in (1, 2):
        deliver(tmp_path / "landing", key)
        for stage in ("land", "normalize", "compact", "check"):
            run_task(stage, erp)
        if key == 1:
            run_task("publish", erp)
    ledger = Ledger(lake, erp.source)
    last = ledger.last_cut()
    assert last is not None
    assert last.state == CutState.CHECKED
    assert cuts.next_number(lake, ledger) == last.cut
    assert run_task("publish", erp).summary["fresh"] == 0
    assert keys(lake, erp) == {1}
    for stage in ("compact", "check", "publish"):
        run_task(stage, erp)
    assert keys(lake, erp) == {1, 2}
