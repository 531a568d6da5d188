"""Events that were decoded before the source file named a new log or a load are told: it hides them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import BatchRow, CutRow, FileRow
from tidemark.ledger.states import CutState
from tidemark.ledger.tally import log_of
from tidemark.positions import encode_position
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.outdated_ranks import OUTDATED_RANKS, UNNAMED_RANKS, judged
from tidemark.sources.model import Source

_NUMBERS = itertools.count(1)
_RELOADED = {"tables": {"shop.o*": {"reloads": ["2026-04-05T12:00:00Z"]}}}


def _at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 4, day, hour, tzinfo=UTC)


def _span(batch: int, rank: int, *hours: tuple[int, int], table: str = "shop.orders", **more: Any) -> SpanRow:
    times = [_at(*each) for each in hours]
    position = encode_position((rank, batch))
    ends = {"first": min(times), "last": max(times)} if times else {}
    return SpanRow(batch=batch, object=table, newest=position, oldest=position, **ends, **more)


def _found(
    lake: Lake,
    spans: Iterable[SpanRow],
    *,
    published: int = 0,
    reprocessed: int | None = 1,
    days: Any = lambda batch: [batch],
    **fields: Any,
) -> list[str]:
    """The sentences about what a cut of all batches holds, the last reprocessing of which is not published."""
    given = {"source": f"ranks_{next(_NUMBERS)}", "format": "canal_json", "landing": "/l/%Y-%m-%d/*", **fields}
    source, rows = Source.model_validate(given), list(spans)
    ledger = Ledger(lake, source.source)
    ledger.replace(SpanRow, rows)
    counted = {"landed": 1, "decoded": 1, "control": 0, "quarantined": 0, "events": 1}
    file = {"size": 1, "modified": "1", "checksum": "1", "container": "x", "messages": 1}
    for batch in sorted({row.batch for row in rows}):
        ledger.replace(BatchRow, [BatchRow(batch=batch, **counted)])
        for day in days(batch):
            start = _at(day) if day else None
            ledger.replace(FileRow, [FileRow(batch=batch, path=f"/{batch}/{day}", interval_start=start, **file)])
    newest = max(row.batch for row in rows)
    cut = CutRow(cut=2, state=CutState.CANDIDATE, batch=newest, reprocessed=reprocessed)
    found = list(judged(ledger, source, JudgedBatches(published, newest), cut))
    assert all(each.blocks and each.result.approvable for each in found)
    assert {each.result.name for each in found} <= {OUTDATED_RANKS, UNNAMED_RANKS}
    return [sentence for each in found for sentence in each.sentences]


def test_a_partial_reprocess_is_held_with_what_it_left(lake: Lake) -> None:
    """Published before or not: the rows of the load replace what came after it, as long as that ranks below."""
    spans = [_span(1, 1, (1, 0)), _span(5, 3, (5, 12), (5, 20)), _span(6, 1, (6, 3), (6, 9)), _span(8, 1, (8, 1))]
    for published in (0, 8):
        (sentence,) = _found(lake, spans, published=published, **_RELOADED)
        assert "events of shop.orders from 2026-04-06T03:00:00Z to 2026-04-08T01:00:00Z were decoded before" in sentence
        assert "--start 2026-04-06 --reprocess`" in sentence


def test_what_is_decoded_by_the_file_is_not(lake: Lake) -> None:
    """Each by its own time; a table without an entry has no loads, and nothing is said of events without a time."""
    spans = [
        _span(1, 1, (5, 11)),
        _span(2, 3, (5, 12)),
        _span(3, 2, (6, 0)),
        _span(4, 1, (9, 0), table="shop.customers"),
        _span(5, 1),
    ]
    assert _found(lake, spans, **_RELOADED) == []
    assert _found(lake, [span for span in spans if log_of(span.newest) == 1]) == []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tables": {"shop.orders": {"max_deletes": 0.5}, **_RELOADED["tables"]}},
        {"tables": {"shop.customers": _RELOADED["tables"]["shop.o*"]}},
    ],
    ids=["taken out", "hidden by an entry", "under another table"],
)
def test_a_load_that_is_named_no_more_holds_what_comes_later(lake: Lake, fields: dict[str, Any]) -> None:
    """The load is published, and would replace all that is decoded by the file of now; not so in a table that rests."""
    load, later = _span(5, 2), _span(6, 1, (6, 0))
    (sentence,) = _found(lake, [_span(1, 1, (1, 0)), load, later], published=5, reprocessed=None, **fields)
    assert sentence.startswith("ranks_"), sentence
    assert "events of shop.orders rank behind a new log or load" in sentence
    other = _span(6, 1, (6, 0), table="shop.items")
    assert _found(lake, [_span(1, 1, (1, 0)), load, other], published=5, reprocessed=None, **fields) == []


def test_a_restart_that_is_named_no_more_is_told_beside_one_that_is(lake: Lake) -> None:
    """Each moment opens one log; as many as the file names may be there."""
    spans = [_span(1, 1, (1, 0)), _span(4, 5, (4, 0)), _span(5, 5, (5, 0))]
    named = {"log_restarts": ["2026-04-02", "2026-04-03"]}
    assert _found(lake, spans, published=4, reprocessed=None, **named) == []
    (sentence,) = _found(lake, spans, published=4, reprocessed=None, log_restarts=["2026-04-02"])
    assert "write the moments as they were" in sentence


def test_what_was_published_is_asked_again_only_after_a_reprocess(lake: Lake) -> None:
    """Once a person has approved it, and nothing was decoded anew."""
    spans = [_span(5, 3, (5, 13)), _span(6, 1, (6, 0)), _span(7, 3, (7, 0))]
    assert _found(lake, spans, published=6, reprocessed=None, **_RELOADED) == []
    assert len(_found(lake, spans, published=5, reprocessed=None, **_RELOADED)) == 1


def test_restarts_and_loads_count_together(lake: Lake) -> None:
    """An event behind both ranks above both; of one batch that holds events on both sides, the newest says it."""
    fields = {**_RELOADED, "log_restarts": ["2026-04-03"]}
    assert _found(lake, [_span(1, 3, (2, 0), (3, 1)), _span(2, 5, (6, 0))], **fields) == []
    (sentence,) = _found(lake, [_span(1, 1, (2, 0), (3, 1)), _span(2, 3, (4, 0), (6, 0))], **fields)
    assert "from 2026-04-03T00:00:00Z to 2026-04-06T00:00:00Z" in sentence


def test_loaded_rows_count_by_the_time_at_which_they_were_read(lake: Lake) -> None:
    """They may have no commit time."""
    loaded = _span(6, 0, unplaced=4, unplaced_last=_at(6, 2))
    (sentence,) = _found(lake, [_span(1, 1, (1, 0)), loaded], **_RELOADED)
    assert "from 2026-04-05T12:00:00Z to 2026-04-06T02:00:00Z" in sentence


@pytest.mark.parametrize(
    ("days", "command"),
    [
        (lambda batch: [batch - 2, batch - 1], " --start 2026-04-05 --reprocess`"),
        (lambda batch: [batch, None], " --reprocess`"),
        (lambda batch: [batch] if batch == 7 else [None], " --start 2026-04-07 --reprocess`"),
    ],
    ids=["late files", "without a time", "one without a time"],
)
def test_the_command_takes_a_file_of_each_batch(lake: Lake, days: Any, command: str) -> None:
    """A batch is decoded again if one of its files is of the interval; a file without a time is of every interval."""
    (sentence,) = _found(lake, [_span(6, 1, (6, 0)), _span(7, 1, (7, 0))], days=days, **_RELOADED)
    assert sentence.endswith(f"{command} decodes them again"), sentence
