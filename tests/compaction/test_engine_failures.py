"""A table that the engine cannot build stops by itself; an engine or a store that is down stops the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.running import assert_ledger_closes, run_all
from tidemark.compaction import building
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.engine_failures import contained
from tidemark.compaction.keyed_candidate import Fold
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark


def test_a_table_that_the_engine_cannot_build_stops_alone(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are published, a person reads its name and the reason, and the next run tries it again."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": {"id": "long", "name": "string"}}})
    tables = {name: Table(name, columns=("id", "name")) for name in ("wide", "once", "sound")}
    inserts = [message(table.insert(number, number, "x")) for table in tables.values() for number in (1, 2)]
    deliver(Path(shop.landing).parent, "0", inserts)
    build, tried = building.build_candidate, []

    def failing(prepared: Prepared, fold: Fold | None = None) -> Any:
        name = prepared.plan.found.object
        built = build(prepared, fold)
        tried.append(name)
        if name == "shop.wide" or tried.count("shop.once") == 1 == tried.count(name):
            raise PySparkException("a stack of StackOverflowError\nat a place")
        return built

    with monkeypatch.context() as patched:
        patched.setattr(building, "build_candidate", failing)
        reports = run_all(shop)
    problems = "\n".join(reports["compact"].problems)
    assert "shop.wide: the engine failed twice at this table (2 new events)" in problems
    assert "a stack of StackOverflowError" in problems
    assert "shop.once" not in problems
    assert tried.count("shop.once") == 2

    def rows(name: str) -> int:
        table = lake.find((shop.source, name))
        return 0 if table is None else table.scan().to_arrow().num_rows

    assert {name: rows(name) for name in tables} == {"wide": 0, "once": 2, "sound": 2}
    assert run_all(shop)["publish"].problems == ()
    assert rows("wide") == 2
    assert_ledger_closes(lake, shop.source)


def test_an_engine_that_is_down_stops_no_table() -> None:
    """Where the change log cannot be read either, nothing is said of the table: the run failed, and may run again."""

    def fails() -> Any:
        raise PySparkException("no executor answers")

    run: Any = SimpleNamespace(changes=fails)
    found: Any = SimpleNamespace(object="shop.orders", events=1)
    with pytest.raises(PySparkException, match="no executor answers"):
        contained(run, found, fails)
