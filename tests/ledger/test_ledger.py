"""The ledger as tables: its files, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update.snapshot import ExpireSnapshots

from tidemark.errors import ConfigurationError
from tidemark.events import Operation, TableId
from tidemark.lake import fences
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.properties import LAKE_PROPERTY, LAKE_VERSION
from tidemark.ledger import storage
from tidemark.ledger.landing_rows import IntervalRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import DisorderRow
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.rows import RebuildRow
from tidemark.ledger.tally import Content, LoggedStatement, OffsetRange, OffsetsOf, Span, Tally

MANY = 15
"""Snapshots that a ledger table keeps in these tests."""


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_MANY_SNAPSHOTS", MANY)


def _files(lake: Lake, source: str) -> list[str]:
    scan = lake.load(("ledger", "rebuilds")).scan(row_filter=equals("source", source))
    return [task.file.file_path for task in scan.plan_files()]


def test_a_source_has_one_small_file_in_a_ledger_table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of its commits; a large file stays unless its rows go; files of other sources stay too."""
    ledger, other = Ledger(lake, "of_many_cuts"), Ledger(lake, "of_one_cut")
    other.replace(RebuildRow, [RebuildRow(object="shop.t", asked="once")])
    alone = _files(lake, "of_one_cut")
    requests = [RebuildRow(object=f"shop.t{number}", asked="now") for number in range(4)]
    for request in requests:
        ledger.replace(RebuildRow, [request], equals("object", request.object))
    small = _files(lake, "of_many_cuts")
    assert len(small) == 1
    with monkeypatch.context() as patched:
        patched.setattr(storage, "_SMALL", 0)
        ledger.replace(RebuildRow, [RebuildRow(object="shop.u", asked="now")])
        assert set(small) < set(_files(lake, "of_many_cuts"))
        ledger.forget(RebuildRow, equals("object", "shop.t0"))
    assert not set(small) & set(_files(lake, "of_many_cuts"))
    assert set(ledger.rebuild_requests()) == {"shop.t1", "shop.t2", "shop.t3", "shop.u"}
    assert _files(lake, "of_one_cut") == alone


def test_a_table_that_was_requested_with_others_is_answered_by_itself(lake: Lake) -> None:
    """Of a rebuild of all tables, one may stop: it still waits for its own."""
    ledger = Ledger(lake, "of_requests_together")
    ledger.request_rebuild(["shop.t", "shop.u"], by_hand=True)
    requests = ledger.rebuild_requests()
    assert len(set(requests.values())) == 1
    ledger.answered({"shop.t": requests["shop.t"]})
    assert ledger.rebuild_requests() == {"shop.u": requests["shop.u"]}
    ledger.request_rebuild(["shop.u"])
    later = ledger.rebuild_requests()
    ledger.answered(requests)
    assert ledger.rebuild_requests() == later


