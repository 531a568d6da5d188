"""Tables of one source that differ in size: each is built by plans that suit it, and all are published together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from histories import Table, deliver, message
from running import run_all
from tidemark import formats, session
from tidemark.candidates import Candidate
from tidemark.lake import Lake
from tidemark.ledger import Row
from tidemark.sources import Source

pytestmark = pytest.mark.spark
TUNED = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage")


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
    build = Candidate.build

    def told(self: Candidate, after: int) -> Row:
        row = build(self, after)
        seen[row["object"]] = [spark.conf.get(name) for name in TUNED]
        return row

    monkeypatch.setattr(Candidate, "build", told)
    monkeypatch.setattr(session, "_FEW_ROWS", 8)
    run_all(shop)
    in_one_go = ["false", "2", before[2]]
    assert seen == {"shop.few": in_one_go, "shop.more": in_one_go, "shop.many": before}
    assert [spark.conf.get(name) for name in TUNED] == before
    rows = {name: lake.load((shop.source, name)).scan().to_arrow().num_rows for name in counts}
    assert rows == counts

    deliver(Path(shop.landing).parent, "1", [message(tables["few"].insert(9, 9, "x"))])
    run_all(shop)
    assert seen["shop.few"] == ["false", "2", "false"]


def test_workers_are_forked_with_all_that_they_need(spark: SparkSession) -> None:
    """A worker that is new, as each is after a minute without work, imports nothing."""

    def imported(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = [name for name in sys.modules if name.startswith("tidemark.")]
        yield from (pa.RecordBatch.from_pydict({"name": known}) for _ in batches)

    told = spark.range(0, 1, 1, 1).mapInArrow(imported, "name string").collect()
    needed = {"tidemark.workers", *(f"tidemark.formats.{name}" for name in formats.names())}
    assert needed <= {row["name"] for row in told}
