"""Reprocessing: the batches of an interval, those of retries with them, and the tables that are built again for it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tidemark.events import TableId
from tidemark.lake.filters import among
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, ContentRow, FileRow, TransactionRow
from tidemark.ledger.tally import Content, Tally
from tidemark.ledger.transactions import OPEN
from tidemark.normalization import reprocessing


def _file(batch: int, shown: datetime | None) -> FileRow:
    """A file of a batch, with the time that its path names, as a clock shows it."""
    size = {"size": 9, "modified": "1", "checksum": str(batch), "container": "lines", "messages": 1}
    return FileRow(batch=batch, path=f"f{batch}", interval_start=shown, **size)


BERLIN = [
    _file(1, datetime(2026, 3, 28, 23, tzinfo=UTC)),
    _file(2, datetime(2026, 3, 29, 1, tzinfo=UTC)),
    _file(3, datetime(2026, 10, 25, 2, tzinfo=UTC)),
    _file(4, None),
]


@pytest.mark.parametrize(
    ("start", "end", "batches"),
    [
        (None, None, {1, 2, 3, 4}),
        (datetime(2026, 3, 29, tzinfo=UTC), None, {2, 3, 4}),
        (None, datetime(2026, 3, 29, tzinfo=UTC), {1, 4}),
        (datetime(2026, 3, 28, 22, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC), {1, 4}),
        (datetime(2026, 10, 25, 0, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC), {3, 4}),
        (datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 10, 25, 2, tzinfo=UTC), {3, 4}),
        (datetime(2026, 10, 25, 2, tzinfo=UTC), datetime(2026, 10, 25, 3, tzinfo=UTC), {4}),
    ],
)
def test_batches_of_an_interval(start: datetime | None, end: datetime | None, batches: set[int]) -> None:
    """Paths show the clock of the source's zone. An hour that it shows twice is of both; no time is of all times."""
    assert reprocessing.batches_of(BERLIN, ZoneInfo("Europe/Berlin"), start, end) == batches


def _batch(number: int, retry_of: int | None = None) -> BatchRow:
    counts = {"landed": 1, "decoded": 1, "control": 0, "quarantined": 0, "events": 1}
    return BatchRow(batch=number, retry_of=retry_of, **counts)


def _content(name: str) -> Content:
    return Content(TableId(None, None, name), "insert", None, partial=False, key=None, half=False)


def _ledger(lake: Lake, name: str) -> Ledger:
    """Tables of three batches; messages of the first were retried in the third."""
    ledger = Ledger(lake, name)
    ledger.replace(BatchRow, [_batch(1), _batch(2), _batch(3, retry_of=1)])
    contents = [(1, "orders"), (2, "rest"), (3, "late")]
    ledger.replace(ContentRow, [ContentRow.of(batch, _content(table), 1) for batch, table in contents])
    return ledger


def test_what_was_retried_of_a_batch_is_derived_again_with_it(lake: Lake) -> None:
    """Its tables are built again too; those of other batches are not."""
    ledger = _ledger(lake, "begun")
    assert reprocessing.with_retries(ledger, [1]) == {1, 3}
    assert reprocessing.with_retries(ledger, [2, 3]) == {2, 3}
    replaced = reprocessing.begin(ledger, [1])
    assert {row.batch for row in ledger.contents(replaced)} == {1, 3}
    assert ledger.reprocessing() == {1}
    assert ledger.rebuild_requests().keys() == {"orders", "late"}


def test_where_transactions_are_known_every_table_is_built_again(lake: Lake) -> None:
    """Another message may make a transaction whole, and it may concern any table."""
    ledger = _ledger(lake, "begun_with_transactions")
    row = TransactionRow(batch=2, id="t", state=OPEN, since=2, events=1, seen="{}")
    ledger.replace(TransactionRow, [row])
    reprocessing.begin(ledger, [2])
    assert ledger.rebuild_requests().keys() == {"orders", "rest", "late"}


def test_nothing_is_announced_where_nothing_is_derived_again(lake: Lake) -> None:
    """An announcement would let the next normalize repeat a reprocessing."""
    ledger = Ledger(lake, "announced")
    reprocessing.announce(ledger, [])
    assert ledger.reprocessing() == set()


def test_tables_that_have_events_of_the_batches_now_are_built_again(lake: Lake) -> None:
    """Also one that had none of them before."""
    ledger = _ledger(lake, "concerned")
    found = {1: [Tally(contents=[(_content("orders"), 2)]), Tally(contents=[(_content("new"), 1)])], 3: [Tally()]}
    assert reprocessing.concerned(ledger, found, among("batch", {1, 3})) == {"orders", "new"}
