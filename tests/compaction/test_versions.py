"""Histories and soft deletes: whatever the delivery, versions and deleted rows are the model's."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from pyspark.sql import SparkSession

from support import plans
from support.histories import COLUMNS, Table, deliver, mixed, several, timed
from support.published import comparable, of_versions
from support.reference import Change, Row, fold_softly, versions
from support.rounds import PROVING, crash_windows, how_many, in_two_runs
from support.running import assert_ledger_closes, die_at, run_all
from support.seats import Seat, seats
from support.table_cases import CASES as TABLE_CASES
from tidemark.compaction.history_tables import goes_on
from tidemark.lake.branches import MARKER
from tidemark.lake.commits import commit_files
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.positions import Position, encode_position
from tidemark.quality.doubts import LOG_WENT_BACK
from tidemark.sources.model import Source
from tidemark.stages import STAGES, StageReport
from tidemark.tables import planner

if TYPE_CHECKING:
    from tidemark.compaction.run import Run

pytestmark = pytest.mark.spark

_START = datetime(2026, 1, 1, tzinfo=UTC)
Times = Mapping[int, int]
"""Place in the log -> minute, where it is not the place itself."""


def _minute(minute: int) -> datetime:
    return _START + timedelta(minutes=minute)


def _place(change: Change) -> int:
    return int(change.position[2])


def _timed(change: Change, times: Times) -> bytes:
    """A change as a message of Debezium, with the time that it took place."""
    return timed(change, _minute(times.get(_place(change), _place(change))))


def _source(name: str, landing: Path, tables: Mapping[str, Mapping[str, Any]]) -> Source:
    promised = {f"shop.{table}": {"key": ["id"], "columns": COLUMNS, **settings} for table, settings in tables.items()}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": promised}
    return Source.model_validate(fields)


def _read(lake: Lake, identifier: tuple[str, str]) -> list[Row]:
    rows: list[Row] = lake.load(identifier).scan().to_arrow().to_pylist()
    return rows


def _versions(lake: Lake, source: str, table: str) -> list[Row]:
    return comparable(_read(lake, history(Identifier(source, table))))


def _typed(row: Row) -> Row:
    return {**row, "amount": row.get("amount") and Decimal(row["amount"])}


def _expected_versions(changes: Sequence[Change], times: Times, tracked: Collection[str] | None = None) -> list[Row]:
    """The model's versions as rows of a history table; ``times`` by place, all places if there are none."""

    def at(change: Change) -> datetime:
        return _minute(times.get(_place(change), _place(change)))

    expected = versions(changes, at, tracked).get(changes[0].table, [])
    return of_versions(expected, {change.position: at(change) for change in changes}, _typed)


def _expected_softly(changes: Sequence[Change], times: Times) -> list[Row]:
    at: dict[Position, datetime] = {c.position: _minute(times.get(_place(c), _place(c))) for c in changes}
    rows = fold_softly(changes).get(changes[0].table, {}).values()
    return comparable(
        {
            **_typed(row),
            "_cdc_position": encode_position(position),
            "_cdc_committed_at": at[position],
            "_cdc_deleted": gone,
        }
        for row, position, gone in rows
    )


def _assert_current_is_table(lake: Lake, source: str, table: str) -> None:
    """The current versions are the rows of the table that are not deleted, cell by cell."""
    names = (*COLUMNS, "_cdc_position", "_cdc_committed_at")
    current = [row for row in _read(lake, history(Identifier(source, table))) if row["is_current"]]
    alive = [row for row in _read(lake, (source, table)) if not row.get("_cdc_deleted")]
    sides = [sorted(([row.get(name) for name in names] for row in rows), key=repr) for rows in (current, alive)]
    assert sides[0] == sides[1]


class Case(NamedTuple):
    """Changes of one table, run by run, and the versions that they must lead to."""

    name: str
    runs: list[list[Change]]
    versions: list[tuple[Any, ...]]
    """Columns, then the minutes from and to, in that order."""
    times: Times = MappingProxyType({})


def _case(name: str, build: Callable[[Table], Sequence[Any]]) -> Case:
    return Case(name, *build(Table(name)))


