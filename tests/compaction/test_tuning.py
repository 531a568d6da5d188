"""Tables of one source that differ in size: each is built by plans that suit it, and all are published together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from support.histories import Table, deliver, message
from support.rounds import PROVING
from support.running import run_all
from tidemark import formats
from tidemark.compaction import building
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Built
from tidemark.compaction.keyed_candidate import Fold
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source
from tidemark.spark import tuning

pytestmark = pytest.mark.spark
TUNED = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage")


@pytest.mark.more
def test_small_tables_are_built_apart_from_large_ones(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones in one go; what is few in all is interpreted, too. The session is left as it was."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": {"id": "long", "name": "string"}}})
    tables = {name: Table(name, columns=("id", "name")) for name in ("few", "more", "many")}
    counts = {"few": 3, "more": 7, "many": 20}
    inserts = [message(tables[name].insert(n, n, "x")) for name, count in counts.items() for n in range(1, count + 1)]
    deliver(Path(shop.landing).parent, "0", inserts)
    before = [spark.conf.get(name) for name in TUNED]
    seen: dict[str, list[str | None]] = {}
    build = building.build_candidate

    def watched(prepared: Prepared, fold: Fold | None = None) -> Built:
        built = build(prepared, fold)
        seen[built.object] = [spark.conf.get(name) for name in TUNED]
        return built

    monkeypatch.setattr(building, "build_candidate", watched)
    monkeypatch.setattr(tuning, "_FEW_ROWS", 8)
    run_all(shop)
    in_one_go = ["false", "1", before[2]]
    assert seen == {"shop.few": in_one_go, "shop.more": in_one_go, "shop.many": before}
    assert [spark.conf.get(name) for name in TUNED] == before
    rows = {name: lake.load((shop.source, name)).scan().to_arrow().num_rows for name in counts}
    assert rows == counts

    few_in_all = ["false", "1", "false"]
    with tuning.tuned_for(spark, [3, 4]):
        assert [spark.conf.get(name) for name in TUNED] == few_in_all
    if PROVING:
        deliver(Path(shop.landing).parent, "1", [message(tables["few"].insert(9, 9, "x"))])
        run_all(shop)
        assert seen["shop.few"] == few_in_all


def test_workers_are_forked_with_all_that_they_need(spark: SparkSession) -> None:
    """A worker that is new, as each is after a minute without work, imports nothing."""

    def imported(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = [name for name in sys.modules if name.startswith("tidemark.")]
        yield from (pa.RecordBatch.from_pydict({"name": known}) for _ in batches)

    rows = spark.range(0, 1, 1, 1).mapInArrow(imported, "name string").collect()
    needed = {"tidemark.normalization.tasks", *(f"tidemark.formats.{name}" for name in formats.names())}
    assert needed <= {row["name"] for row in rows}


def test_columns_of_any_number_reach_the_jvm(spark: SparkSession) -> None:
    """A list goes there in pieces: none is lost or out of order where it ends within one, or holds what is null."""
    for count in (1, 10, 11, 20, 25):
        values = list(range(count))
        assert spark.range(1).select(F.array(*map(F.lit, values))).first() == (values,)
    assert spark.range(3).where(F.col("id").isin(*range(2, 14))).count() == 1
    assert spark.createDataFrame([("a", None), (None, "b")], "a string, b string").replace(
        {"a": None, "b": "c"}
    ).collect() == [(None, None), (None, "c")]


def test_a_function_is_looked_up_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark asks the JVM for a function before each call, and for each column anew; here it does neither.

    What is new of an expression is one call each: the number, the sum, the text.
    """
    sent: list[str] = []
    send = ClientServerConnection.send_command

    def recording(self: ClientServerConnection, command: str) -> Any:
        sent.append(command)
        return send(self, command)

    first = F.upper(F.col("id") + F.lit(1))
    with monkeypatch.context() as patched:
        patched.setattr(ClientServerConnection, "send_command", recording)
        second = F.upper(F.col("id") + F.lit(20_261_128))
    calls = [command for command in sent if not command.startswith("m\n")]  # m: what is not needed any more is let go
    assert [command.partition("\n")[0] for command in calls] == ["c"] * 3
    assert spark.range(9, 10).select(first, second).collect() == [("10", "20261137")]