def test_a_ledger_table_lists_few_manifests(lake: Lake) -> None:
    """What lists only files that earlier commits removed is read by none of the later ones."""
    ledger = Ledger(lake, "of_many_requests")
    for number in range(6):
        ledger.replace(RebuildRow, [RebuildRow(object="shop.t", asked=f"{number}")], equals("object", "shop.t"))
    table = lake.load(("ledger", "rebuilds"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    dead = [each for each in snapshot.manifests(table.io) if not (each.has_added_files() or each.has_existing_files())]
    assert [each.added_snapshot_id for each in dead] == [snapshot.snapshot_id]
    assert ledger.rebuild_requests() == {"shop.t": "5"}


def test_what_deletes_nothing_commits_nothing(lake: Lake) -> None:
    """A source without the rows, or without any, leaves the table as it is."""
    ledger = Ledger(lake, "of_no_change")
    ledger.replace(RebuildRow, [RebuildRow(object="shop.t", asked="now")])
    before = lake.load(("ledger", "rebuilds")).metadata_location
    ledger.forget(RebuildRow, equals("object", "shop.u"))
    Ledger(lake, "of_nothing").forget(RebuildRow)
    assert lake.load(("ledger", "rebuilds")).metadata_location == before


def test_nothing_of_an_attempt_stays_where_the_next_one_finds_nothing(lake: Lake) -> None:
    """What a killed run counted of its batches is replaced by what the next run counts, be it nothing at all."""
    table = TableId("shop", None, "t")
    counted = Tally(
        contents=[(Content(table, Operation.INSERT, "s1", partial=False, key=("id",), half=False), 2)],
        shapes=[(table, "s1", "[]")],
        spans={"shop.t": Span(newest="011")},
        statements=[LoggedStatement(table, "011", "mysql", "TRUNCATE TABLE t")],
        offsets=[OffsetsOf("topic", 0, [OffsetRange(3, 4, "a", 0)], dense=True)],
    )
    ledger = Ledger(lake, "of_a_killed_attempt")
    ledger.write_contents({1: [counted]}, 0)
    names = ("contents", "spans", "offsets", "shapes", "ddl")
    kept = {name: ledger.read(name) for name in names}
    other = msgspec.structs.replace(counted, shapes=[(table, "s2", "[]")])
    ledger.write_contents({2: [other]}, 1)
    assert {name: len(ledger.read(name)) for name in names} == dict.fromkeys(names, 2)
    ledger.write_contents({2: [Tally()]}, 1)
    assert {name: ledger.read(name) for name in names} == kept


def _begin(ledger: Ledger, count: int) -> None:
    """Append rows, each in a commit of its own."""
    for number in range(count):
        ledger.replace(IntervalRow, [IntervalRow(start=datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC), end=None)])


def _snapshots(lake: Lake) -> int:
    return len(lake.load(("ledger", "intervals")).metadata.snapshots)


def test_old_snapshots_go_by_themselves(lake: Lake) -> None:
    """Whoever writes the one too many drops them; no row goes."""
    ledger = Ledger(lake, "of_many_intervals")
    _begin(ledger, MANY + 5)
    assert _snapshots(lake) < MANY
    assert len(ledger.intervals()) == MANY + 5


def test_a_fence_stays_when_old_snapshots_go(lake: Lake) -> None:
    """Its snapshot is old as well, and no reason to keep the others."""
    ledger = Ledger(lake, "of_a_fence")
    _begin(ledger, 1)
    fences.shut(lake.load(("ledger", "intervals")), "of_a_fence", 3)
    _begin(ledger, MANY + 5)
    assert _snapshots(lake) < MANY
    assert fences.token_of(lake.load(("ledger", "intervals")), "of_a_fence") == 3


def test_a_lake_of_a_newer_version_is_refused(lake: Lake) -> None:
    """By reading and by writing, before anything is read or written; a new lake says its version."""
    ledger = Ledger(lake, "of_a_newer_lake")
    ledger.replace(DisorderRow, [])
    table = lake.load(("ledger", "disorders"))
    assert table.properties[LAKE_PROPERTY] == str(LAKE_VERSION)
    with table.transaction() as transaction:
        transaction.set_properties({LAKE_PROPERTY: "2"})
    message = "this lake is of version 2, and this Tidemark knows lakes up to version 1: .* Nothing was changed"
    try:
        for refused in (ledger.disorders, ReadOnce(lake, "of_a_newer_lake").disorders):
            with pytest.raises(ConfigurationError, match=message):
                refused()
        with pytest.raises(ConfigurationError, match=message):
            ledger.replace(DisorderRow, [])
        with pytest.raises(ConfigurationError, match=message):
            ledger.forget(DisorderRow)
    finally:
        with table.transaction() as transaction:
            transaction.set_properties({LAKE_PROPERTY: str(LAKE_VERSION)})


def test_another_writer_may_drop_the_same_snapshots(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between this commit and its own look for old snapshots: that is no error."""
    commit = storage.commit_files

    def commit_before_another(table: Any, *args: Any, **settings: Any) -> None:
        commit(table, *args, **settings)
        storage._expire(lake.load(table.name()))

    monkeypatch.setattr(storage, "commit_files", commit_before_another)
    ledger = Ledger(lake, "beside_another")
    _begin(ledger, MANY + 5)
    assert _snapshots(lake) < MANY
    assert len(ledger.intervals()) == MANY + 5


def test_a_row_is_not_written_again_where_old_snapshots_cannot_be_dropped(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is committed by then."""

    def lost(_: ExpireSnapshots) -> None:
        raise CommitFailedException("another commit was faster")

    ledger = Ledger(lake, "of_lost_races")
    with monkeypatch.context() as patched:
        patched.setattr(ExpireSnapshots, "commit", lost)
        _begin(ledger, MANY + 5)
    assert len(ledger.intervals()) == MANY + 5
    _begin(ledger, 1)
    assert _snapshots(lake) < MANY
