"""Transactions that are committed, rolled back or left open, over a bag, a history and soft deletes, in any order."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import deliver
from support.reference import Change, fold
from support.running import assert_ledgers_close, run_all
from support.transactional import TABLES, generated, transaction, written
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import REBUILD
from tidemark.tables.schemas import DELETED

pytestmark = pytest.mark.spark

_RUNS = 3


def _read(lake: Lake, source: str, table: str) -> list[tuple[Any, ...]]:
    rows = lake.load((source, table)).scan().to_arrow().to_pylist()
    return sorted((int(row["id"]), row["name"]) for row in rows if not row.get(DELETED))


def _expected(changes: Iterable[Change], table: str) -> list[tuple[Any, ...]]:
    keyless = [change._replace(key=()) if change.table == "one" else change for change in changes]
    return sorted((row["id"], row["name"]) for row in fold(keyless).get(table, {}).values())


@pytest.mark.prove
@pytest.mark.parametrize("seed", [20260401, 20260402])
def test_only_committed_transactions_show(seed: int, spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Run by run and rebuilt; DTS sends rollbacks, and but for the first transaction, ends may come late."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    first, *others = generated(seed, 24)
    ends = [dice.choice(("END", "END", "END", "ROLLBACK", None)) for _ in others]
    transactions = [
        transaction(steps[0].transaction, *(step.change for step in steps if step.change), end=end or "END")
        for steps, end in zip(others, ends, strict=True)
    ]
    steps = [step for all_of, end in zip(transactions, ends, strict=True) for step in (all_of if end else all_of[:-1])]
    # A DTS event that is sent again has another place in Kafka, and is another event to a bag (ADR 11).
    keyed = [step for step in steps if step.change is None or step.change.table != "one"]
    steps += dice.sample(keyed, len(keyed) // 5)
    tables = {
        "shop.one": {"key": []},
        "shop.two": {"key": ["id"], "history": True},
        "shop.three": {"key": ["id"], "deletes": "soft"},
    }
    fields = {"source": f"undone_{seed}", "format": "dts_avro", "landing": str(tmp_path / "*"), "tables": tables}
    source = Source.model_validate({**fields, "max_deletes": 1, "max_open_hours": 876_000})
    runs: list[list[Any]] = [[] for _ in range(_RUNS)]
    for step in dice.sample(steps, len(steps)):
        runs[dice.randrange(_RUNS)].append(step)
    deliver(tmp_path, "first", written("dts_avro", first))
    reports = []
    for number, run in enumerate(runs):
        deliver(tmp_path, f"{number}", written("dts_avro", run))
        reports += run_all(source).values()
    committed = [first, *(all_of for all_of, end in zip(transactions, ends, strict=True) if end == "END")]
    changes = [step.change for all_of in committed for step in all_of if step.change]
    expected = {table: _expected(changes, table) for table in TABLES}
    assert {table: _read(lake, source.source, table) for table in TABLES} == expected
    versions = _versions(lake, source.source)
    reports += [run_stage(stage, source) for stage in REBUILD]
    assert {table: _read(lake, source.source, table) for table in TABLES} == expected
    assert _versions(lake, source.source) == versions
    assert [problem for report in reports for problem in report.problems] == []
    assert_ledgers_close(lake, source.source)


def _versions(lake: Lake, source: str) -> list[str]:
    return sorted(map(repr, lake.load(history(Identifier(source, "two"))).scan().to_arrow().to_pylist()))