CASES = [
    _case(
        "each_event_opens_a_version",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.update(2, 1, "c", "b")], [t.update(4, 1, "c", "b")]],
            [(1, "a", "b", 1, 2), (1, "c", "b", 2, 4), (1, "c", "b", 4, None)],
        ),
    ),
    _case(
        "late_event_splits_an_interval",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.update(9, 1, "z", "z")], [t.update(5, 1, "late", "b")]],
            [(1, "a", "b", 1, 5), (1, "late", "b", 5, 9), (1, "z", "z", 9, None)],
        ),
    ),
    _case(
        "late_event_of_one_key_beside_a_usual_one_of_another",
        lambda t: (
            [
                [t.insert(1, 1, "a", "b"), t.insert(2, 2, "x", "y"), t.update(9, 1, "z", "z")],
                [t.update(5, 1, "late", "b"), t.update(10, 2, "v", "w")],
            ],
            [
                (1, "a", "b", 1, 5),
                (1, "late", "b", 5, 9),
                (1, "z", "z", 9, None),
                (2, "x", "y", 2, 10),
                (2, "v", "w", 10, None),
            ],
        ),
    ),
    _case(
        "late_partial_event_changes_the_versions_after_it",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.update(9, 1, "z", ...)], [t.update(5, 1, ..., "late")]],
            [(1, "a", "b", 1, 5), (1, "a", "late", 5, 9), (1, "z", "late", 9, None)],
        ),
    ),
    _case(
        "delete_closes",
        lambda t: ([[t.insert(1, 1, "a", "b")], [t.delete(5, 1, "a", "b")]], [(1, "a", "b", 1, 5)]),
    ),
    _case(
        "late_delete_leaves_a_gap",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.insert(9, 1, "c", "d")], [t.delete(5, 1, "a", "b")]],
            [(1, "a", "b", 1, 5), (1, "c", "d", 9, None)],
        ),
    ),
    _case(
        "late_event_before_a_delete",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.delete(9, 1, "a", "b")], [t.update(5, 1, "late", "b")]],
            [(1, "a", "b", 1, 5), (1, "late", "b", 5, 9)],
        ),
    ),
    _case(
        "inserted_again",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.delete(3, 1, "a", "b")], [t.insert(7, 1, "c", "d")]],
            [(1, "a", "b", 1, 3), (1, "c", "d", 7, None)],
        ),
    ),
    _case(
        "delete_of_a_row_never_seen_begins_nothing",
        lambda t: (
            # Of a run that is earlier than all of its table, check asks whether the log began anew: one row is early.
            [[t.insert(1, 2, "x", "y"), t.delete(3, 1, "a", "b")], [t.insert(5, 1, "c", "d")]],
            [(1, "c", "d", 2, None), (2, "x", "y", 1, None)],
            {3: 90, 5: 2},
        ),
    ),
    _case(
        "key_change_ends_one_and_begins_another",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.insert(2, 3, "x", "y")], [t.update(5, 2, "a", "c", was=(1,))]],
            [(1, "a", "b", 1, 5), (2, "a", "c", 5, None), (3, "x", "y", 2, None)],
        ),
    ),
    _case(
        "partial_is_filled_from_the_version_before",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.update(2, 1, "c", ...), t.update(3, 1, ..., "d")]],
            [(1, "a", "b", 1, 2), (1, "c", "b", 2, 3), (1, "c", "d", 3, None)],
        ),
    ),
    _case(
        "partial_after_a_delete_is_filled_with_nothing",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.delete(2, 1, "a", "b")], [t.update(3, 1, "c", ...)]],
            [(1, "a", "b", 1, 2), (1, "c", None, 3, None)],
        ),
    ),
    _case(
        "truncate_closes_all",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.insert(2, 2, "x", "y")], [t.truncate(5), t.insert(6, 1, "c", "d")]],
            [(1, "a", "b", 1, 5), (2, "x", "y", 2, 5), (1, "c", "d", 6, None)],
        ),
    ),
    _case(
        "truncate_within_a_run",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.truncate(3), t.update(4, 1, "c", ...)]],
            [(1, "a", "b", 1, 3), (1, "c", None, 4, None)],
        ),
    ),
    _case(
        "late_truncate",
        lambda t: (
            [
                [t.insert(1, 1, "a", "b"), t.insert(2, 2, "x", "y"), t.insert(3, 3, "a", "b")],
                [t.update(9, 1, "c", ...), t.update(10, 3, "c", ...), t.delete(11, 3)],
                [t.truncate(5)],
            ],
            [
                (1, "a", "b", 1, 5),
                (2, "x", "y", 2, 5),
                (3, "a", "b", 3, 5),
                (1, "c", None, 9, None),
                (3, "c", None, 10, 11),
            ],
        ),
    ),
    _case(
        "late_event_before_a_truncate",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.truncate(5)], [t.update(3, 1, "late", ...), t.insert(4, 2, "x", "y")]],
            [(1, "a", "b", 1, 3), (1, "late", "b", 3, 5), (2, "x", "y", 4, 5)],
        ),
    ),
    _case(
        "duplicates_are_one_event",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.insert(1, 1, "a", "b"), t.update(2, 1, "c", "d"), t.update(2, 1, "c", "d")]],
            [(1, "a", "b", 1, 2), (1, "c", "d", 2, None)],
        ),
    ),
    _case(
        "delivered_again",
        lambda t: (
            [
                [
                    t.insert(1, 1, "a", "b"),
                    t.update(2, 1, "c", "d"),
                    t.insert(3, 2, "x", "y"),
                    t.delete(4, 2, "x", "y"),
                ],
                [t.update(2, 1, "c", "d"), t.delete(4, 2, "x", "y")],
                [t.insert(1, 1, "a", "b"), t.insert(3, 2, "x", "y"), t.update(5, 1, "e", "f")],
            ],
            [(1, "a", "b", 1, 2), (1, "c", "d", 2, 5), (1, "e", "f", 5, None), (2, "x", "y", 3, 4)],
        ),
    ),
    _case(
        "time_that_goes_back_ends_no_version_before_it_began",
        lambda t: (
            [
                [t.insert(1, 1, "a", "b"), t.update(2, 1, "c", "d")],
                [t.update(3, 1, "e", "f")],
                [t.update(4, 1, "g", "h")],
            ],
            [(1, "a", "b", 1, 9), (1, "c", "d", 9, 9), (1, "e", "f", 9, 12), (1, "g", "h", 12, None)],
            {2: 9, 3: 5, 4: 12},
        ),
    ),
    _case(
        "time_that_goes_back_over_a_delete",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.delete(2, 1, "a", "b")], [t.insert(3, 1, "c", "d")]],
            [(1, "a", "b", 1, 9), (1, "c", "d", 9, None)],
            {2: 9, 3: 5},
        ),
    ),
    _case(
        "time_that_goes_back_over_a_truncate",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.truncate(2)], [t.insert(3, 1, "c", "d")]],
            [(1, "a", "b", 1, 9), (1, "c", "d", 9, None)],
            {2: 9, 3: 5},
        ),
    ),
]
_RUNS = 3
_LIKE_TABLES = [
    case
    for case in TABLE_CASES
    if case.name in {"initial_load_over_changes", "column_first_seen_in_a_late_event"}
    or (PROVING and case.name in {"hot_key", "column_added"})
]
"""Cases of compaction that the generated histories do not have."""
SOFT_CASES: dict[str, tuple[Callable[[Table], list[list[Change]]], list[tuple[Any, ...]]]] = {
    "a_deleted_row_shows_what_its_delete_saw": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(2, 1, "c", "d")]],
        [(1, "c", "d", 2, True)],
    ),
    "in_one_run_too": (
        lambda t: [[t.insert(1, 1, "a", "b"), t.delete(2, 1, "c", "d")]],
        [(1, "c", "d", 2, True)],
    ),
    "a_delete_that_tells_the_key_alone": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(2, 1)]],
        [(1, "a", "b", 2, True)],
    ),
    "a_delete_that_tells_nulls_beside_the_key": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(2, 1, None, None)]],
        [(1, "a", "b", 2, True)],
    ),
    "a_delete_that_tells_a_part_in_the_run_of_the_row": (
        lambda t: [[t.insert(1, 1, "a", "b"), t.delete(2, 1, "c")]],
        [(1, "c", "b", 2, True)],
    ),
    "a_delete_that_tells_the_key_alone_before_its_insert": (
        lambda t: [[t.delete(9, 1)], [t.update(3, 1, "c", ...)], [t.insert(1, 1, "a", "b")]],
        [(1, "c", "b", 9, True)],
    ),
    "a_delete_that_tells_the_key_alone_of_a_row_never_seen": (
        lambda t: [[t.delete(2, 1, None, None)]],
        [(1, None, None, 2, True)],
    ),
    "deleted_twice": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(2, 1, "c")], [t.delete(3, 1)]],
        [(1, "c", "b", 3, True)],
    ),
    "its_second_life_is_what_a_deleted_row_shows": (
        lambda t: [[t.insert(1, 1, "a", "b"), t.delete(2, 1)], [t.update(3, 1, "c", ...)], [t.delete(4, 1)]],
        [(1, "c", None, 4, True)],
    ),
    "its_second_life_comes_last": (
        lambda t: [[t.insert(1, 1, "a", "b"), t.delete(2, 1)], [t.delete(4, 1)], [t.update(3, 1, "c", ...)]],
        [(1, "c", None, 4, True)],
    ),
    "a_null_that_an_update_wrote": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.update(2, 1, None, "b")], [t.delete(3, 1)]],
        [(1, None, "b", 3, True)],
    ),
    "an_old_key_told_alone": (
        lambda t: [
            [t.insert(1, 1, "a", "b")],
            [t.update(2, 7, "c", "d", was=(1,))._replace(before={"id": 1, "name": None, "note": None})],
        ],
        [(1, "a", "b", 2, True), (7, "c", "d", 2, False)],
    ),
    "an_old_key_told_alone_before_its_row": (
        lambda t: [
            [t.update(2, 7, "c", "d", was=(1,))._replace(before={"id": 1, "name": None, "note": None})],
            [t.insert(1, 1, "a", "b"), t.insert(1, 1, "a", "b")],
        ],
        [(1, "a", "b", 2, True), (7, "c", "d", 2, False)],
    ),
    "sent_again_below_a_delete": (
        lambda t: [
            [t.insert(1, 1, "a", "b"), t.delete(2, 1)],
            [t.insert(1, 1, "a", "b"), t.delete(2, 1)],
            [t.insert(1, 1, "a", "b")],
        ],
        [(1, "a", "b", 2, True)],
    ),
    "a_delete_before_its_insert": (
        lambda t: [[t.delete(2, 1, "c", "d")], [t.insert(1, 1, "a", "b")]],
        [(1, "c", "d", 2, True)],
    ),
    "a_delete_of_a_row_never_seen": (lambda t: [[t.delete(2, 1, "c", "d")]], [(1, "c", "d", 2, True)]),
    "inserted_again": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(2, 1, "a", "b")], [t.insert(3, 1, "e", "f")]],
        [(1, "e", "f", 3, False)],
    ),
    "a_partial_update_revives_no_old_value": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(2, 1, "a", "b")], [t.update(3, 1, "c", ...)]],
        [(1, "c", None, 3, False)],
    ),
    "a_partial_update_in_the_run_of_the_delete": (
        lambda t: [[t.insert(1, 1, "a", "b"), t.delete(2, 1, "a", "b"), t.update(3, 1, "c", ...)]],
        [(1, "c", None, 3, False)],
    ),
    "a_late_delete_below_a_partial_row": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.update(5, 1, "c", ...)], [t.delete(3, 1, "x", "y")]],
        [(1, "c", None, 5, False)],
    ),
    "a_late_update_below_a_delete": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(5, 1, "c")], [t.update(3, 1, ..., "late")]],
        [(1, "c", "late", 5, True)],
    ),
    "an_old_key_is_deleted": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.update(2, 7, "c", "d", was=(1,))]],
        [(1, "c", "d", 2, True), (7, "c", "d", 2, False)],
    ),
    "an_old_key_never_seen": (
        lambda t: [[t.update(2, 7, "c", "d", was=(1,))]],
        [(1, "c", "d", 2, True), (7, "c", "d", 2, False)],
    ),
    "truncated": (
        lambda t: [[t.insert(1, 1, "a", "b"), t.delete(2, 2, "x", "y")], [t.truncate(3), t.insert(4, 3, "e", "f")]],
        [(1, "a", "b", 3, True), (2, "x", "y", 3, True), (3, "e", "f", 4, False)],
    ),
    "truncated_in_the_run_of_the_rows": (
        lambda t: [[t.insert(1, 1, "a", "b"), t.update(2, 7, "a", "b", was=(1,)), t.truncate(3)]],
        [(1, "a", "b", 3, True), (7, "a", "b", 3, True)],
    ),
    "late_below_a_truncate": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.truncate(5)], [t.insert(3, 2, "x", "y"), t.update(4, 1, ..., "z")]],
        [(1, "a", "z", 5, True), (2, "x", "y", 5, True)],
    ),
    "deleted_in_the_run_of_a_truncate": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.delete(2, 1, "c"), t.truncate(3)]],
        [(1, "c", "b", 3, True)],
    ),
    "a_late_truncate_below_a_deleted_row_written_in_parts": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.update(5, 1, "c", ...), t.delete(6, 1)], [t.truncate(3)]],
        [(1, "c", None, 6, True)],
    ),
    "between_two_truncates": (
        lambda t: [
            [t.insert(1, 1, "a", "b"), t.insert(1, 2, "x", "y")],
            [t.truncate(2), t.update(3, 1, "c", ...), t.truncate(4)],
            [t.delete(5, 1)],
        ],
        [(1, "c", None, 5, True), (2, "x", "y", 4, True)],
    ),
    "a_late_part_between_two_truncates": (
        lambda t: [
            [t.insert(1, 1, "a", "b"), t.truncate(2), t.update(5, 1, "c", ...), t.truncate(6)],
            [t.update(3, 1, "x", ...)],
        ],
        [(1, "c", None, 6, True)],
    ),
    "a_late_truncate_below_a_partial_row": (
        lambda t: [[t.insert(1, 1, "a", "b")], [t.update(5, 1, "c", ...)], [t.truncate(3)]],
        [(1, "c", None, 5, False)],
    ),
}
"""Changes by run, and the rows that they must lead to: columns, minute of the event that wrote it, deleted or not."""
_SOFT = {"late_truncate", "late_event_before_a_truncate"}
"""Of the cases, those whose deleted rows stay in any case; of the others, every other one's; in ``make test`` all."""
_PROVED = {
    "late_event_before_a_truncate",
    "truncate_closes_all",
    "truncate_within_a_run",
    "time_that_goes_back_over_a_truncate",
    "truncated",
    "truncated_in_the_run_of_the_rows",
    "late_below_a_truncate",
    "deleted_in_the_run_of_a_truncate",
    "a_late_truncate_below_a_deleted_row_written_in_parts",
    "a_late_truncate_below_a_partial_row",
    "between_two_truncates",
    "a_late_part_between_two_truncates",
}
"""Cases of ``make prove``: a TRUNCATE takes a table of its own. ``make test`` has one that comes late."""
CASES = [case._replace(runs=in_two_runs(case.runs)) for case in CASES if PROVING or case.name not in _PROVED]
SOFT_RUNS = {
    name: in_two_runs(build(Table(name))) for name, (build, _) in SOFT_CASES.items() if PROVING or name not in _PROVED
}
_TOLD = [*CASES, *(Case(f"table_{case.name}", case.runs, []) for case in _LIKE_TABLES)]
_KINDS = {
    case.name: "soft" if case.name in _SOFT or number % 2 or not PROVING else "hard"
    for number, case in enumerate(_TOLD)
}
SEATS = seats(
    {**{case.name: case.runs for case in _TOLD}, **{f"soft_{name}": runs for name, runs in SOFT_RUNS.items()}},
    lambda name: _KINDS.get(name, "soft"),
)


