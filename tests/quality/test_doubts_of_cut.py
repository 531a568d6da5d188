"""A table is asked about when a cut takes its events in: also about those that earlier cuts went without."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import CutRow, FileRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.positions import changed, encode_position
from tidemark.quality.doubt import Doubt
from tidemark.quality.doubts import LOG_WENT_BACK, invariants
from tidemark.quality.doubts_of_cut import doubts_of_cut
from tidemark.quality.unplaced_loads import UNPLACED_LOAD
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source
from tidemark.stages import check

ORDERS, REST = "shop.orders", "shop.rest"
_numbers = count(1)


def _source(name: str) -> Source:
    return Source.model_validate({"source": name, "format": "debezium_json", "landing": "x"})


def _span(batch: int, file: int, table: str = ORDERS) -> SpanRow:
    """Changes of a batch, in a file of MySQL's log; each batch is an hour later than the one before."""
    place = encode_position(changed(file, batch, "", 0, 1, 0, 9, "", 0, 1))
    at = datetime(2026, 3, 1, batch, tzinfo=UTC)
    return SpanRow(batch=batch, object=table, newest=place, oldest=place, first=at, last=at)


def _row(cut: int, state: TableState = TableState.PUBLISHED, table: str = ORDERS, **fields: Any) -> TableRow:
    took = {"events": 1, "applied": 1} if state == TableState.PUBLISHED else {"events": 1, "held": 1}
    return TableRow(cut=cut, object=table, state=state, **{"batch": cut, **took, **fields})


def _doubts(
    lake: Lake, spans: Iterable[SpanRow], rows: Iterable[TableRow], published: Iterable[int], into: Mapping[str, str]
) -> dict[str, list[Doubt]]:
    """The doubts of a cut that follows published ones, each of which has the number of its batch."""
    source, numbers = _source(f"of_cut_{next(_numbers)}"), list(published)
    ledger, newest = Ledger(lake, source.source), CutRow(cut=9, state=CutState.CANDIDATE, batch=9)
    ledger.replace(CutRow, [newest, *(CutRow(cut=each, state=CutState.PUBLISHED, batch=each) for each in numbers)])
    ledger.replace(TableRow, list(rows))
    ledger.replace(SpanRow, list(spans))
    return doubts_of_cut(source, ledger, newest, into)


def _begun(doubts: Mapping[str, list[Doubt]]) -> dict[str, list[tuple[str, str]]]:
    """By table the kind of each doubt, and the hour that it names as the beginning of a new log."""
    hours = {each: re.findall(r"T(\d+):00:00Z\]", each.reason) for of_table in doubts.values() for each in of_table}
    return {name: [(each.invariant, *hours[each]) for each in of_table] for name, of_table in doubts.items()}


FAILED_OVER = [_span(1, 10), _span(2, 3), _span(1, 10, REST), _span(2, 11, REST)]
"""In batch 2 the changes of one table come from the log of another server."""

