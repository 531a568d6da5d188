"""Flattened rows that have their place in the log only since a change of settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tidemark.lake.log_schemas import RAW
from tidemark.ledger.order_rows import SpanRow
from tidemark.normalization.decoder import Decoder
from tidemark.normalization.tasks import Decoding
from tidemark.positions import encode_position, is_by_time
from tidemark.quality.doubts import LOG_WENT_BACK, doubts_about
from tidemark.sources.model import Source

SOURCE = Source.model_validate({"source": "shop", "format": "debezium_json", "landing": "/landing/*"})
NOON = 1_707_047_996_000
LSN = {"__connector": "postgresql", "__lsn": 24023128}
LATER_LSN = {"__connector": "postgresql", "__lsn": 24023200}
SEQUENCE = {**LSN, "__source_sequence": '["24023119","24023128"]', "__source_name": "shop"}
LATER_SEQUENCE = {**LATER_LSN, "__source_sequence": '["24023190","24023200"]', "__source_name": "shop"}
BINLOG = {"__connector": "mysql", "__file": "mysql-bin.000003", "__pos": 484, "__row": 0}


def _row(second: int, op: str = "u", **added: Any) -> dict[str, Any]:
    return {"id": 1, "__op": op, "__table": "t", "__source_ts_ms": NOON + second * 1000, **added}


def _spans(batch: int, rows: Sequence[dict[str, Any]], part: int, delivery: str) -> list[SpanRow]:
    decode = Decoding(format_name="debezium_json", options={}).decode()
    decoder = Decoder(batch, decode, lambda *_: None, lambda *_: None)
    landed = {"batch": batch, "landed_at": datetime(2026, 1, 1, tzinfo=UTC), "file": "a"}
    raw = [{**landed, "place": place, "value": json.dumps(row).encode()} for place, row in enumerate(rows, 1)]
    if delivery == "topic":
        raw = [{**each, "topic": "t", "partition": 0, "offset": each["place"]} for each in raw]
    for first in range(0, len(raw), part):
        decoder.add(pa.RecordBatch.from_pylist(raw[first : first + part], schema=RAW))
    return [SpanRow.of(batch, name, span) for name, span in decoder.close().spans.items()]


@pytest.mark.parametrize("delivery", ["topic", "file"])
@pytest.mark.parametrize("part", [1, 100])
@pytest.mark.parametrize(
    "later",
    [
        [_row(3, **LSN), _row(4, "d", **LATER_LSN)],
        [_row(3, **SEQUENCE), _row(4, "d", **LATER_SEQUENCE)],
        [_row(3, "d", **BINLOG)],
    ],
)
def test_a_place_that_rows_have_only_since_then_holds_the_cut(
    later: list[dict[str, Any]], part: int, delivery: str
) -> None:
    """In one run as in two: times are above places, so the later changes would lose."""
    before = [_row(1, "c"), _row(2)]
    together = doubts_about(SOURCE, _spans(1, [*before, *later], part, delivery), 0)
    apart = [*_spans(1, before, part, delivery), *_spans(2, later, part, delivery)]
    for found in (together, doubts_about(SOURCE, apart, 1)):
        (doubt,) = found["t"]
        assert doubt.invariant == LOG_WENT_BACK
        assert "`log_restarts: [2024-02-04T11:59:59Z]`" in doubt.reason


@pytest.mark.parametrize("added", [[{}, {}], [LSN, LATER_LSN], [SEQUENCE, LATER_SEQUENCE]])
def test_rows_of_one_kind_hold_nothing(added: list[dict[str, Any]]) -> None:
    """Whether all have a place or none; and a load has one of its own."""
    load = _row(0, "r", **added[0], __snapshot="true")
    rows = [load, *(_row(second, **fields) for second, fields in enumerate(added, 1))]
    assert doubts_about(SOURCE, _spans(1, rows, 100, "topic"), 0) == {}


@pytest.mark.parametrize("order", [(1, 0, 9), (0, 0, "a", 9)])
def test_positions_by_time_are_told_by_their_parts(order: tuple[Any, ...]) -> None:
    """Positions of changes with a place, of loads and of statements have others."""
    assert is_by_time(encode_position((1, NOON, *order)))
    placed = [(24023128, 0, 1, *order), (24023128, 0, 1, "", 0, *order, ""), (3, 484, 0, 1), (24023128, 0, 1)]
    assert not any(is_by_time(encode_position((1, *position))) for position in placed)
