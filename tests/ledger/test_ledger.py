"""The ledger as tables: its files, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update.snapshot import ExpireSnapshots

from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger import storage
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import IntervalRow, RebuildRow


def test_a_ledger_table_is_gathered_for_the_source_that_crowds_it(lake: Lake) -> None:
    """Rows of other sources, however many their files, are no reason to rewrite; nor is it an error to have none."""
    many, few = Ledger(lake, "of_many_cuts"), Ledger(lake, "of_no_cut")
    for number in range(5):
        many.replace(RebuildRow, [RebuildRow(object=f"shop.t{number}", asked="now")])

    def files(source: str) -> int:
        where = equals("source", source)
        return len(list(lake.load(("ledger", "rebuilds")).scan(row_filter=where).plan_files()))

    few.rewrite("rebuilds", 5)
    assert files("of_many_cuts") == 5
    many.rewrite("rebuilds", 6)
    assert files("of_many_cuts") == 5
    requests = many.rebuild_requests()
    many.rewrite("rebuilds", 5)
    assert files("of_many_cuts") == 1
    assert many.rebuild_requests() == requests


def _begin(ledger: Ledger, count: int) -> None:
    """Append rows, each in a commit of its own."""
    for number in range(count):
        ledger.replace(IntervalRow, [IntervalRow(start=datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC), end=None)])


def _snapshots(lake: Lake) -> int:
    return len(lake.load(("ledger", "intervals")).metadata.snapshots)


def test_old_snapshots_go_by_themselves(lake: Lake) -> None:
    """Whoever writes the one too many drops them; no row goes."""
    ledger = Ledger(lake, "of_many_intervals")
    _begin(ledger, 45)
    assert _snapshots(lake) < 40
    assert len(ledger.intervals()) == 45


def test_another_writer_may_drop_the_same_snapshots(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between this commit and its own look for old snapshots: that is no error."""
    commit = storage.commit_files

    def commit_before_another(table: Any, *args: Any, **settings: Any) -> None:
        commit(table, *args, **settings)
        storage._expire(lake.load(table.name()))

    monkeypatch.setattr(storage, "commit_files", commit_before_another)
    ledger = Ledger(lake, "beside_another")
    _begin(ledger, 45)
    assert _snapshots(lake) < 40
    assert len(ledger.intervals()) == 45


def test_a_row_is_not_written_again_where_old_snapshots_cannot_be_dropped(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is committed by then."""

    def lost(_: ExpireSnapshots) -> None:
        raise CommitFailedException("another commit was faster")

    ledger = Ledger(lake, "of_lost_races")
    with monkeypatch.context() as patched:
        patched.setattr(ExpireSnapshots, "commit", lost)
        _begin(ledger, 45)
    assert len(ledger.intervals()) == 45
    _begin(ledger, 1)
    assert _snapshots(lake) < 40
