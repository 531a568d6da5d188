"""Rows of producers that write names, keys and columns in their own way, published by one run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import deliver
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark


def record(offset: int, key: object, value: object) -> bytes:
    """Return a Kafka record as a line of JSON."""
    texts = {name: None if part is None else json.dumps(part) for name, part in (("key", key), ("value", value))}
    return json.dumps({"topic": "t", "partition": 0, "offset": offset, "timestamp": 1, **texts}).encode()


def change(op: str, after: object, before: object = None, **source: Any) -> dict[str, Any]:
    """Return an envelope."""
    return {"op": op, "before": before, "after": after, "source": source}


def cells(**values: Any) -> dict[str, Any]:
    """Return an image of cells; ``...`` is a cell that is not set."""
    return {name: None if value is ... else {"value": value, "set": True} for name, value in values.items()}


def documents() -> Iterable[tuple[Any, Any]]:
    """Flattened documents of MongoDB: one is changed, one deleted."""
    added = {"__collection": "users", "__db": "app", "__deleted": "false"}
    yield {"id": "a"}, {"_id": "a", "__v": 1, "mail": "a@x", "__op": "c", "__source_ts_ms": 1, **added}
    yield {"id": "b"}, {"_id": "b", "__v": 1, "mail": "b@x", "__op": "c", "__source_ts_ms": 2, **added}
    yield {"id": "a"}, {"_id": "a", "__v": 2, "mail": "c@x", "__op": "u", "__source_ts_ms": 3, **added}
    yield {"id": "b"}, {"__op": "d", "__source_ts_ms": 4, **added, "__deleted": "true"}


def keyspaces() -> Iterable[tuple[Any, Any]]:
    """Tables of one name in two keyspaces of Vitess."""
    for keyspace, mode in (("east", "x"), ("west", "y")):
        source = {"connector": "vitess", "db": "", "keyspace": keyspace, "table": "modes", "ts_ms": 1}
        yield {"payload": {"id": 1}}, change("c", {"id": 1, "mode": mode}, **source)


def partial_cells() -> Iterable[tuple[Any, Any]]:
    """Cells of YugabyteDB: one is not set, another is set to null."""
    source = {"connector": "yugabytedb", "db": "yb", "table": "scores"}
    yield {"id": 1}, change("c", cells(id=1, name="n", score=5), **source, ts_ms=1)
    yield {"id": 1}, change("u", cells(id=1, name=..., score=None), **source, ts_ms=2)


def history_records() -> Iterable[tuple[Any, Any]]:
    """A rename that Flink CDC writes between two rows."""
    source = {"connector": "mysql", "db": "shop", "table": "loads", "file": "binlog.000002"}
    ddl = {"databaseName": "shop", "ddl": "ALTER TABLE loads CHANGE a_load b_load varchar(9)", "tableChanges": []}
    yield {"id": 1}, change("c", {"id": 1, "a_load": "1 t"}, **source, pos=100)
    yield None, {"source": {**source, "pos": 200}, "historyRecord": json.dumps(ddl)}
    yield {"id": 2}, change("c", {"id": 2, "b_load": "2 t"}, **source, pos=300)


def test_names_keys_and_columns_of_other_producers(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Each table has the rows of its source."""
    streams = [*documents(), *keyspaces(), *partial_cells(), *history_records()]
    deliver(tmp_path, "all", [record(offset, *pair) for offset, pair in enumerate(streams)])
    fields = {"format": "debezium_json", "landing": str(tmp_path / "*"), "target": "{source}.{database}_{table}"}
    run_all(Source.model_validate({"source": "producers", **fields}))
    assert_ledger_closes(lake, "producers")
    found = {name: lake.load(("producers", name)).scan().to_arrow().to_pylist() for name in EXPECTED}
    for rows in found.values():
        rows.sort(key=lambda row: str(row.get("id")))
        for row in rows:
            row.pop("_cdc_position")
            row.pop("_cdc_committed_at")
    assert found == EXPECTED


EXPECTED: dict[str, list[dict[str, Any]]] = {
    "app_users": [{"_id": "a", "__v": 2, "mail": "c@x"}],
    "east_modes": [{"id": 1, "mode": "x"}],
    "west_modes": [{"id": 1, "mode": "y"}],
    "yb_scores": [{"id": 1, "name": "n", "score": None}],
    "shop_loads": [{"id": 1, "b_load": "1 t"}, {"id": 2, "b_load": "2 t"}],
}
