"""A source of PostgreSQL, landed through the pipeline once, beside its database: what waits, and what never came."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from sqlalchemy.engine import make_url

from support import source_databases
from support.running import run_all
from tidemark.ledger.reconciliation_rows import ReconciliationRow, Result
from tidemark.pipeline import run_stage
from tidemark.reconciliation.run import reconcile
from tidemark.sources.model import Source

CONNECTION = "DB_OF_PIPELINE"
TABLES = {
    "public.orders": {"key": ["id"], "columns": {"id": "long", "name": "string", "total": "decimal(10, 2)"}},
    "public.notes": {"key": [], "columns": {"text": "string"}},
}


class _Capture:
    """Writes what happens in the database as Debezium does."""

    def __init__(self, database: psycopg.Connection, folder: Path) -> None:
        self._database, self._folder, self._files = database, folder, 0
        self.waiting: list[dict[str, Any]] = []

    def put(self, table: str, op: str, before: Any, after: Any, ahead: int = 0, **more: Any) -> None:
        """An event at the place where the log is now, or so far ahead of it."""
        high, low = str(self._database.execute("SELECT pg_current_wal_insert_lsn()").fetchall()[0][0]).split("/")
        lsn = (int(high, 16) << 32) + int(low, 16) + ahead + len(self.waiting)
        at = int(datetime.now(UTC).timestamp() * 1000)
        place = {"connector": "postgresql", "schema": "public", "table": table, "lsn": lsn, "ts_ms": at, "txId": 7}
        self.waiting.append({"op": op, "before": before, "after": after, "source": place, "ts_ms": at, **more})

    def deliver(self) -> None:
        """What was put since, as a dump file."""
        self._files += 1
        (self._folder / f"{self._files:03d}.jsonl").write_text(
            "".join(f"{json.dumps(each)}\n" for each in self.waiting)
        )
        self.waiting = []


@pytest.mark.spark
@pytest.mark.slow
def test_what_waits_is_behind_and_what_never_came_is_a_fault(
    spark: SparkSession,
    source: Callable[..., Source],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through one run: held and unpublished events are behind at once; a lost one is found when the log has passed."""
    shop = source("debezium_json", tables=TABLES, reconcile={"connection": CONNECTION})
    password = source_databases.password()
    with source_databases.postgres(tmp_path_factory.mktemp("pg"), password) as url:
        monkeypatch.setenv(CONNECTION, url)
        host = str(make_url(url).query["host"])
        with psycopg.connect(host=host, user="postgres", password=password, autocommit=True) as database:
            _tell(shop, database, _Capture(database, tmp_path / "landing"))


def _tell(source: Source, database: psycopg.Connection, capture: _Capture) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, name text, total numeric(10, 2))")
    database.execute("CREATE TABLE notes (text text)")
    for number in range(30):
        database.execute("INSERT INTO orders VALUES (%s, %s, 1.50)", (number, f"n{number}"))
        capture.put("orders", "c", None, {"id": number, "name": f"n{number}", "total": "1.50"})
    for _ in range(2):
        database.execute("INSERT INTO notes VALUES ('twice')")
        capture.put("notes", "c", None, {"text": "twice"})
    # A transaction whose end does not come: its update is held.
    capture.waiting.append({"status": "BEGIN", "id": "99:1", "ts_ms": 1})
    database.execute("UPDATE orders SET name = 'held' WHERE id = 3")
    block = {"id": "99:1", "total_order": 1, "data_collection_order": 1}
    row = {"id": 3, "name": "held", "total": "1.50"}
    capture.put("orders", "u", {**row, "name": "n3"}, row, transaction=block)
    capture.deliver()
    run_all(source)

    rows = _compared(source)
    assert rows["public.notes"].result == Result.EQUAL
    assert _keys(rows) == {"3": ("behind", True)}

    # One change has landed and is not published, one has not landed, one will never land.
    database.execute("UPDATE orders SET total = 2 WHERE id = 4")
    row = {"id": 4, "name": "n4", "total": "2.00"}
    capture.put("orders", "u", {**row, "total": "1.50"}, row)
    capture.deliver()
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    database.execute("DELETE FROM orders WHERE id = 5")
    database.execute("UPDATE orders SET name = 'unseen' WHERE id = 6")
    rows = _compared(source)
    assert rows["public.orders"].result == Result.BEHIND
    assert _keys(rows) == {"3": ("behind", True), "4": ("behind", True), "5": ("behind", False), "6": ("behind", False)}

    # The log passes the place of the second look, with the delete and without the update.
    capture.put("orders", "d", {"id": 5, "name": "n5", "total": "1.50"}, None, ahead=1 << 20)
    capture.deliver()
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    rows = _compared(source)
    assert rows["public.orders"].result == Result.DIFFERS
    assert _keys(rows) == {
        **dict.fromkeys(("3", "4", "5"), ("behind", True)),
        "6": ("different", False),
    }


def _compared(source: Source) -> dict[str, ReconciliationRow]:
    return {row.object: row for row in reconcile(source)}


def _keys(rows: dict[str, ReconciliationRow]) -> dict[str, tuple[str, bool]]:
    return {each.key["id"]: (each.why, each.pending) for each in rows["public.orders"].differing}
