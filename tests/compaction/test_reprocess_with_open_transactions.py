"""Batches and messages derived again while a transaction is open, and over DDL: tables of every kind are as before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import KINDS, Log, Message
from support.histories import deliver
from support.running import assert_ledgers_close, run_all
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import REBUILD, RETRY, STAGES, StageReport
from tidemark.tables.schemas import DELETED

pytestmark = [pytest.mark.spark, pytest.mark.prove]

TABLES = [f"{kind}_t" for kind in KINDS]
_TRANSACTION, _EVENTS = "all", 2 * len(TABLES) + 1


def _day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def _source(name: str, landing: Path, **options: Any) -> Source:
    tables: dict[str, Any] = {f"shop.{kind}_*": settings for kind, settings in KINDS.items()}
    pattern = str(landing / "%Y-%m-%d" / "*")
    fields = {"source": name, "format": "debezium_json", "landing": pattern, "tables": tables, "options": options}
    return Source.model_validate({**fields, "max_deletes": 1})


def _days() -> dict[int, list[Message]]:
    """A transaction over all tables that begins on the first day, goes on behind DDL, and has a message that fails."""
    logs, every = [Log(table) for table in TABLES], Log("")
    first, second = [], []
    number = 1
    for log in logs:
        first += [log.put(1, id=1, a="x", n=1), log.put(2, id=2, a="y", n=1)]
        first += every.within(_TRANSACTION, log.put(3, {"id": 2, "a": "y", "n": 1}, id=2, a="h", n=1), first=number)
        number += 1
    for log in logs:
        second += [
            log.ddl(10, "RENAME COLUMN a TO b"),
            log.ddl(11, "ADD COLUMN c int DEFAULT 5"),
            log.put(12, {"id": 1, "b": "x", "n": 1, "c": 5}, id=1, b="z", n=2, c=6),
            *every.within(_TRANSACTION, log.put(13, id=3, b="w", n=1, c=5), first=number),
            log.put(14, id=4, b="v", n=1, c=None),
        ]
        number += 1
    (nameless,) = every.within(_TRANSACTION, logs[1].delete(15, id=4, b="v", n=1, c=None), first=number)
    event = json.loads(nameless)
    del event["source"]["table"]
    return {1: first, 2: [*second, json.dumps(event).encode(), every.end(_TRANSACTION, _EVENTS)]}


class _Running:
    def __init__(self, source: Source, lake: Lake) -> None:
        self.source, self.lake = source, lake
        self.reports: list[StageReport] = []

    def run(self, stages: Iterable[str], **first: Any) -> None:
        """Run stages, the first of them with options."""
        for place, stage in enumerate(stages):
            self.reports.append(run_stage(stage, self.source, **(first if place == 0 else {})))

    def tables(self) -> dict[str, list[str]]:
        """Rows of all tables and histories."""
        name = self.source.source
        kept = [table for table in TABLES if table in {"hist_t", "both_t"}]
        names = [*TABLES, *(history(Identifier(name, table)).name for table in kept)]
        found = {table: self.lake.load((name, table)).scan().to_arrow().to_pylist() for table in names}
        return {table: sorted(map(repr, rows)) for table, rows in found.items()}

    def held(self) -> int:
        """Events that wait."""
        return sum(row.held for row in Ledger(self.lake, self.source.source).published_tables().values())


def test_what_is_derived_again_is_as_before(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Both days again and a rebuild while the transaction is open, its last message by a retry, and both days again.

    ``make test`` has what is derived again after a mistake in ``test_retry_and_reprocess.py``.
    """
    for day, messages in _days().items():
        deliver(tmp_path / f"2026-01-{day:02d}", "a", messages)
    running = _Running(_source("again", tmp_path), lake)
    deliver(tmp_path / "2026-01-01", "0", [Log("").end("first", 0)])
    for day in (1, 2):
        running.reports += run_all(running.source, start=_day(day), end=_day(day + 1)).values()
    assert running.held() == 2 * len(TABLES)
    before = running.tables()
    for day in (1, 2):
        running.run(STAGES[1:], start=_day(day), end=_day(day + 1), reprocess=True)
        assert (running.tables(), running.held()) == (before, 2 * len(TABLES)), day
    running.run(REBUILD)
    assert (running.tables(), running.held()) == (before, 2 * len(TABLES))
    running.source = _source("again", tmp_path, table=f"shop.{TABLES[1]}")
    running.run(RETRY)
    assert running.held() == 0
    whole = running.tables()
    clean = _Running(_source("again_clean", tmp_path, table=f"shop.{TABLES[1]}"), lake)
    for day in (1, 2):
        running.reports += run_all(clean.source, start=_day(day), end=_day(day + 1)).values()
    assert whole == clean.tables()
    assert_ledgers_close(lake, "again_clean")
    for table in TABLES:
        rows = [row for row in lake.load(("again", table)).scan().to_arrow().to_pylist() if not row.get(DELETED)]
        expected = [(1, "z", 6), (2, "h", 5), (3, "w", 5)] + ([(4, "v", None)] if table != TABLES[1] else [])
        assert sorted((row["id"], row["b"], row["c"]) for row in rows) == expected
    for day in (1, 2):
        running.run(STAGES[1:], start=_day(day), end=_day(day + 1), reprocess=True)
        assert running.tables() == whole, day
    assert [problem for report in running.reports for problem in report.problems] == []
    assert_ledgers_close(lake, "again")
