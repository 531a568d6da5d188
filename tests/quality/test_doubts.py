"""New events that nothing ranks for certain are found in what batches span."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidemark.dumps.file_names import FileOrder, widths
from tidemark.ledger.offset_rows import OffsetsRow
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import FileRow
from tidemark.positions import changed, encode_position, loaded
from tidemark.quality.doubts import LOG_WENT_BACK, TIME_WENT_BACK, doubts_about
from tidemark.quality.file_places import Stem, stem_at, stems_that_landed
from tidemark.quality.several_databases import SEVERAL_DATABASES
from tidemark.quality.unplaced_loads import UNPLACED_LOAD
from tidemark.sources.files import load_source
from tidemark.sources.model import Source


def _source(format_name: str, **invariants: str) -> Source:
    document = {"source": "shop", "format": format_name, "landing": "/landing/*", "invariants": invariants}
    return Source.model_validate(document)


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


def _from(batch: int, hours: tuple[int, int], low: tuple[Any, ...], high: tuple[Any, ...], table: str = "t") -> SpanRow:
    lowest, highest = (encode_position(changed(*position)) for position in (low, high))
    return msgspec.structs.replace(_span(batch, hours, 0, table=table), oldest=lowest, newest=highest)


def _raised(span: SpanRow) -> SpanRow:
    """In the second log of the source."""
    ends = {name: f"013{getattr(span, name)[3:]}" for name in ("oldest", "newest")}
    return msgspec.structs.replace(span, **ends)


def _read_by(connector: str, span: SpanRow, *, commit: int, change: int) -> SpanRow:
    """Of changes with the last commit before them (``source.sequence``)."""
    places = {"commits_from": encode_position(changed(commit)), "changes_to": encode_position(changed(change))}
    return msgspec.structs.replace(span, commits_by=connector, **places)


def _mysql(file: int, offset: int) -> tuple[Any, ...]:
    return (file, offset, "", 0, 1, 0, 9, "", 0, 1)


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
    "a_log_begins_anew_and_is_longer_already": (
        "debezium_json",
        [_from(1, (1, 2), _mysql(1, 157), _mysql(1, 900)), _from(2, (3, 4), _mysql(1, 157), _mysql(2, 900))],
        {"t": {LOG_WENT_BACK}},
    ),
    "a_log_with_a_load_begins_anew_and_is_longer_already": (
        "debezium_json",
        [_from(1, (1, 2), (9, 4, 1, 0, 7), _mysql(9, 900)), _from(2, (3, 4), _mysql(9, 200), _mysql(10, 900))],
        {"t": {LOG_WENT_BACK}},
    ),
    "rows_of_an_incremental_load_at_the_last_change": (
        "debezium_json",
        [_from(1, (1, 2), _mysql(9, 4), _mysql(9, 900)), _from(2, (3, 4), (9, 900, 1, 0, 7), _mysql(10, 900))],
        {},
    ),
    "a_log_goes_on_in_the_next_file": (
        "debezium_json",
        [_from(1, (1, 2), _mysql(1, 157), _mysql(1, 900)), _from(2, (3, 4), _mysql(1, 901), _mysql(2, 900))],
        {},
    ),
    "a_log_that_goes_on_with_changes_sent_again": (
        "debezium_json",
        [_from(1, (1, 2), _mysql(1, 157), _mysql(1, 900)), _from(2, (2, 4), _mysql(1, 800), _mysql(2, 900))],
        {},
    ),
    "a_log_of_postgresql_begins_anew_and_is_longer_already": (
        "debezium_json",
        [_from(1, (1, 2), (500,), (600,)), _from(2, (3, 4), (400,), (900,))],
        {"t": {LOG_WENT_BACK}},
    ),
    "a_transaction_of_postgresql_that_was_open_before": (
        "debezium_json",
        [_from(1, (1, 2), (500,), (600,)), _from(2, (3, 4), (510,), (900,))],
        {},
    ),
    "a_connector_of_postgresql_beside_another_that_is_further": (
        "debezium_json",
        [
            _read_by("a", _from(0, (1, 2), (850,), (900,)), commit=840, change=900),
            _read_by("b", _from(1, (1, 2), (90,), (100,)), commit=80, change=100),
            _read_by("b", _from(2, (3, 4), (101,), (990,)), commit=100, change=990),
        ],
        {},
    ),
    "a_connector_of_postgresql_whose_log_begins_anew": (
        "debezium_json",
        [
            _read_by("b", _from(1, (1, 2), (90,), (200,)), commit=80, change=200),
            _read_by("b", _from(2, (3, 4), (101,), (990,)), commit=100, change=990),
        ],
        {"t": {LOG_WENT_BACK}},
    ),
    "a_topic_made_anew_that_is_longer_already": (
        "canal_json",
        [_from(1, (1, 2), (*KAFKA, 0), (*KAFKA, 9)), _from(2, (3, 4), (*KAFKA, 0), (*KAFKA, 50))],
        {"t": {LOG_WENT_BACK}},
    ),
    "partitions_that_go_on": (
        "canal_json",
        [_from(1, (1, 2), (1, 0, 0), (1, 1, 9)), _from(2, (3, 4), (1, 0, 9), (1, 1, 50))],
        {},
    ),
    "another_partition_of_a_table": (
        "canal_json",
        [_from(1, (1, 2), (1, 1, 0), (1, 1, 9)), _from(2, (3, 4), (1, 0, 0), (1, 1, 50))],
        {},
    ),
    "the_log_of_an_old_server_comes_late": (
        "debezium_json",
        [_span(1, (5, 6), 4, 500), _span(2, (1, 2), 120, 900)],
        {"t": {TIME_WENT_BACK}},
    ),
    "the_log_of_an_old_server_comes_late_and_reaches_above": (
        "debezium_json",
        [_from(1, (5, 6), _mysql(4, 157), _mysql(4, 900)), _from(2, (1, 2), _mysql(3, 157), _mysql(4, 300))],
        {"t": {TIME_WENT_BACK}},
    ),
    "late_events_of_the_same_log": (
        "debezium_json",
        [_from(1, (5, 6), _mysql(4, 157), _mysql(4, 900)), _from(2, (1, 2), _mysql(3, 157), _mysql(3, 300))],
        {},
    ),
    "a_second_log_of_postgresql_begins_anew": (
        "debezium_json",
        [
            _from(1, (1, 2), (500,), (600,)),
            _raised(_from(1, (3, 4), (400,), (900,))),
            _raised(_from(2, (5, 6), (300,), (990,))),
        ],
        {"t": {LOG_WENT_BACK}},
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
        {"t": {TIME_WENT_BACK}},
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
    "a_path_that_sorts_lower": (
        "canal_json",
        [_span(1, (1, 2), 0, 0, "b", 1), _span(2, (3, 4), 0, 0, "a", 1)],
        {"t": {LOG_WENT_BACK}},
    ),
    "a_folder_that_sorts_lower": (
        "canal_json",
        [_span(1, (1, 2), 0, 0, "/31-01-2026/a", 1), _span(2, (3, 4), 0, 0, "/01-02-2026/a", 1)],
        {"t": {LOG_WENT_BACK}},
    ),
    "a_path_that_sorts_lower_in_its_folder": (
        "canal_json",
        [_from(1, (1, 2), (0, 0, "/p0/b", 1), (0, 0, "/p1/b", 9)), _span(2, (3, 4), 0, 0, "/p0/a", 1)],
        {"t": {LOG_WENT_BACK}},
    ),
    "a_folder_that_is_filled_beside_another": (
        "canal_json",
        [_from(1, (1, 2), (0, 0, "/p0/a", 1), (0, 0, "/p1/a", 9)), _span(2, (3, 4), 0, 0, "/p0/b", 1)],
        {},
    ),
    "a_folder_that_another_table_has": (
        "canal_json",
        [
            _span(1, (1, 2), 0, 0, "/p1/a", 9),
            _span(1, (1, 2), 0, 0, "/p0/a", 9, table="u"),
            _span(2, (3, 4), 0, 0, "/p0/b", 1),
        ],
        {},
    ),
    "files_behind_records_of_kafka": (
        "canal_json",
        [_span(1, (1, 2), *KAFKA, 9), _span(2, (3, 4), 0, 0, "/a", 1)],
        {"t": {LOG_WENT_BACK}},
    ),
    "late_events_in_a_path_that_sorts_lower": (
        "canal_json",
        [_span(1, (3, 4), 0, 0, "/b", 1), _span(2, (1, 2), 0, 0, "/a", 1)],
        {},
    ),
    "late_events_beside_new_ones_in_a_path_that_sorts_lower": (
        "canal_json",
        [_span(1, (3, 4), 0, 0, "/b", 1), _span(2, (1, 6), 0, 0, "/a", 1)],
        {},
    ),
    "files_of_another_table_that_sort_lower": (
        "canal_json",
        [
            _span(1, (1, 2), 0, 0, "/u-1", 9, table="u"),
            _span(1, (1, 2), 0, 0, "/t-1", 9),
            _span(2, (3, 4), 0, 0, "/t-2", 1),
        ],
        {},
    ),
    "a_later_interval": (
        "canal_json",
        [_span(1, (1, 2), 0, 1, "/b", 1), _span(2, (3, 4), 0, 2, "/a", 1)],
        {},
    ),
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


def _in_files(batches: Iterable[tuple[int, Iterable[str]]]) -> tuple[list[SpanRow], list[FileRow]]:
    """What the ledger knows of batches of files, each later than the one before; not which file is in the middle."""
    spans, files = [], []
    for batch, paths in batches:
        names, at = sorted(paths), _at(0) + timedelta(hours=batch)
        span = _from(batch, (0, 0), (0, 0, names[0], 1), (0, 0, names[-1], 9))
        spans.append(msgspec.structs.replace(span, first=at, last=at))
        files += [_file(batch, name) for name in names]
    return spans, files


def _file(batch: int, path: str, interval: datetime | None = None) -> FileRow:
    return FileRow(
        batch=batch,
        path=path,
        size=1,
        modified="1",
        checksum=path,
        container="jsonl",
        messages=1,
        interval_start=interval,
    )


def _held(batches: Iterable[tuple[int, Iterable[str]]]) -> list[int]:
    """The batches that are in doubt if each is published before the next one comes."""
    spans, files = _in_files(batches)
    held = []
    for span in spans:
        before = span.batch - 1
        up_to = [each for each in spans if each.batch <= span.batch]
        landed = stems_that_landed(file for file in files if file.batch <= before)
        if doubts_about(_source("canal_json"), up_to, before, landed=lambda known=landed: known):
            held.append(span.batch)
    return held


FOLDERS = [f"/l/partition={number:02d}/" for number in range(12)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_partition_that_was_filled_before_is_no_doubt(folder: str) -> None:
    """Also if its files are neither the first nor the last ones of any batch."""
    assert _held([(1, [f"{each}1.json" for each in FOLDERS]), (2, [f"{folder}2.json"])]) == []


@pytest.mark.parametrize("name", ["/l/partition={}/{:04d}.json", "/l/orders-{}-{:04d}.json.bz2", "/l/orders.{}.{:04d}"])
def test_healthy_runs_of_some_partitions_are_not_held(name: str) -> None:
    """A folder for each partition, or all in one folder."""
    some = random.Random(7)  # noqa: S311  no secret
    runs = [(batch, [name.format(each, batch) for each in some.sample(range(4), 3)]) for batch in range(2, 22)]
    assert _held([(1, [name.format(each, 1) for each in range(4)]), *runs]) == []


@pytest.mark.parametrize(
    ("old", "new", "held"),
    [
        (["/l/orders-0-100.json", "/l/orders-1-100.json"], "/l/orders-0-200.json", False),
        (["/l/orders-0-200.json", "/l/orders-1-100.json"], "/l/orders-0-100.json", True),
        (["/l/orders-1-100.json"], "/l/orders-0-100.json", True),
        (["/l/31-01-2026.json"], "/l/01-02-2026.json", True),
        (["/l/31-01-2026/1.json", "/l/30-01-2026/1.json"], "/l/01-02-2026/1.json", True),
        (["/l/31012026.json"], "/l/01022026.json", True),
        (["/old/orders-0-100.json", "/old/orders-1-100.json"], "/new/orders-0-200.json", True),
        (["/l/f3a91c.json"], "/l/b07e.json", True),
        (["/l/p1.json"], "/l/p0.json", True),
    ],
)
def test_files_are_compared_with_their_stem_or_else_with_all(old: list[str], new: str, *, held: bool) -> None:
    """A stem is one folder and one name up to its last number."""
    assert _held([(1, old), (2, [new])]) == [2] * held


def test_without_files_in_the_ledger_new_ones_are_compared_with_all() -> None:
    """So it is in a lake whose ledger has none, but for the first and the last file of each batch."""
    spans, _ = _in_files([(1, [f"{each}1.json" for each in FOLDERS]), (2, [f"{FOLDERS[5]}2.json"])])
    assert [each.invariant for each in doubts_about(_source("canal_json"), spans, 1)["t"]] == [LOG_WENT_BACK]
    first, _ = _in_files([(1, [f"{each}1.json" for each in FOLDERS]), (2, [f"{FOLDERS[0]}2.json"])])
    assert doubts_about(_source("canal_json"), first, 1) == {}


def test_a_stem_is_the_same_in_positions_and_in_paths() -> None:
    """Positions have numbers of other lengths otherwise, and the interval as its microseconds."""
    day = datetime(2026, 3, 1, tzinfo=UTC)
    paths = ["/l/p9/f-9.json", "/l/p10/f-010.json", "/l/p010/ü %2F.1.json", "/l/p9/none", "/l/p1/f-7.json.bz2"]
    order = FileOrder(width_at=widths(paths))
    for path in paths:
        for interval in (None, day):
            number = int(interval.timestamp()) * 1_000_000 if interval else 0
            position = encode_position(changed(0, number, order.text(path), 1))
            assert {stem_at(position)} == stems_that_landed([_file(1, path, interval)])


def test_the_ledger_is_asked_for_files_only_in_doubt() -> None:
    """A run whose files come behind all others reads no list of files."""
    asked = []

    def landed() -> set[Stem]:
        asked.append(1)
        return set()

    for new in ("/l/2.json", "/l/0.json"):
        spans, _ = _in_files([(1, ["/l/1.json"]), (2, [new])])
        doubts_about(_source("canal_json"), spans, 1, landed=landed)
        spans, _ = _in_files([(1, ["/l/p1-1.json"]), (2, [f"/l/p{new[3]}-1.json"])])
        doubts_about(_source("canal_json"), spans, 1, landed=landed)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("old", "new", "hours", "expected"),
    [
        ((5, 3), (0, 0), (3, 4), {LOG_WENT_BACK}),
        ((0, 0), (0, 0), (3, 4), {LOG_WENT_BACK}),
        ((5, 3), (5, 3), (1, 4), set()),  # sent again from the beginning
        ((5, 3), (0, 10), (3, 4), set()),  # one partition goes on
        ((5, 3), (10, 10), (3, 4), set()),
    ],
    ids=["anew", "anew_from_0", "sent_again", "one_anew", "going_on"],
)
def test_a_topic_of_several_partitions_began_again_if_each_of_them_did(
    old: tuple[int, int], new: tuple[int, int], hours: tuple[int, int], expected: set[str]
) -> None:
    """The offsets that all batches have show it, where changes of a table are in several partitions."""
    spans = [_from(1, (1, 2), (1, 0, 5), (1, 1, 9)), _from(2, hours, (1, 0, 0), (1, 1, 50))]
    begins = [(batch, partition, low) for batch, lows in ((1, old), (2, new)) for partition, low in enumerate(lows)]
    offsets = [
        OffsetsRow(batch=batch, topic="t", partition=partition, ranges=f'[[{low},{low + 50},"a",1]]')
        for batch, partition, low in begins
    ]
    found = doubts_about(_source("canal_json"), spans, 1, offsets).get("t", [])
    assert {doubt.invariant for doubt in found} == expected


@pytest.mark.parametrize(
    ("old", "new", "held"),
    [
        ([], ["a"], False),
        (["a"], ["a"], False),
        ([None], ["a"], False),
        (["a"], [None], False),
        (["a"], ["b"], True),
        ([], ["a", "b"], True),
        (["a"], ["*"], True),
        ([], ["*"], True),
        (["a", "b"], ["b"], False),
        (["a", "b"], ["c"], True),
        (["a", "b"], ["*"], False),
        (["a", "b"], ["*", "c"], True),
        (["*"], ["c"], False),
    ],
)
def test_rows_of_another_database_are_held_once(old: list[str | None], new: list[str | None], *, held: bool) -> None:
    """Where names of tables leave the database out; what was approved is no doubt any more."""
    batches = [*((1, name) for name in old), *((2, name) for name in new)]
    spans = [_span(batch, (batch, batch), batch, 1, database=name) for batch, name in batches]
    found = doubts_about(_source("cdl_json"), spans, 1).get("t", [])
    assert [doubt.invariant for doubt in found] == [SEVERAL_DATABASES] * held
    assert all("`options: {with_database: true}`" in doubt.reason for doubt in found)


@pytest.mark.parametrize(
    ("format_name", "remedy"),
    [
        ("cdl_json", "`tidemark run shop --reprocess`"),
        ("debezium_json", "`add.fields` with `db,schema`"),
        ("replicate_json", "a source of its own"),
    ],
)
def test_what_keeps_databases_apart_is_the_remedy_of_the_format(format_name: str, remedy: str) -> None:
    """An option of one format is of no use to another."""
    spans = [_span(2, (2, 2), 2, 1, database=name) for name in ("crm.a", "crm.b")]
    (doubt,) = doubts_about(_source(format_name), spans, 1)["t"]
    assert "(crm.a, crm.b)" in doubt.reason
    assert remedy in doubt.reason
    assert ("with_database" in doubt.reason) == (format_name == "cdl_json")


@pytest.mark.parametrize(("asked", "expected"), [("block", ["block"]), ("warn", ["warn"]), ("off", [])])
def test_the_source_file_says_whether_loads_behind_changes_are_held(asked: str, expected: list[str]) -> None:
    """A log that begins anew is held all the same."""
    for spans in (CASES["a_second_load"][1], CASES["a_second_load_without_times"][1]):
        source = _source("replicate_json", loaded_again=asked)
        assert [each.severity for each in doubts_about(source, spans, 1).get("t", [])] == expected
    (went_back,) = doubts_about(_source("debezium_json", loaded_again=asked), CASES["a_log_begins_anew"][1], 1)["t"]
    assert went_back.severity == "block"


def test_a_doubt_says_what_decides_it() -> None:
    """The moment, the key of the source file, and the command."""
    (went_back,) = doubts_about(_source("debezium_json"), CASES["a_log_begins_anew"][1], 1)["t"]
    assert "`log_restarts: [2026-03-01T03:00:00Z]`" in went_back.reason
    assert "`tidemark run shop --reprocess`" in went_back.reason
    (before,) = doubts_about(_source("debezium_json"), CASES["the_log_of_an_old_server_comes_late"][1], 1)["t"]
    assert "`log_restarts: [2026-03-01T05:00:00Z]`" in before.reason
    (named,) = doubts_about(_source("canal_json"), CASES["a_folder_that_sorts_lower"][1], 1)["t"]
    assert "`log_restarts: [2026-03-01T03:00:00Z]`" in named.reason
    assert "with fields of time in `landing`, or names that rise" in named.reason
    (load,) = doubts_about(_source("canal_json"), CASES["a_second_load"][1], 1)["t"]
    assert load.value == 3
    assert "`tables: {t: {reloads: [2026-03-01T05:00:00Z]}}`" in load.reason
    (turned,) = doubts_about(_source("debezium_json"), CASES["two_logs_in_one_run"][1], 0)["t"]
    assert "`log_restarts: [2026-03-01T02:00:00Z]`" in turned.reason
    (untimed,) = doubts_about(_source("replicate_json"), CASES["a_second_load_without_times"][1], 1)["t"]
    assert "reloads: [MOMENT]" in untimed.reason


@pytest.mark.parametrize(
    ("landing", "fields", "expected"),
    [
        ("/landing/*", {}, ""),
        ("/landing/%Y-%m-%d/*", {}, " (`--start 2026-03-01` leaves out the files of earlier intervals)"),
        ("/landing/%Y/%m/%d/%H/*", {}, " (`--start 2026-03-01` leaves out the files of earlier intervals)"),
        ("/landing/%Y-%m/*", {}, " (`--start 2026-03-01` leaves out the files of earlier intervals)"),
        ("/landing/%Y/*", {}, " (`--start 2026-01-01` leaves out the files of earlier intervals)"),
        (
            "/landing/%Y%j/*",
            {"timezone": "America/New_York"},
            " (`--start 2026-02-28T05:00:00Z` leaves out the files of earlier intervals)",
        ),
    ],
)
def test_a_doubt_names_the_whole_line_and_the_start_of_the_interval(
    landing: str, fields: dict[str, str], expected: str, tmp_path: Path
) -> None:
    """Moments that the source file has stay in it, and the line is YAML as it stands."""
    document = {"source": "shop", "format": "debezium_json", "landing": landing, **fields}
    source = Source.model_validate({**document, "log_restarts": ["2026-02-01"]})
    (doubt,) = doubts_about(source, CASES["a_log_begins_anew"][1], 1)["t"]
    line = "log_restarts: [2026-02-01T00:00:00Z, 2026-03-01T03:00:00Z]"
    sentence = (
        f"write `{line}` into the source file and run `tidemark run shop --reprocess`{expected}. Of several tables"
    )
    assert sentence in doubt.reason
    file = tmp_path / "shop.yaml"
    file.write_text("\n".join([*(f"{key}: {value!r}" for key, value in document.items()), line]), encoding="utf-8")
    assert load_source(file).log_restarts == (datetime(2026, 2, 1, tzinfo=UTC), _at(3))


def test_a_clock_that_was_set_back_by_seconds_is_no_other_log() -> None:
    """All that is published may be a few seconds."""
    behind = {seconds: _at(3) - timedelta(seconds=seconds) for seconds in (1, 59, 60)}
    found = {
        seconds: doubts_about(
            _source("debezium_json"),
            [_span(1, (3, 3), 120, 900), msgspec.structs.replace(_span(2, (3, 3), 121, 4), first=at, last=at)],
            1,
        )
        for seconds, at in behind.items()
    }
    assert {seconds: bool(doubts) for seconds, doubts in found.items()} == {1: False, 59: False, 60: True}
