"""Messages that are past their time go from raw, and what would need them refuses rather than lose their events."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidemark.compaction.horizons import past_events
from tidemark.compaction.rebuild_requests import dropped
from tidemark.errors import ConfigurationError
from tidemark.lake.branches import marker
from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.lake.retention import drop_events, drop_up_to, gone_up_to
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, CutRow, RebuildRow, TableRow, TransactionRow
from tidemark.ledger.transactions import OPEN, WHOLE, given_up
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source


def _deliver(landing: Path, day: int, table: str | None = "orders") -> None:
    envelope = {"type": "INSERT", "database": "shop", "table": table, "isDdl": False, "pkNames": ["id"], "old": None}
    text = json.dumps({**envelope, "mysqlType": {"id": "int"}, "data": [{"id": str(day)}], "es": 1_767_225_600_000})
    (landing / f"2026-01-{day:02d}.json").write_text(text)


def _ids(lake: Lake, source: str) -> list[str]:
    rows = lake.load(("changelog", source)).scan().to_arrow().to_pylist()
    return sorted(json.loads(row["after"])["id"] for row in rows)


def test_messages_past_their_time_are_not_decoded_again(lake: Lake, tmp_path: Path) -> None:
    """After the oldest batch went, reprocessing it is refused and changes nothing; later batches and new ones work."""
    fields = {"source": "retained", "format": "canal_json", "landing": str(tmp_path / "%Y-%m-%d.json")}
    source = Source.model_validate({**fields, "retention": {"raw_days": 1}})
    for day in (1, 2):
        _deliver(tmp_path, day)
        run_stage("land", source)
        run_stage("normalize", source)
    assert drop_up_to(lake.load(("raw", "retained")), 1) == 1
    assert drop_up_to(lake.load(("raw", "retained")), 1) == 0
    raw = lake.load(("raw", "retained"))
    assert (gone_up_to(raw), marker(raw, "batch"), raw.scan().to_arrow()["batch"].to_pylist()) == (1, "2", [2])
    with pytest.raises(
        ConfigurationError, match="batches up to 1 cannot be decoded again: raw has messages from batch 2"
    ):
        run_stage("normalize", source, reprocess=True)
    assert Ledger(lake, "retained").reprocessing() == set()
    bounds = (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    assert run_stage("normalize", source, *bounds, reprocess=True).summary["reprocessed"] == 1
    _deliver(tmp_path, 3)
    run_stage("land", source)
    run_stage("normalize", source)
    assert _ids(lake, "retained") == ["1", "2", "3"]


def test_events_past_their_time_are_decoded_again_with_those_of_retries(lake: Lake, tmp_path: Path) -> None:
    """No file landed in the batch of a retry: its events come back with the batch that their messages landed in."""
    fields = {"source": "expired", "format": "canal_json", "landing": str(tmp_path / "%Y-%m-%d.json")}
    source = Source.model_validate({**fields, "options": {"table": "shop.orders"}})
    for day, table in ((1, "orders"), (2, None)):
        _deliver(tmp_path, day, table)
        run_stage("land", source)
        run_stage("normalize", source if table else Source.model_validate(fields))
    assert run_stage("retry", source).summary["decoded"] == 1
    _deliver(tmp_path, 3)
    run_stage("land", source)
    run_stage("normalize", source)
    drop_events(lake.load(("changelog", "expired")), {"shop.orders"}, 3)
    assert _ids(lake, "expired") == ["3"]
    _assert_no_rebuild_is_asked_for(lake, source)
    for first, up_to in ((2, 1), (3, 3)):
        with pytest.raises(ConfigurationError, match=f"events of batches up to {up_to} are past their time"):
            run_stage("normalize", source, datetime(2026, 1, first, tzinfo=UTC), reprocess=True)
    assert run_stage("normalize", source, reprocess=True).summary["reprocessed"] == 3
    assert _ids(lake, "expired") == ["1", "2", "3"]


def _assert_no_rebuild_is_asked_for(lake: Lake, source: Source) -> None:
    """The events of the only table are past their time: nobody asks for a rebuild, and an earlier request goes."""
    ledger, table = Ledger(lake, source.source), "shop.orders"
    with pytest.raises(ConfigurationError, match=f"{table} is not built again, and stays as it is: it has to be built"):
        run_stage("rebuild", source, table=table)
    report = run_stage("rebuild", source)
    assert report.summary == {"tables": 0}
    assert [remark.partition(" ")[0] for remark in report.remarks] == [table]
    assert ledger.rebuild_requests() == {}
    ledger.replace(CutRow, [CutRow(cut=1, state="published", batch=2)])
    for batch, goes in ((0, False), (2, True)):  # it was never published, or was
        row = TableRow(cut=1, object=table, target="expired.orders", state="published", batch=batch)
        ledger.replace(TableRow, [row], equals("cut", 1))
        ledger.request_rebuild([table], by_hand=True)
        assert [remark.partition(" ")[0] for remark in dropped(lake, source)] == [table] * goes
        assert (ledger.rebuild_requests() == {}) is goes
    ledger.request_rebuild([table])  # something needs it: the table cannot go on as it is
    assert dropped(lake, source) == []
    for kind in (CutRow, TableRow, RebuildRow):
        ledger.forget(kind)


def _closing(lake: Lake, name: str, batches: int, states: dict[int, str]) -> tuple[Source, Ledger]:
    """A source whose transaction began in batch 1, with a published cut for each batch."""
    fields = {"source": name, "format": "canal_json", "landing": "x", "retention": {"changelog_days": 400}}
    source, ledger, numbers = Source.model_validate(fields), Ledger(lake, name), range(1, batches + 1)
    written = [BatchRow(batch=each, landed=1, decoded=1, control=0, quarantined=0, events=1) for each in numbers]
    ledger.replace(BatchRow, written)
    ledger.replace(CutRow, [CutRow(cut=each, state="published", batch=each) for each in numbers])
    rows = [TransactionRow(batch=at, id="t", state=each, since=1, events=1, seen="{}") for at, each in states.items()]
    ledger.replace(TransactionRow, rows)
    return source, ledger


def _past(source: Source, ledger: Ledger, oldest: int, *settled: str) -> int:
    """The last batch whose events may go in 500 days, if a cut is the oldest that is kept."""
    later = datetime.now(UTC) + timedelta(days=500)
    return past_events(ledger, source, oldest, later, frozenset(settled))


def test_events_stay_that_a_kept_cut_held_for_a_transaction_which_ended_later(lake: Lake) -> None:
    """The next cut takes them in: after a restore of that cut, and where no later cut was written.

    The ledger may have the end from a run that was killed, whose batch the change log has not.
    """
    source, ledger = _closing(lake, "ending", 4, {2: OPEN, 3: WHOLE})
    assert [_past(source, ledger, oldest) for oldest in (1, 2, 3, 4)] == [0, 0, 3, 4]


def test_events_go_of_transactions_that_the_oldest_kept_cut_gave_up(lake: Lake) -> None:
    """Nothing releases them any more. A restore of an earlier cut does, and so may a table that the cut left behind."""
    source, ledger = _closing(lake, "given", 4, {2: OPEN})
    ledger.replace(CutRow, [CutRow(cut=3, state="published", batch=3, given_up=("t",))], equals("cut", 3))
    assert [_past(source, ledger, oldest) for oldest in (2, 3, 4)] == [0, 3, 4]
    ledger.replace(TableRow, [TableRow(cut=3, object="shop.orders", state="stopped", batch=3)])
    assert _past(source, ledger, 4, "shop.orders") == 0
    assert given_up(ledger).shown_in("shop.orders") == frozenset()


def test_what_was_given_up_is_open_again_once_its_cut_is_gone(lake: Lake) -> None:
    """It counts from the moment in which the cut is published; a table has it unless a cut left the table behind."""
    _, ledger = _closing(lake, "taken_back", 3, {1: OPEN})
    for cut, state in ((2, "published"), (3, "held")):
        ledger.replace(CutRow, [CutRow(cut=cut, state=state, batch=cut, given_up=(f"t{cut}",))], equals("cut", cut))
    states = {(1, "one"): "published", (2, "one"): "unmoved", (1, "two"): "published", (2, "two"): "stopped"}
    ledger.replace(
        TableRow, [TableRow(cut=cut, object=name, state=each, batch=1) for (cut, name), each in states.items()]
    )
    found = given_up(ledger)
    assert (found.ids, found.shown_in("one"), found.shown_in("two"), found.shown_in("new")) == (
        {"t2"},
        {"t2"},
        set(),
        set(),
    )
    ledger.forget(CutRow, above("cut", 1))
    assert given_up(ledger).ids == frozenset()


def test_events_stay_of_tables_that_a_kept_cut_left_behind(lake: Lake) -> None:
    """A table that was stopped then goes on from its own batch after a restore; also with what was held there."""
    source, ledger = _closing(lake, "behind", 6, {2: OPEN, 4: WHOLE})
    stopped = {"shop.orders": (5, "stopped", 3), "shop.rest": (5, "published", 5), "shop.bag": (5, "stopped", 1)}
    rows = [TableRow(cut=cut, object=name, state=state, batch=at) for name, (cut, state, at) in stopped.items()]
    ledger.replace(TableRow, [*rows, TableRow(cut=6, object="shop.orders", state="published", batch=6)])
    assert _past(source, ledger, 5, "shop.rest") == 5
    assert _past(source, ledger, 5, "shop.rest", "shop.orders") == 0
    assert _past(source, ledger, 6, "shop.rest", "shop.orders") == 6


def test_what_retention_keeps_is_strict() -> None:
    """A key that is not there, and a number of days that makes no sense, are errors."""
    fields = {"source": "strict", "format": "canal_json", "landing": "x"}
    for wrong in ({"logs_days": 3}, {"raw_days": 0}, {"raw_days": "7"}):
        with pytest.raises(ValueError, match="retention"):
            Source.model_validate({**fields, "retention": wrong})
