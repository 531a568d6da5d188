"""Events with a place in the log and events with a place in the dump are not mixed in one table without a word."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import CutRow
from tidemark.ledger.states import CutState
from tidemark.positions import Position, encode_position
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.mixed_orders import MIXED_ORDERS, judged
from tidemark.sources.model import Source

_NUMBERS = itertools.count(1)
_IN_LOG: Position = (1, 311, 900_100, 1, 2, 70)
_IN_TOPIC: Position = (1, 1, 2, 71)
_IN_FILE: Position = (1, 0, 0, "day.jsonl", 3)
_LOADED: Position = (0, 1, 2, 5)


def _span(batch: int, newest: Position, oldest: Position | None = None, table: str = "mall.carts") -> SpanRow:
    low = encode_position(oldest or newest)
    return SpanRow(batch=batch, object=table, newest=encode_position(newest), oldest=low)


def _found(
    lake: Lake,
    spans: Iterable[SpanRow],
    *,
    published: int = 1,
    reprocessed: int | None = None,
    format_: str = "dts_avro",
) -> list[str]:
    """The sentences about a cut of all batches."""
    given: dict[str, Any] = {"source": f"mixed_{next(_NUMBERS)}", "format": format_, "landing": "/l/*"}
    source, rows = Source.model_validate(given), list(spans)
    ledger = Ledger(lake, source.source)
    ledger.replace(SpanRow, rows)
    newest = max(row.batch for row in rows)
    cut = CutRow(cut=2, state=CutState.CANDIDATE, batch=newest, reprocessed=reprocessed)
    found = list(judged(ledger, source, JudgedBatches(published, newest), cut))
    assert all(each.blocks and each.result.name == MIXED_ORDERS for each in found)
    return [sentence.replace(source.source, "SOURCE") for each in found for sentence in each.sentences]


@pytest.mark.parametrize("place", [_IN_TOPIC, _IN_FILE])
def test_new_events_of_the_other_kind_hold_the_cut(lake: Lake, place: Position) -> None:
    """A lake of an earlier version has places in the logs of single shards; what comes now has a place in the dump."""
    for spans in ([_span(1, _IN_LOG), _span(2, place)], [_span(1, place), _span(2, _IN_LOG)]):
        (sentence,) = _found(lake, spans)
        assert sentence.startswith("SOURCE: some events of mall.carts have a place in the source's log, and others")
        assert "`tidemark run SOURCE --reprocess` gives all the same kind" in sentence


def test_a_batch_that_has_both_kinds_holds_the_cut(lake: Lake) -> None:
    """The lowest and the highest position say it."""
    assert len(_found(lake, [_span(1, _IN_LOG, _IN_TOPIC)], published=0)) == 1


def test_events_of_one_kind_are_compared(lake: Lake) -> None:
    """Each table has its own; rows of a load rank below all changes; a new log ranks above all of the old one."""
    assert _found(lake, [_span(1, _IN_LOG), _span(2, _IN_LOG), _span(2, _IN_TOPIC, table="mall.shops")]) == []
    assert _found(lake, [_span(1, _IN_LOG), _span(2, _LOADED)]) == []
    assert _found(lake, [_span(1, _IN_LOG, _LOADED), _span(2, _IN_LOG)]) == []
    assert _found(lake, [_span(1, _IN_LOG), _span(2, (3, *_IN_TOPIC[1:]))]) == []


def test_what_was_published_is_asked_again_only_with_new_events_or_after_a_reprocess(lake: Lake) -> None:
    """A person approved it, or it was published by an earlier version; a reprocess of some intervals leaves a part."""
    spans = [_span(1, _IN_LOG), _span(2, _IN_TOPIC), _span(3, _IN_TOPIC, table="mall.shops")]
    assert _found(lake, spans, published=2) == []
    assert len(_found(lake, spans, published=3, reprocessed=1)) == 1


def test_a_format_with_one_kind_of_place_is_not_asked(lake: Lake) -> None:
    """Positions of other formats have other forms."""
    assert _found(lake, [_span(1, _IN_LOG), _span(2, _IN_TOPIC)], format_="canal_json") == []
