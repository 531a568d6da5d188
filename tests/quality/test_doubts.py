"""New events that nothing ranks for certain are found in what batches span."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tidemark.events import changed, encode_position, loaded
from tidemark.ledger.order_rows import SpanRow
from tidemark.quality.doubts import LOG_WENT_BACK, TIME_WENT_BACK, UNPLACED_LOAD, doubts_about
from tidemark.sources.model import Source


def _source(format_name: str) -> Source:
    return Source.model_validate({"source": "shop", "format": format_name, "landing": "/landing/*"})


def _at(hour: int) -> datetime:
    return datetime(2026, 3, 1, hour, tzinfo=UTC)


def _span(batch: int, hours: tuple[int, int], *position: int | str, table: str = "t", **loads: Any) -> SpanRow:
    return SpanRow(
        batch=batch,
        object=table,
        newest=encode_position(changed(*position)),
        oldest=encode_position(changed(*position)),
        first=_at(hours[0]),
        last=_at(hours[1]),
        **loads,
    )


def _loaded(batch: int, hours: tuple[int, int], rows: int) -> SpanRow:
    return SpanRow(
        batch=batch,
        object="t",
        newest=encode_position(loaded(1, 0, 9)),
        first=_at(hours[0]),
        last=_at(hours[1]),
        unplaced=rows,
        unplaced_last=_at(hours[1]),
    )


def _untimed(batch: int, rows: int) -> SpanRow:
    return SpanRow(batch=batch, object="t", newest=encode_position(loaded(1, 0, 9)), unplaced=rows)


MYSQL_BACK = encode_position((1, 4, 500, "", 0, 1, 0, 9, "", 0, 1))
POSTGRES_BACK = encode_position((1, 500, 0, 1, "", 0, 1, 0, 9, ""))

KAFKA = (1, 0)
"""Begins a place in a dump with Kafka's offsets: the partition follows."""

