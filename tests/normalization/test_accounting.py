"""No message goes missing: what landed, or was tried again, is decoded, a control message or in quarantine."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidemark.errors import LedgerError
from tidemark.events import TableId
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, FileRow
from tidemark.ledger.tally import Content, Tally
from tidemark.normalization.accounting import accounted, require_closed, retried

_AT = datetime(2026, 4, 1, 6, tzinfo=UTC)
_CHANGES = Content(TableId(None, None, "t"), "insert", None, partial=False, key=None, half=False)


def _file(batch: int, path: str, messages: int) -> FileRow:
    size = {"size": 9, "modified": "1", "checksum": path, "container": "lines"}
    return FileRow(batch=batch, path=path, messages=messages, interval_start=None, **size)


def test_what_landed_is_counted_by_file_and_what_became_of_it_by_task(lake: Lake) -> None:
    """A batch has several files and several tasks; a batch without messages has a row too."""
    ledger = Ledger(lake, "accounted")
    ledger.replace(FileRow, [_file(1, "a", 100), _file(2, "b", 4), _file(2, "c", 3)])
    tasks = [
        Tally(decoded=4, contents=[(_CHANGES, 5)], heard=1_775_023_200_000_000, logs=["c", "a"]),
        Tally(decoded=1, control=1, quarantined=1, contents=[(_CHANGES, 1)], logs=["b"]),
    ]
    rows = accounted(ledger, {3: [], 2: tasks}, 7)
    nothing = {"landed": 0, "decoded": 0, "control": 0, "quarantined": 0, "events": 0}
    counted = {"landed": 7, "decoded": 5, "control": 1, "quarantined": 1, "events": 6}
    assert rows == [
        BatchRow(batch=2, **counted, logs=("a", "b"), heard=_AT, reprocessed=7),
        BatchRow(batch=3, **nothing, logs=(), reprocessed=7),
    ]
    for row in rows:
        require_closed("shop", row)


@pytest.mark.parametrize("decoded", [4, 6])
def test_a_batch_that_lost_a_message_or_has_one_too_many_is_refused(decoded: int) -> None:
    """The error names the batch and all its figures."""
    row = BatchRow(batch=2, landed=7, decoded=decoded, control=1, quarantined=1, events=6)
    with pytest.raises(LedgerError, match=rf"shop, batch 2: 7 messages landed, but {decoded} decoded \+ 1 control"):
        require_closed("shop", row)


def test_messages_that_decode_now_leave_quarantine() -> None:
    """They landed before, so none lands again; those that still do not decode change nothing."""
    tallies = [Tally(landed=5, decoded=2, quarantined=3, contents=[(_CHANGES, 4)]), Tally(landed=1, control=1)]
    taken = {"landed": 0, "decoded": 2, "control": 1, "quarantined": -3, "events": 4}
    row = retried(9, 2, tallies)
    assert row == BatchRow(batch=9, **taken, retry_of=2)
    assert (row.landed, row.landed_with) == (row.accounted, 2)


def test_a_retry_that_lost_a_message_is_refused() -> None:
    """The error names the batch that the messages landed with, which is the one a person knows."""
    with pytest.raises(LedgerError, match="batch 2: 5 quarantined messages were tried again, but 2 decoded now"):
        retried(9, 2, [Tally(landed=5, decoded=2, quarantined=2)])