def _moved(seat: Seat, runs: Sequence[Sequence[Change]], times: Times) -> dict[int, int]:
    """The minutes of changes by their places in the table that they share."""
    places = [_place(change) for run in runs for change in run]
    return {seat.place(place): times.get(place, place) for place in places}


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """The cases here and some of compaction in tables of one source, in two or three runs; the runs' reports.

    Cases of soft deletes share tables that have a history, or have tables without one.
    """
    landing = tmp_path_factory.mktemp("histories")
    tables: dict[str, dict[str, Any]] = {seat.table: {"deletes": "soft"} for seat in SEATS.values()}
    tables |= {SEATS[case.name].table: {"history": True, "deletes": _KINDS[case.name]} for case in _TOLD}
    deliveries = [(SEATS[case.name], case.runs, case.times) for case in _TOLD]
    deliveries += [(SEATS[f"soft_{name}"], runs, {}) for name, runs in SOFT_RUNS.items()]
    source = _source("histories", landing, tables)
    # Cases have the same minutes. The first one comes last, so that no late event ends a run with the latest minute of
    # all: it would look as if the log began anew.
    seated = [(seat.seated(runs), _moved(seat, runs, times)) for seat, runs, times in reversed(deliveries)]
    reports = []
    for run in range(how_many(usually=2, proving=_RUNS)):
        lines = [_timed(change, times) for runs, times in seated if run < len(runs) for change in runs[run]]
        deliver(landing, f"run-{run}", lines)
        reports.append(run_all(source))
    return reports


