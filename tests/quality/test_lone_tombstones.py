"""Records without a value in a source that never had a DELETE: they are its deletes, and are not passed over."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.rounds import PROVING
from support.running import run_all
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source

Make = Callable[..., Source]


def _records(topic: str, *records: tuple[int, bytes | None, dict[str, Any] | None]) -> list[bytes]:
    """Write Kafka records as the console consumers of Tidemark's containers read them: offset, key, value."""
    return [
        json.dumps({
            "topic": topic, "partition": 0, "offset": offset, "timestamp": 1767225600000 + offset,
            "key": None if key is None else key.decode(),
            "value": None if value is None else json.dumps(value),
        }).encode()
        for offset, key, value in records
    ]  # fmt: skip


def _row(op: str, at: int, **values: Any) -> dict[str, Any]:
    return {**values, "__op": op, "__table": "items", "__db": "shop", "__source_ts_ms": 1767225600000 + at}


def _problems(source: Source) -> Sequence[str]:
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, source, None, None)
    return run_stage("check", source, None, None).problems


def test_tombstones_without_deletes_hold_a_run(source: Make, spark: SparkSession, lake: Lake) -> None:
    """Rows that are deleted by tombstones alone stay, so the run says so; with the options of the remedy they go."""
    shop = source("debezium_json", tables={"shop.items": {"key": ["id"]}})
    folder = Path(shop.landing).parent
    deliver(
        folder, "1", _records("shop.items", (0, b'{"id":1}', _row("c", 0, id=1)), (1, b'{"id":2}', _row("c", 1, id=2)))
    )
    assert not run_all(shop)["check"].problems
    deliver(folder, "2", _records("shop.items", (2, b'{"id":2}', None)))
    problem = "1 records have no value, and no message of the source ever deleted a row. One is message 1 of "
    assert any(problem in text for text in _problems(shop))
    deliver(folder, "3", _records("shop.items", (3, b'{"id":3}', _row("c", 3, id=3))))
    assert any("1 records have no value" in problem for problem in _problems(shop))
    flattened_shop = Source.model_validate(
        {**shop.model_dump(by_alias=True), "options": {"flattened": True, "table": "shop.items"}}
    )
    run_stage("normalize", flattened_shop, None, None, reprocess=True)
    reports = [run_stage(stage, flattened_shop, None, None) for stage in ("compact", "check", "publish")]
    assert [report.problems for report in reports] == [(), (), ()]
    rows = lake.load((shop.source, "items")).scan(selected_fields=("id",)).to_arrow().to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 3]
    # Derived again without the options, the published record deletes nothing any more. A person is asked for it once.
    run_stage("normalize", shop, None, None, reprocess=True)
    assert any("1 records have no value" in text for text in _problems(shop))
    last = Ledger(lake, shop.source).last_cut()
    assert last is not None
    run_stage("publish", shop, approve=last.cut)
    deliver(folder, "4", _records("shop.items", (4, b'{"id":4}', _row("c", 4, id=4))))
    assert not run_all(shop)["check"].problems


@pytest.mark.more
def test_tombstones_behind_deletes_and_heartbeats_say_nothing(source: Make, spark: SparkSession) -> None:
    """An envelope reports the delete; a heartbeat is a message that is no change, and has a value."""
    shop, table = (
        source("debezium_json", tables={"shop.items": {"key": ["id"]}}),
        Table("items", columns=("id", "name")),
    )
    folder = Path(shop.landing).parent
    changes = [json.loads(message(each)) for each in (table.insert(10, 1, "a"), table.delete(11, 1, "a"))]
    beat = {"ts_ms": 1767225600000}
    deliver(folder, "1", _records("t", (0, b'{"id":1}', changes[0]), (1, None, beat)))
    if PROVING:
        assert not run_all(shop)["check"].problems
    deliver(folder, "2", _records("t", (2, b'{"id":1}', changes[1]), (3, b'{"id":1}', None)))
    assert not _problems(shop)
    if PROVING:
        assert not run_stage("publish", shop).problems