CASES: dict[str, tuple[list[SpanRow], list[TableRow], list[str], dict[str, list[tuple[str, str]]]]] = {
    "it_is_not_in_the_cut": (FAILED_OVER, [_row(1), _row(2, TableState.STOPPED, batch=1)], [REST], {}),
    "it_was_stopped": (
        FAILED_OVER,
        [_row(1), _row(2, TableState.STOPPED, batch=1)],
        [ORDERS],
        {ORDERS: [(LOG_WENT_BACK, "02")]},
    ),
    "it_was_stopped_and_goes_on": (
        [*FAILED_OVER, _span(9, 3)],
        [_row(1), _row(2, TableState.STOPPED, batch=1)],
        [ORDERS],
        {ORDERS: [(LOG_WENT_BACK, "02")]},
    ),
    "all_of_it_was_held": (
        FAILED_OVER,
        [_row(1), _row(2, TableState.UNMOVED)],
        [ORDERS],
        {ORDERS: [(LOG_WENT_BACK, "02")]},
    ),
    "all_of_it_was_held_while_a_row_was_erased": (
        FAILED_OVER,
        [_row(1), _row(2, TableState.UNMOVED), _row(3, batch=2, events=2, applied=0, held=1, erased=1)],
        [ORDERS],
        {ORDERS: [(LOG_WENT_BACK, "02")]},
    ),
    "it_waited_from_the_beginning": (
        FAILED_OVER,
        [_row(1, TableState.WAITING, batch=0), _row(2, TableState.WAITING, batch=0)],
        [ORDERS],
        {ORDERS: [(LOG_WENT_BACK, "02")]},
    ),
    "somebody_approved_it": (FAILED_OVER, [_row(1), _row(2)], [ORDERS], {}),
    "it_was_approved_while_a_part_was_held": (FAILED_OVER, [_row(1), _row(2, events=3, held=2)], [ORDERS], {}),
    "the_new_log_is_above_what_it_stands_at": (
        [_span(1, 2), _span(2, 5), _span(3, 4), _span(9, 4)],
        [_row(1), _row(2, TableState.STOPPED, batch=1), _row(3, TableState.STOPPED, batch=1)],
        [ORDERS],
        {ORDERS: [(LOG_WENT_BACK, "03")]},
    ),
    "a_log_that_goes_on": ([_span(1, 2), _span(2, 3), _span(9, 4)], [_row(1)], [ORDERS], {}),
    "events_of_an_earlier_name": (FAILED_OVER, [_row(1), _row(2, table=REST)], [], {ORDERS: [(LOG_WENT_BACK, "02")]}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_cut_asks_about(lake: Lake, name: str) -> None:
    """Batches 1 to 3 are those of published cuts; each table takes in what it went without."""
    spans, rows, built, expected = CASES[name]
    into = {each: each for each in built} or {ORDERS: "shop.renamed"}
    assert _begun(_doubts(lake, spans, rows, (1, 2, 3), into)) == expected


@pytest.mark.parametrize(("landed", "held"), [(1, []), (9, ["t"]), (None, ["t"])])
def test_files_of_published_batches_tell_which_stems_had_some(lake: Lake, landed: int | None, held: list[str]) -> None:
    """Those of the cut's own batch do not, and a lake may list none."""
    source = Source.model_validate({"source": f"of_cut_{next(_numbers)}", "format": "canal_json", "landing": "x"})
    ledger, names = Ledger(lake, source.source), ["/l/t-0-1.json", "/l/t-2-1.json", "/l/t-1-2.json"]
    low, high, new = (encode_position(changed(0, 0, name, 1)) for name in names)
    times = [datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in (1, 2)]
    ends = [(1, low, high, times[0]), (9, new, new, times[1])]
    ledger.replace(CutRow, [CutRow(cut=1, state=CutState.PUBLISHED, batch=1)])
    ledger.replace(TableRow, [_row(1, table="t")])
    ledger.replace(
        SpanRow,
        [
            SpanRow(batch=batch, object="t", oldest=oldest, newest=newest, first=at, last=at)
            for batch, oldest, newest, at in ends
        ],
    )
    if landed is not None:
        file = {"size": 1, "modified": "1", "checksum": "c", "container": "jsonl", "messages": 1}
        row = FileRow(batch=landed, path="/l/t-1-1.json", interval_start=None, **file)
        ledger.replace(FileRow, [row])
    cut = CutRow(cut=2, state=CutState.CANDIDATE, batch=9)
    assert list(doubts_of_cut(source, ledger, cut, {"t": "t"})) == held


def test_a_doubt_that_blocks_is_not_hidden_by_one_that_warns() -> None:
    """A table may take in the events of several names, with doubts of one kind."""
    doubts = [Doubt(UNPLACED_LOAD, 3, "x", severity=each) for each in (Severity.BLOCK, Severity.WARN)]
    assert {each.severity for order in (doubts, doubts[::-1]) for each in invariants(order).values()} == {"block"}


def test_a_table_that_takes_nothing_in_holds_no_cut(lake: Lake) -> None:
    """Its events are in no table of the cut, so nobody is asked to approve it, and it passes without a problem."""
    source = _source(f"of_cut_{next(_numbers)}")
    ledger = Ledger(lake, source.source)
    states = {1: CutState.PUBLISHED, 2: CutState.CANDIDATE}
    ledger.replace(CutRow, [CutRow(cut=each, state=state, batch=each) for each, state in states.items()])
    ledger.replace(TableRow, [_row(1), _row(2, TableState.STOPPED, batch=1, reason="another writer changed it")])
    ledger.replace(SpanRow, FAILED_OVER)
    assert check.run(source).problems == ()
    cut = ledger.last_cut()
    assert cut is not None
    assert cut.state == CutState.CHECKED