CASES: dict[str, tuple[str, list[SpanRow], dict[str, set[str]]]] = {
    "a_log_goes_on": ("debezium_json", [_span(1, (1, 2), 120, 900), _span(2, (3, 4), 121, 4)], {}),
    "a_log_begins_anew": (
        "debezium_json",
        [_span(1, (1, 2), 120, 900), _span(2, (3, 4), 4, 500)],
        {"t": {LOG_WENT_BACK}},
    ),
    "the_log_of_an_old_server_comes_late": (
        "debezium_json",
        [_span(1, (5, 6), 4, 500), _span(2, (1, 2), 120, 900)],
        {"t": {TIME_WENT_BACK}},
    ),
    "the_log_of_an_old_server_beside_new_changes": (
        "debezium_json",
        [_span(1, (5, 6), 4, 500), _span(2, (1, 7), 120, 900)],
        {},
    ),
    "old_messages_sent_once_more_to_a_topic": (
        "canal_json",
        [_span(1, (5, 6), *KAFKA, 500), _span(2, (1, 2), *KAFKA, 900)],
        {"t": {TIME_WENT_BACK}},
    ),
    "old_messages_in_a_file": (
        "canal_json",
        [_span(1, (5, 6), 0, 0, "a", 1), _span(2, (1, 2), 0, 0, "b", 1)],
        {},
    ),
    "late_events": ("debezium_json", [_span(1, (5, 6), 120, 900), _span(2, (3, 4), 119, 4)], {}),
    "late_events_beside_new_ones": ("debezium_json", [_span(1, (5, 6), 120, 9), _span(2, (3, 8), 119, 4)], {}),
    "a_long_transaction_of_one_table_beside_others": (
        "debezium_json",
        [
            _span(1, (1, 2), 500, table="t"),
            _span(1, (1, 2), 510, table="u"),
            _span(2, (3, 3), 490, table="t"),
            _span(2, (3, 4), 600, table="u"),
        ],
        {},
    ),
    "a_table_of_another_server": (
        "debezium_json",
        [_span(1, (1, 2), 120, 9, table="a"), _span(1, (1, 2), 4, 9, table="b"), _span(2, (3, 4), 5, 1, table="b")],
        {},
    ),
    "the_source_file_says_so": (
        "debezium_json",
        [
            _span(1, (1, 2), 120, 900),
            SpanRow(batch=2, object="t", newest=encode_position((3, 4, 500)), first=_at(3), last=_at(4)),
        ],
        {},
    ),
    "a_topic_made_anew": (
        "canal_json",
        [_span(1, (1, 2), *KAFKA, 5000), _span(2, (3, 4), *KAFKA, 3)],
        {"t": {LOG_WENT_BACK}},
    ),
    "another_partition": (
        "canal_json",
        [
            _span(1, (1, 2), 1, 7, 50, table="a"),
            _span(1, (1, 2), 1, 0, 9, table="b"),
            _span(2, (3, 4), 1, 0, 10, table="b"),
        ],
        {},
    ),
    "a_path_that_sorts_lower": ("canal_json", [_span(1, (1, 2), 0, 0, "b", 1), _span(2, (3, 4), 0, 0, "a", 1)], {}),
    "a_second_load": ("canal_json", [_span(1, (1, 3), *KAFKA, 9), _loaded(2, (5, 5), 3)], {"t": {UNPLACED_LOAD}}),
    "a_second_load_and_changes": (
        "canal_json",
        [_span(1, (1, 3), *KAFKA, 9), _span(2, (5, 7), *KAFKA, 20, unplaced=2, unplaced_last=_at(5))],
        {"t": {UNPLACED_LOAD}},
    ),
    "a_second_load_without_times": (
        "replicate_json",
        [_span(1, (1, 3), 20, 1), _untimed(2, 3)],
        {"t": {UNPLACED_LOAD}},
    ),
    "a_first_load_without_times": ("replicate_json", [_untimed(1, 3), _untimed(2, 3)], {}),
    "an_incremental_load_without_times": ("debezium_json", [_span(1, (1, 3), 20, 1), _untimed(2, 3)], {}),
    "a_load_and_changes_in_the_first_run": (
        "canal_json",
        [_span(2, (1, 3), *KAFKA, 9, unplaced=4, unplaced_last=_at(3))],
        {},
    ),
    "two_logs_in_one_run": (
        "debezium_json",
        [_span(2, (1, 3), 120, 9, back=_at(2), back_to=MYSQL_BACK)],
        {"t": {LOG_WENT_BACK}},
    ),
    "a_long_transaction_in_one_run": (
        "debezium_json",
        [_span(2, (1, 3), 120, 9, back=_at(2), back_to=POSTGRES_BACK)],
        {},
    ),
    "files_out_of_order_in_one_run": (
        "canal_json",
        [_span(2, (1, 3), 0, 0, "b", 1, back=_at(2), back_to=encode_position((1, 0, 0, "a", 1, 0)))],
        {},
    ),
    "the_first_load_in_parts": ("canal_json", [_loaded(1, (1, 2), 9), _loaded(2, (3, 4), 9)], {}),
    "the_first_load_comes_late": ("canal_json", [_span(1, (3, 4), *KAFKA, 9), _loaded(2, (1, 2), 9)], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_in_doubt(name: str) -> None:
    """Batch 1 is published, batch 2 is new."""
    format_name, spans, expected = CASES[name]
    found = doubts_about(_source(format_name), spans, 1)
    assert {table: {doubt.invariant for doubt in doubts} for table, doubts in found.items()} == expected


def test_a_doubt_says_what_decides_it() -> None:
    """The moment, the key of the source file, and the command."""
    (went_back,) = doubts_about(_source("debezium_json"), CASES["a_log_begins_anew"][1], 1)["t"]
    assert "`log_restarts: [2026-03-01T03:00:00Z]`" in went_back.reason
    assert "`tidemark run shop --reprocess`" in went_back.reason
    (before,) = doubts_about(_source("debezium_json"), CASES["the_log_of_an_old_server_comes_late"][1], 1)["t"]
    assert "`log_restarts: [2026-03-01T05:00:00Z]`" in before.reason
    (load,) = doubts_about(_source("canal_json"), CASES["a_second_load"][1], 1)["t"]
    assert load.value == 3
    assert "`tables: {t: {reloads: [2026-03-01T05:00:00Z]}}`" in load.reason
    (turned,) = doubts_about(_source("debezium_json"), CASES["two_logs_in_one_run"][1], 0)["t"]
    assert "`log_restarts: [2026-03-01T02:00:00Z]`" in turned.reason
    (untimed,) = doubts_about(_source("replicate_json"), CASES["a_second_load_without_times"][1], 1)["t"]
    assert "reloads: [MOMENT]" in untimed.reason
