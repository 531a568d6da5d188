"""Tombstones stay until the events that would have met them are folded, however long these wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.histories import canal, deliver
from support.ledgers import age
from support.running import run_all
from tidemark.compaction import tombstone_age
from tidemark.lake import names
from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, CutRow, FileRow, TableRow, TransactionRow
from tidemark.ledger.schemas import BATCHES, FILES
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import RETRY

NOW = datetime(2026, 6, 30, tzinfo=UTC)
STATE = Identifier("state", "aging__items")
COUNTS = dict.fromkeys(("landed", "decoded", "control", "quarantined", "events"), 0)


def _source(name: str, landing: Path, **more: Any) -> Source:
    """Return a source that forgets deletes after 50 days."""
    fields = {"source": name, "format": "canal_json", "landing": str(landing / "*"), **more}
    return Source.model_validate({**fields, "maintenance": {"tombstone_days": 50}})


def _ledger(lake: Lake, rows: Sequence[TableRow | TransactionRow], cut: int, given_up: Sequence[str]) -> Ledger:
    """Return the ledger of a source with a batch a month, 150 to 30 days ago; the last one is a retry of the fourth."""
    ledger, all_of_them = Ledger(lake, "aging"), above("batch", -1)
    for kind in (TableRow, TransactionRow):
        ledger.forget(kind)
        ledger.replace(kind, [row for row in rows if isinstance(row, kind)])
    published = CutRow(cut=1, state="published", batch=cut, given_up=tuple(given_up) or None)
    ledger.replace(CutRow, [published], all_of_them)
    if not ledger.batches():  # they are the same in all tests
        batches = [BatchRow(batch=batch, retry_of=4 if batch == 5 else None, **COUNTS) for batch in range(1, 6)]
        ledger.replace(BatchRow, batches, all_of_them)
        table = lake.load(names.ledger("batches"))
        dated = [{**row, "at": NOW - timedelta(days=30 * (6 - row["batch"]))} for row in ledger.read("batches")]
        table.overwrite(pa.Table.from_pylist(dated, schema=BATCHES), overwrite_filter=equals("source", "aging"))
    return ledger


def _land(ledger: Ledger, lake: Lake, landed: Mapping[int, timedelta]) -> None:
    """Write to the ledger that a file of each batch landed so long ago."""
    ledger.forget(FileRow)
    fields = {"size": 1, "modified": "", "checksum": "", "container": "text", "messages": 1, "interval_start": None}
    ledger.replace(FileRow, [FileRow(batch=batch, path=f"/{batch}", **fields) for batch in landed])
    dated = [{**row, "at": NOW - landed[row["batch"]]} for row in ledger.read("files")]
    table = lake.load(names.ledger("files"))
    table.overwrite(pa.Table.from_pylist(dated, schema=FILES), overwrite_filter=equals("source", "aging"))


def _table(state: str = "published", *, batch: int = 5, held: int = 0) -> TableRow:
    return TableRow(cut=1, object="shop.items", target="aging.items", state=state, batch=batch, held=held)


def _transaction(batch: int, since: int, state: str = "open") -> TransactionRow:
    return TransactionRow(batch=batch, id="t", state=state, since=since, events=1, seen='{"id": "t"}')


@pytest.mark.parametrize(
    ("rows", "cut", "given_up", "expected"),
    [
        ([_table()], 5, (), 4),
        ([_table()], 4, (), 2),
        ([_table("stopped", batch=3)], 5, (), 2),
        ([_table("stopped", batch=2)], 5, (), 1),
        ([_table("waiting", batch=1)], 5, (), 0),
        ([_table(held=1), _transaction(5, 2)], 5, (), 0),
        ([_table(held=1), _transaction(5, 4)], 5, (), 2),
        ([_table(held=1), _transaction(5, 2)], 5, ("t",), 4),
        ([_table(), _transaction(5, 2)], 5, (), 4),
        ([_table("stopped", batch=4), _transaction(4, 3), _transaction(5, 3, "whole")], 5, (), 1),
    ],
    ids=[
        "nothing waits",
        "no cut took a batch of messages that landed 60 days ago",
        "stopped",
        "stopped earlier",
        "waiting",
        "held for a transaction",
        "held for a younger one",
        "given up",
        "the transaction is of other tables",
        "the transaction ended when the table was stopped",
    ],
)
def test_tombstones_stay_for_events_that_wait(
    lake: Lake, rows: list[TableRow | TransactionRow], cut: int, given_up: Sequence[str], expected: int
) -> None:
    """A tombstone stays while an event waits that landed within its time, whatever the event waits for."""
    source = _source("aging", Path("/nowhere"))
    past = tombstone_age.past(_ledger(lake, rows, cut, given_up), source, NOW)
    assert past.up_to(STATE) == expected
    assert past.up_to(Identifier("state", "aging__others")) == (4 if cut == 5 else 2)


def test_what_landed_waits_before_it_is_normalized(lake: Lake) -> None:
    """Normalize may fail for months while land goes on; and what is decoded again landed when it did at first."""
    source, ledger = _source("aging", Path("/nowhere")), _ledger(lake, [_table()], 5, ())
    try:
        _land(ledger, lake, {5: timedelta(days=30), 6: timedelta(days=60), 7: timedelta(days=1)})
        assert tombstone_age.past(ledger, source, NOW).up_to(STATE) == 2
        _land(ledger, lake, {5: timedelta(days=75)})
        assert tombstone_age.past(_ledger(lake, [_table()], 4, ()), source, NOW).up_to(STATE) == 2
    finally:
        ledger.forget(FileRow)


def test_a_table_is_judged_by_what_makes_it_now(lake: Lake) -> None:
    """A shard that was stopped and is folded into the table of all shards keeps no tombstones for ever."""
    stopped, folded = _table("stopped", batch=1), msgspec.structs.replace(_table(), cut=2, object="shop.all_items")
    ledger = _ledger(lake, [stopped, folded], 5, ())
    cuts = [CutRow(cut=cut, state="published", batch=5) for cut in (1, 2)]
    ledger.replace(CutRow, cuts, above("batch", -1))
    published = msgspec.structs.replace(_table(), cut=1, object="shop.all_items")
    ledger.replace(TableRow, [stopped, published, folded], above("cut", 0))
    assert tombstone_age.past(ledger, _source("aging", Path("/nowhere")), NOW).up_to(STATE) == 4


def _row(kind: str, number: int, table: str | None = "items") -> bytes:
    return canal(table, kind, {"id": "int", "name": "varchar(9)"}, (str(number), "x"))  # type: ignore[arg-type]


@pytest.mark.spark
@pytest.mark.more
def test_a_retried_event_does_not_revive_a_row(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row stays dead whose INSERT was in quarantine until the tombstone of its DELETE went; so do no rows without."""
    monkeypatch.setattr("tidemark.stages.maintain.NAMES", ())
    lenient = {"quarantined_share": "off"}
    source = _source("revived", tmp_path, invariants=lenient)
    deliver(tmp_path, "1", [_row("INSERT", 1), _row("INSERT", 7, None), _row("DELETE", 7), _row("INSERT", 2)])
    run_all(source)
    age(lake, "revived", days=60)
    deliver(tmp_path, "2", [_row("INSERT", 3), _row("INSERT", 4, None)])
    run_all(source)
    assert run_stage("maintain", source).summary["tombstones"] == 1
    fixed = _source("revived", tmp_path, invariants=lenient, options={"table": "shop.items"})
    reports = {stage: run_stage(stage, fixed) for stage in RETRY}
    assert (reports["retry"].summary["decoded"], reports["retry"].summary["rebuilds"]) == (2, 1)
    ids = lake.load(("revived", "items")).scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == [1, 2, 3, 4]