@pytest.mark.more
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_history_is_what_its_changes_lead_to(case: Case, cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Every case has the versions written beside it, and the model agrees."""
    seat = SEATS[case.name]
    found = seat.own(_versions(lake, "histories", seat.table))
    spans = [
        (seat.own_key(row["id"]), *(row[name] for name in ("name", "note", "valid_from", "valid_to", "is_current")))
        for row in found
    ]
    expected = [
        (*version[:3], _minute(version[3]), version[4] and _minute(version[4]), version[4] is None)
        for version in case.versions
    ]
    assert sorted(spans, key=repr) == sorted(expected, key=repr)
    changes = [change for run in seat.seated(case.runs) for change in run]
    times = _moved(seat, case.runs, case.times)
    assert found == _expected_versions(changes, times)
    _assert_current_is_table(lake, "histories", seat.table)
    if _KINDS[case.name] == "soft":
        assert comparable(seat.own(_read(lake, ("histories", seat.table)))) == _expected_softly(changes, times)


@pytest.mark.more
@pytest.mark.parametrize("case", _LIKE_TABLES, ids=lambda case: case.name)
def test_a_history_ends_with_its_table(case: Any, cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """What compaction must get right, its history does as well: the current versions are the rows."""
    _assert_current_is_table(lake, "histories", SEATS[f"table_{case.name}"].table)


def test_no_check_of_a_history_fails(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """No run held anything back, every event is accounted for, and rows counts deleted rows as well."""
    assert [report.problems for run in cases for report in run.values()] == [()] * len(cases) * 5
    assert_ledger_closes(lake, "histories")
    newest = Ledger(lake, "histories").published_tables()
    for table in {seat.table for seat in SEATS.values()}:
        assert newest[f"shop.{table}"].rows_after == len(_read(lake, ("histories", table)))


_HISTORIES = range(40)
"""By number, on which the options of a table depend."""


def _publish(source: Source, lake: Lake) -> None:
    """Run all stages. The few changes of one history, with times that go back, may look like a new log: approved."""
    reports = {stage: run_stage(stage, source) for stage in STAGES[:-1]}
    problems = [problem for report in reports.values() for problem in report.problems]
    doubts = (LOG_WENT_BACK, "log began anew", "--approve")
    assert all(any(text in problem for text in doubts) for problem in problems), problems
    cut = Ledger(lake, source.source).last_cut()
    published = run_stage(STAGES[-1], source, approve=cut.cut if problems and cut else None)
    assert not published.problems


def _tracked(history: object) -> Collection[str] | None:
    """The columns whose change begins a version."""
    if not isinstance(history, dict):
        return None
    return ["name"] if "track" in history else [name for name in COLUMNS if name not in history["ignore"]]


@pytest.mark.prove
def test_any_delivery_gives_the_versions_and_the_deleted_rows_of_the_model(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Histories in any order, cut into runs, sent again, with times that go back: history, soft deletes, and both.

    ``make test`` has generated versions in ``test_log_places.py``.
    """
    seed = 20260214
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    made = {f"t{number}": several(f"t{number}", seed + number, 1) for number in _HISTORIES}
    times = {place: place + dice.randint(-25, 25) for place in range(300)}
    kinds: list[dict[str, Any]] = [
        {"deletes": "soft"},
        {"history": {"track": ["na?e"]}},
        {"history": {"ignore": ["note", "amount"]}, "deletes": "soft"},
        {"history": True},
        {"history": True, "deletes": "soft"},
    ]
    tables = {
        name: {"key": changes[0].key, **kinds[number % 5]}
        for number, (name, changes) in zip(_HISTORIES, made.items(), strict=True)
    }
    deliveries = {name: mixed(dice, changes, dice.randint(1, _RUNS)) for name, changes in made.items()}
    source = _source("histories_generated", tmp_path, tables)
    for run in range(_RUNS):
        changes = [c for runs in deliveries.values() if run < len(runs) for c in runs[run]]
        deliver(tmp_path, f"{run}", [_timed(change, times) for change in changes])
        _publish(source, lake)
    assert_ledger_closes(lake, source.source)
    for name, settings in tables.items():
        runs = "\n".join(f"run {n}: {_timed(c, times).decode()}" for n, run in enumerate(deliveries[name]) for c in run)
        if "history" in settings:
            tracked = _tracked(settings["history"])
            assert _versions(lake, source.source, name) == _expected_versions(made[name], times, tracked), runs
            _assert_current_is_table(lake, source.source, name)
        if "deletes" in settings:
            assert comparable(_read(lake, (source.source, name))) == _expected_softly(made[name], times), runs


@pytest.mark.more
@pytest.mark.parametrize("name", SOFT_RUNS)
def test_a_deleted_row_stays_marked(name: str, cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Every case has the rows written beside it, none without its mark, and the model agrees."""
    seat, (_, expected) = SEATS[f"soft_{name}"], SOFT_CASES[name]
    rows = seat.own(_read(lake, ("histories", seat.table)))
    names = ("name", "note", "_cdc_committed_at", "_cdc_deleted")
    found = [(seat.own_key(row["id"]), *(row[column] for column in names)) for row in rows]
    assert sorted(found, key=repr) == sorted(((*r[:3], _minute(r[3]), r[4]) for r in expected), key=repr)
    changes = [change for run in seat.seated(SOFT_RUNS[name]) for change in run]
    assert comparable(rows) == _expected_softly(changes, _moved(seat, SOFT_RUNS[name], {}))


@pytest.mark.more
def test_a_source_file_may_change_its_mind(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Hard to soft, history on, fewer columns tracked: as if from the start; soft to hard stops the table.

    In ``make prove`` the history is off for a time, and has all columns again.
    """
    t = Table("t")
    both, few = {"history": True, "deletes": "soft"}, {"history": {"track": ["name"]}, "deletes": "soft"}
    other_again: list[tuple[dict[str, Any], list[Change]]] = [
        ({"deletes": "soft"}, [t.delete(7, 1, "c", "d"), t.insert(8, 3, "e", "f")]),
        (both, [t.insert(9, 4, "g", "h")]),
        (few, [t.update(10, 4, "g", "i"), t.update(11, 3, "e", "k")]),
        (few, [t.update(12, 4, "g", "l"), t.update(13, 3, "m", "k"), t.update(3, 1, "a", "late")]),
        (both, [t.update(14, 4, "g", "m")]),
    ]
    steps: list[tuple[dict[str, Any], list[Change]]] = [
        ({}, [t.insert(1, 1, "a", "b"), t.insert(2, 2, "x", "y"), t.delete(5, 2, "x", "y")]),
        (both, [t.update(6, 1, "c", "d"), t.update(4, 2, "late", "late")]),
        *how_many(usually=[(few, [change for _, run in other_again for change in run])], proving=other_again),
        ({"history": True}, [t.insert(15, 5, "i", "j")]),
    ]
    problems, found = [], []
    for number, (settings, changes) in enumerate(steps):
        source = _source("changing", tmp_path, {"t": settings})
        deliver(tmp_path, f"{number}", [_timed(change, {}) for change in changes])
        problems.append([problem for report in run_all(source).values() for problem in report.problems])
        found.append(_versions(lake, "changing", "t") if number else [])
    assert problems[:-1] == [[]] * (len(steps) - 1)
    assert "tidemark rebuild changing shop.t" in problems[-1][0]
    rows = {row["id"]: (row["name"], row["_cdc_deleted"]) for row in _read(lake, ("changing", "t"))}
    # Key 2 went for good while deletes were hard.
    assert rows == {1: ("c", True), 3: ("m", False), 4: ("g", False)}
    for last, (kinds, _) in list(enumerate(steps))[how_many(usually=2, proving=3) : -1]:
        changes = [change for _, run in steps[: last + 1] for change in run]
        assert found[last] == _expected_versions(changes, {}, _tracked(kinds["history"])), last
    assert not PROVING or len(found[-3]) < len(found[-2])


def test_a_history_goes_on_from_the_last_cut_of_its_table_alone(lake: Lake) -> None:
    """And by the same rule for columns: one that was off for a time, or tracked others, begins from the start."""
    table = plans.published(lake, {"id": "long"}, (1,))
    shape = plans.found(plans.shape(id="long"))
    every, few = (
        replace(planner.plan(plans.source({"history": kept}), shape, None), target=Identifier(*table.name()))
        for kept in (True, {"track": ["id"]})
    )
    run = cast("Run", SimpleNamespace(lake=lake))  # nothing else of a run matters
    assert not goes_on(run, every)
    versions = lake.ensure(every.versions, table.schema(), {})
    commit_files(versions, [], summary={f"{MARKER}tracking": "every event"})
    for cut in ("cut_1", "cut_2"):
        if cut not in table.refs():
            table.manage_snapshots().create_tag(table.refs()["main"].snapshot_id, cut).commit()
        assert not goes_on(run, every)
        versions.refresh().manage_snapshots().create_tag(versions.refs()["main"].snapshot_id, cut).commit()
        assert (goes_on(run, every), goes_on(run, few)) == (True, False)


CRASHES = {
    "before_the_history_has_a_branch": ("tidemark.compaction.history_tables.prepare", 2),
    "before_its_merge": ("tidemark.compaction.merging.write_versions", 2),
    "after_its_merge": ("tidemark.compaction.accounting.account", 2),
    "between_table_and_history": ("tidemark.ledger.cuts.fast_forward", 3),
    "after_its_fast_forward": ("tidemark.ledger.cuts.move", 2),
    "before_the_cut_is_published": ("tidemark.ledger.cuts.set_state", 3),
}
"""Function that the process does not live to run, and which call of it."""


@pytest.mark.parametrize("point", crash_windows(CRASHES, usually=()))
def test_a_killed_run_leaves_a_history_that_the_next_mends(
    point: str, spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at a point and run again, of two tables: versions and rows are as after a clean run."""
    tables = [Table("one"), Table("two")]
    source = _source(f"crash_{point}", tmp_path, {table.name: {"history": True, "deletes": "soft"} for table in tables})
    runs = [
        [change for t in tables for change in (t.insert(1, 1, "a", "b"), t.insert(2, 2, "x", "y"))],
        [
            change
            for t in tables
            for change in (t.update(4, 1, "c", ...), t.delete(5, 2, "x", "y"), t.insert(3, 3, "e", "f"))
        ],
    ]
    deliver(tmp_path, "0", [_timed(change, {}) for change in runs[0]])
    run_all(source)
    deliver(tmp_path, "1", [_timed(change, {}) for change in runs[1]])
    with monkeypatch.context() as patched:
        die_at(patched, *CRASHES[point])
        with pytest.raises(SystemExit):
            run_all(source)
    run_all(source)
    for t in tables:
        changes = [change for run in runs for change in run if change.table == t.name]
        assert _versions(lake, source.source, t.name) == _expected_versions(changes, {})
        assert comparable(_read(lake, (source.source, t.name))) == _expected_softly(changes, {})
        refs = lake.load(history(Identifier(source.source, t.name))).refs()
        assert {name for name in refs if name != "main"} == {"cut_1", "cut_2"}
    assert_ledger_closes(lake, source.source)
