"""How old the newest data may be: heartbeats keep a source fresh, and only a commit keeps a table fresh."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from support.histories import Table, deliver, timed
from support.running import run_all
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.pipeline import run_stage
from tidemark.quality.freshness import OF_SOURCE, OF_TABLE, judged
from tidemark.sources.freshness import Freshness
from tidemark.sources.model import Source

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def _source(**fields: Any) -> Source:
    return Source.model_validate({"source": "fresh", "format": "debezium_json", "landing": "/landing/*", **fields})


def _table(name: str, hours: float | None, *, cut: int = 1) -> TableRow:
    at = None if hours is None else NOW - timedelta(hours=hours)
    return TableRow(cut=cut, object=name, target=f"lake.{name}", state=TableState.PUBLISHED, batch=1, committed_at=at)


def _batch(number: int, hours: float | None) -> BatchRow:
    at = None if hours is None else NOW - timedelta(hours=hours)
    return BatchRow(batch=number, landed=0, decoded=0, control=0, quarantined=0, events=0, heard=at)


LIMITS = {"warn_after_hours": 2, "block_after_hours": 24}


@pytest.mark.parametrize(
    ("hours", "severity", "success", "observed", "expected"),
    [
        (1.9, "warn", True, "1.9", "at most 2"),
        (2.1, "warn", False, "2.1", "at most 2"),
        (24.5, "block", False, "24.5", "at most 24"),
        (-0.1, "warn", True, "0.0", "at most 2"),
        (-3.0, "warn", False, "not known: every time is in the future", "at most 2"),
        (None, "warn", False, "not known: no message has a time", "at most 2"),
    ],
    ids=["fresh", "older than the first limit", "older than both", "clocks that differ", "in the future", "no time"],
)
def test_the_worst_limit_that_is_exceeded_decides(
    hours: float | None,
    severity: str,
    success: bool,  # noqa: FBT001 - a column of the cases
    observed: str,
    expected: str,
) -> None:
    """An age that is not known is reported, and blocks nothing."""
    rows = [_table("orders", None), _table("orders", hours)]
    (found,) = judged(_source(freshness=LIMITS), rows, [_batch(1, None)], NOW)
    result = found.result
    assert (result.name, result.columns) == (OF_SOURCE, ())
    assert (result.severity, result.success) == (severity, success)
    assert (result.observed, result.expected) == (observed, expected)
    assert bool(found.sentences) is not success


def test_a_heartbeat_counts_for_the_source_and_for_no_table() -> None:
    """Each table has the limit of its own entry; a table without one is judged only as part of the source."""
    source = _source(freshness={"warn_after_hours": 2}, tables={"a*": {"freshness": {"block_after_hours": 5}}})
    rows = [_table("a1", 30), _table("a2", 4), _table("b", 90)]
    found = list(judged(source, rows, [_batch(1, 50), _batch(2, 1)], NOW))
    assert [(each.result.name, each.result.columns, each.result.success) for each in found] == [
        (OF_SOURCE, (), True),
        (OF_TABLE, ("lake.a1",), False),
        (OF_TABLE, ("lake.a2",), True),
    ]
    assert found[1].sentences == (
        "lake.a1: its newest commit is of 2026-03-01T06:00:00+00:00, 30.0 hours ago (freshness: block_after_hours: 5)",
    )
    stale = next(judged(source, rows, [_batch(1, 50)], NOW))
    assert stale.sentences[0].startswith(
        "fresh: its newest commit or heartbeat is of 2026-03-02T08:00:00+00:00, 4.0 hours"
    )


def test_a_time_in_the_future_keeps_nothing_fresh() -> None:
    """It is reported when it comes; whatever comes later, the newest time that may be true is judged."""
    source = _source(freshness=LIMITS, tables={"orders": {"freshness": LIMITS}})
    century = -24 * 365 * 100.0
    rows = [_table("orders", 30), _table("orders", century, cut=2)]
    of_source, of_table = judged(source, rows, [_batch(1, 1), _batch(2, century)], NOW)
    assert (of_source.result.severity, of_source.result.success) == ("warn", False)
    assert of_source.result.observed == "1.0, and a newer time in the future"
    (sentence,) = of_source.sentences
    assert sentence.startswith("fresh: a commit or heartbeat is of 2126-02-06T12:00:00+00:00, in the future")
    assert (of_table.result.severity, of_table.result.success) == ("block", False)
    assert of_table.sentences[1] == (
        "lake.orders: its newest commit is of 2026-03-01T06:00:00+00:00, 30.0 hours ago "
        "(freshness: block_after_hours: 24)"
    )
    later = judged(source, [*rows, _table("orders", 1, cut=3)], [_batch(2, century), _batch(3, 1)], NOW)
    assert [(each.result.success, each.result.observed, each.sentences) for each in later] == [(True, "1.0", ())] * 2


def test_a_table_that_never_came_is_told() -> None:
    """A limit of a table of which nothing was published, as its name is wrong or it is not exported, warns."""
    limits = {"freshness": {"block_after_hours": 24}}
    tables = {"shop.orders": limits, "shop.never": limits, "shop.*": limits, "shop.more": {}}
    rows = [_table("shop.orders", 1)]
    _, never = judged(_source(tables=tables), rows, [], NOW)
    assert never.sentences == ("shop.never: freshness cannot be judged: nothing of it was ever published",)
    assert (never.result.columns, never.result.severity, never.blocks) == (("shop.never",), "warn", False)
    assert [each.result.name for each in judged(_source(freshness=LIMITS), [], [], NOW)] == [OF_SOURCE]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "says nothing"),
        ({"warn_after_hours": 3, "block_after_hours": 3}, "more than warn_after_hours"),
        ({"warn_after_hours": 0}, "greater than 0"),
        ({"warn_after": 3}, "warn_after"),
    ],
)
def test_limits_that_make_no_sense_are_refused(given: Any, message: str) -> None:
    """An empty entry, limits in the wrong order, no time at all, and a key that is none."""
    with pytest.raises(ValidationError, match=message):
        Freshness.model_validate(given)


@pytest.mark.spark
def test_a_stale_table_holds_the_cut_and_fails_each_run_until_it_is_fresh(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """The age is reported by every run, also by one that brings nothing new; a newer commit ends it."""
    item, now = Table("stale", columns=("id", "name")), datetime.now(UTC)
    fields = {
        "source": "stale",
        "format": "debezium_json",
        "landing": str(tmp_path / "*"),
        "freshness": LIMITS,
        "tables": {"shop.stale": {"key": ["id"], "freshness": LIMITS}},
    }
    source = Source.model_validate(fields)
    ledger = Ledger(lake, "stale")
    heartbeat = json.dumps({"ts_ms": int((now - timedelta(hours=1)).timestamp() * 1000)}).encode()
    deliver(tmp_path, "1", [timed(item.insert(1, 1, "a"), now - timedelta(hours=30)), heartbeat])
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, source, None, None)
    report = run_stage("check", source, None, None)
    assert any("stale.stale: its newest commit is of" in problem for problem in report.problems)
    assert not any("heartbeat" in text for text in (*report.problems, *report.remarks))
    cut = ledger.last_cut()
    assert cut is not None
    assert cut.state == CutState.AWAITING_APPROVAL
    found = {row.name: (row.success, row.severity, row.columns) for row in ledger.checks() if row.target == "stale"}
    assert found == {OF_SOURCE: (True, "warn", ()), OF_TABLE: (False, "block", ("stale.stale",))}

    run_stage("publish", source, approve=cut.cut)
    again = run_all(source)
    assert again["compact"].summary["tables"] == 0
    assert [problem.split(",")[1] for problem in again["check"].problems] == [
        " 30.0 hours ago (freshness: block_after_hours: 24)"
    ]

    deliver(tmp_path, "2", [timed(item.insert(2, 2, "b"), now)])
    fresh = run_all(source)["check"]
    assert (fresh.problems, fresh.remarks) == ((), ())
