"""Tables without a key converge: a bag of rows, whose counts and positions depend on the set of events alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyiceberg.expressions import And, StartsWith
from pyspark.sql import SparkSession

from support.bags import COLUMNS, Bag
from support.feeds import published, replayed
from support.histories import canal, deliver, message, mixed, position, with_position
from support.options import is_fed
from support.published import without_delivery
from support.reference import Change, Row, fold
from support.rounds import PROVING, how_many, in_two_runs
from support.running import run_all
from support.seats import Seat, seats
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.positions import encode_position
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables.schemas import POSITION

pytestmark = pytest.mark.spark

_RUNS = 3
_COUNTS = ("applied", "superseded", "duplicate", "held", "quarantined")


class Case(NamedTuple):
    """Changes of one table, run by run; the rows they lead to, each with the place in the log that inserted it."""

    name: str
    runs: list[list[Change]]
    rows: list[tuple[Any, ...]]
    counts: tuple[int, ...] | None = None
    """Applied, superseded, duplicate, held and quarantined of all runs, where the case is about them."""


def _case(name: str, build: Callable[[Bag], tuple[Any, ...]]) -> Case:
    return Case(name, *build(Bag(name)))


NAN = float("nan")
CASES = [
    _case("equal_rows", lambda t: ([[t.insert(1, "a", 1), t.insert(2, "a", 1)]], [("a", 1, 1), ("a", 1, 2)])),
    _case(
        "equal_rows_over_runs",
        lambda t: ([[t.insert(1, "a", 1)], [t.insert(2, "a", 1)], [t.insert(3, "a", 1)]],
                   [("a", 1, 1), ("a", 1, 2), ("a", 1, 3)]),
    ),
    _case(
        "two_equal_rows_and_one_delete",
        lambda t: ([[t.insert(1, "a", 1), t.insert(2, "a", 1)], [t.delete(3, "a", 1)]], [("a", 1, 2)]),
    ),
    _case(
        "two_equal_rows_and_one_delete_in_one_run",
        lambda t: ([[t.insert(1, "a", 1), t.insert(2, "a", 1), t.delete(3, "a", 1)]], [("a", 1, 2)]),
    ),
    _case(
        "delete_of_an_equal_row_only",
        lambda t: ([[t.insert(1, "a", 1), t.insert(2, "a", 2)], [t.delete(3, "a", 2)]], [("a", 1, 1)]),
    ),
    _case("delete_of_a_row_never_seen", lambda t: ([[t.delete(1, "a", 1)], [t.insert(2, "a", 1)]], [("a", 1, 2)])),
    _case(
        "two_deletes_of_one_row_then_an_insert",
        lambda t: ([[t.insert(1, "a", 1)], [t.delete(2, "a", 1), t.delete(3, "a", 1)], [t.insert(4, "a", 1)]],
                   [("a", 1, 4)]),
    ),
    _case("delete_before_its_insert", lambda t: ([[t.delete(2, "a", 1)], [t.insert(1, "a", 1)]], [])),
    _case(
        "late_insert_is_what_a_delete_took",
        lambda t: ([[t.insert(2, "a", 1), t.insert(4, "b", 1)], [t.delete(3, "a", 1)], [t.insert(1, "a", 1)]],
                   [("a", 1, 2), ("b", 1, 4)]),
    ),
    _case(
        "late_delete_between_inserts",
        lambda t: ([[t.insert(1, "a", 1), t.insert(3, "a", 1)], [t.delete(2, "a", 1)]], [("a", 1, 3)]),
    ),
    _case(
        "late_delete_before_all",
        lambda t: ([[t.insert(2, "a", 1)], [t.delete(1, "a", 1)]], [("a", 1, 2)]),
    ),
    _case(
        "update_takes_out_and_puts_in",
        lambda t: ([[t.insert(1, "a", 1), t.insert(2, "a", 1)], [t.update(3, ("a", 1), ("b", 2))]],
                   [("a", 1, 2), ("b", 2, 3)]),
    ),
    _case(
        "update_to_an_equal_row",
        lambda t: ([[t.insert(1, "a", 1), t.insert(2, "a", 1)], [t.update(3, ("a", 1), ("a", 1))]],
                   [("a", 1, 2), ("a", 1, 3)]),
    ),
    _case(
        "update_of_a_row_never_seen_to_an_equal_row",
        lambda t: ([[t.update(1, ("a", 1), ("a", 1))]], [("a", 1, 1)]),
    ),
    _case(
        "update_to_an_equal_row_after_its_delete",
        lambda t: ([[t.insert(1, "a", 1), t.delete(2, "a", 1), t.update(3, ("a", 1), ("a", 1))]], [("a", 1, 3)]),
    ),
    _case(
        "update_to_an_equal_row_after_its_delete_in_an_earlier_run",
        lambda t: ([[t.insert(1, "a", 1)], [t.delete(2, "a", 1)], [t.update(3, ("a", 1), ("a", 1))]], [("a", 1, 3)]),
    ),
    _case("update_of_a_row_never_seen", lambda t: ([[t.update(1, ("a", 1), ("b", 2))]], [("b", 2, 1)])),
    _case(
        "late_update_in_a_chain",
        lambda t: ([[t.insert(1, "a", 1)], [t.update(3, ("b", 1), ("c", 1))], [t.update(2, ("a", 1), ("b", 1))]],
                   [("c", 1, 3)]),
    ),
    _case(
        "sent_again_in_one_run",
        lambda t: ([[t.insert(1, "a", 1), t.insert(1, "a", 1), t.insert(2, "a", 1)]], [("a", 1, 1), ("a", 1, 2)],
                   (2, 0, 1, 0, 0)),
    ),
    _case(
        "sent_again_in_a_later_run",
        lambda t: (
            [
                [t.insert(1, "a", 1), t.insert(2, "a", 1), t.insert(3, "b", 1)],
                [t.insert(1, "a", 1), t.insert(2, "a", 1), t.insert(3, "b", 1)],
                [t.insert(2, "a", 1), t.delete(4, "a", 1)],
            ],
            [("a", 1, 2), ("b", 1, 3)],
            (4, 0, 4, 0, 0),
        ),
    ),
    _case(
        "sent_again_after_its_row_went",
        lambda t: ([[t.insert(1, "a", 1)], [t.delete(2, "a", 1)], [t.insert(1, "a", 1), t.delete(2, "a", 1)]], [],
                   (2, 0, 2, 0, 0)),
    ),
    _case(
        "sent_again_with_a_late_event",
        lambda t: ([[t.insert(2, "a", 1), t.insert(3, "a", 1)], [t.insert(2, "a", 1), t.insert(1, "a", 1)]],
                   [("a", 1, 1), ("a", 1, 2), ("a", 1, 3)], (3, 0, 1, 0, 0)),
    ),
    _case(
        "truncate_in_the_middle",
        lambda t: (
            [[t.insert(1, "a", 1), t.truncate(2), t.insert(3, "a", 1)]], [("a", 1, 3)], (2, 1, 0, 0, 0),
        ),
    ),
    _case("truncate_alone_in_its_run", lambda t: ([[t.insert(1, "a", 1), t.insert(2, "a", 1)], [t.truncate(3)]], [])),
    _case(
        "late_truncate_frees_a_row_from_a_delete",
        lambda t: (
            [
                [t.insert(1, "a", 1), t.insert(6, "a", 1), t.insert(2, "b", 1), t.insert(3, "c", 1)],
                [t.insert(7, "a", 1), t.delete(8, "a", 1), t.insert(9, "c", 1)],
                [t.truncate(5), t.insert(4, "a", 1), t.insert(10, "d", 1)],
            ],
            [("a", 1, 7), ("c", 1, 9), ("d", 1, 10)],
        ),
    ),
    _case(
        "late_event_below_a_truncate",
        lambda t: ([[t.insert(1, "a", 1), t.truncate(5)], [t.insert(6, "a", 1)], [t.insert(4, "a", 1)]],
                   [("a", 1, 6)]),
    ),
    _case(
        "late_event_above_a_truncate",
        lambda t: ([[t.insert(1, "a", 1), t.truncate(5)], [t.delete(7, "a", 1)], [t.insert(6, "a", 1)]], []),
    ),
    _case(
        "late_events_around_a_truncate",
        lambda t: (
            [
                [t.insert(1, "a", 1), t.insert(2, "b", 1), t.truncate(5)],
                [t.delete(7, "a", 1), t.insert(8, "b", 1)],
                [t.insert(6, "a", 1), t.insert(4, "b", 1)],
            ],
            [("b", 1, 8)],
        ),
    ),
    _case(
        "null_equals_null",
        lambda t: ([[t.insert(1, None, None), t.insert(2, None, None), t.insert(3, "a", None)],
                    [t.delete(4, None, None)]],
                   [(None, None, 2), ("a", None, 3)]),
    ),
    _case(
        "nan_equals_nan",
        lambda t: ([[t.insert(1, "a", NAN), t.insert(2, "a", NAN)], [t.delete(3, "a", NAN)]], [("a", NAN, 2)]),
    ),
    _case(
        "zero_equals_negative_zero",
        lambda t: ([[t.insert(1, "a", 0.0), t.insert(2, "a", -0.0)], [t.delete(3, "a", -0.0)]], [("a", -0.0, 2)]),
    ),
    _case(
        "negative_zero_folded_from_the_log",
        lambda t: ([[t.insert(1, "a", 0.0), t.delete(4, "a", 0.0)], [t.insert(3, "a", -0.0)], [t.insert(2, "b", 1)]],
                   [("a", -0.0, 3), ("b", 1, 2)]),
    ),
    _case(
        "column_added",
        lambda t: (
            [
                [t.insert(1, "a", 1), t.insert(2, "a", 1)],
                [t.wider().insert(3, "a", 1, 7), t.wider().delete(4, "a", 1, None)],
            ],
            [("a", 1, 2), ("a", 1, 7, 3)],
        ),
    ),
    _case(
        "column_first_seen_in_a_late_event",
        lambda t: (
            [
                [t.insert(1, "a", 1), t.insert(5, "a", 1)],
                [t.wider().delete(3, "a", 1, None)],
                [t.wider().insert(2, "a", 1, 7)],
            ],
            [("a", 1, 5), ("a", 1, 7, 2)],
        ),
    ),
    _case(
        "one_row_very_often",
        lambda t: ([[t.insert(n, "a", 1) for n in range(1, 3001)], [t.delete(n, "a", 1) for n in range(3001, 5999)]],
                   [("a", 1, 2999), ("a", 1, 3000)]),
    ),
]  # fmt: skip
_PROVED = {
    "truncate_in_the_middle",
    "truncate_alone_in_its_run",
    "late_event_below_a_truncate",
    "late_event_above_a_truncate",
    "column_added",
    "column_first_seen_in_a_late_event",
}
"""Cases of ``make prove``, with tables of their own. ``make test`` has a late TRUNCATE, late events around one, and a
column that is added to a bag in ``test_features_together.py``."""
TRIED = [case._replace(runs=in_two_runs(case.runs)) for case in CASES if PROVING or case.name not in _PROVED]


def _beside(change: Change, number: int, count: int) -> Change:
    """The change with names and a position that no other of ``count`` cases has."""

    def moved(row: Row | None) -> Row | None:
        return row and {**row, "name": f"{row['name']}_{number}"}

    place = position(int(change.position[2]) * count + number, change.operation)
    return change._replace(position=place, before=moved(change.before), after=moved(change.after))


SEARCHED = "null_equals_null"


def _kind(name: str) -> str:
    """The kind of a case: whether it states counts; its own name where rows have no name."""
    case = next(case for case in CASES if case.name == name)
    nameless = any(
        None in (row or {}).values() for run in case.runs for change in run for row in (change.before, change.after)
    )
    if nameless:
        return name
    return "counted" if case.counts else "rows"


SEATS = seats({case.name: case.runs for case in TRIED}, _kind)


def _message(change: Change) -> bytes:
    """Write a change as Debezium does: what is not a number in quotation marks."""
    return message(change._replace(before=_quoted(change.before), after=_quoted(change.after)))


def _quoted(row: Row | None) -> Row | None:
    return row and {name: "NaN" if value != value else value for name, value in row.items()}  # noqa: PLR0124  as NaN does


def _source(name: str, landing: Path, **fields: Any) -> Source:
    settings = {"max_deletes": 1, "tables": {"shop.*": {"key": [], "columns": COLUMNS}}, **fields}
    return Source.model_validate({"source": name, "format": "debezium_json", "landing": str(landing / "*"), **settings})


_MENDS = Bag("mended")
_MENDED = [
    [_MENDS.insert(1, "a", 1), _MENDS.insert(3, "a", 3), _MENDS.insert(2, "a", "many")],
    [_MENDS.insert(2, "a", 2), _MENDS.insert(1, "a", 1)],
]
"""Changes by run: one that cannot be read comes again as it should have been."""


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All cases in tables of one source, landed and published in two or three runs; the runs' reports."""
    landing = tmp_path_factory.mktemp("bags")
    source = _source("bags", landing, max_quarantined=1)
    reports = []
    seated = [*(SEATS[case.name].seated(case.runs, _beside) for case in TRIED), _MENDED]
    for run in range(how_many(usually=2, proving=_RUNS)):
        deliver(landing, f"run-{run}", [_message(c) for runs in seated if run < len(runs) for c in runs[run]])
        reports.append(run_all(source))
    return reports


@pytest.mark.more
@pytest.mark.parametrize("case", TRIED, ids=lambda case: case.name)
def test_the_bag_is_what_its_changes_lead_to(case: Case, cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Every case publishes the rows written beside it, each with the position of its own insertion."""
    seat = SEATS[case.name]
    expected = [_row(case, seat, *values) for values in case.rows]
    rows = _published(lake, "bags", seat.table)
    own = f"_{seat.number}"
    if seat.count > 1:
        rows = [(row[0].removesuffix(own), *row[1:]) for row in rows if row[0].endswith(own)]
    assert rows == sorted(expected, key=repr)


def _row(case: Case, seat: Seat, name: Any, size: Any, *rest: Any) -> tuple[Any, ...]:
    extra, at = (None, *rest)[-2:]
    changes = [change for run in seat.seated(case.runs, _beside) for change in run]
    found = {change.position[2]: change for change in changes if change.after is not None}
    wrote = next(with_position([found[seat.place(at)]]))
    assert wrote.after is not None
    return (name, _shown(size), extra, wrote.after[POSITION])


def _shown(size: Any) -> str | None:
    """A number as text: not a number is then equal to itself, and a negative zero is not zero."""
    return None if size is None else repr(float(size))


def test_the_model_agrees_with_every_case() -> None:
    """What is written beside the cases is what the plain model makes of them."""
    for case in CASES:
        expected = sorted((_row(case, Seat(case.name), *values) for values in case.rows), key=repr)
        assert _expected([change for run in case.runs for change in run]) == expected, case.name


def test_the_ledger_of_all_bags_closes(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """No run stopped a table, every event is accounted for, and the rows counted are the rows there are."""
    assert [report.problems for run in cases for report in run.values()] == [()] * len(cases) * 5
    _assert_ledger_closes(lake, "bags")
    counted: dict[str, list[tuple[int, ...]]] = {}
    for case in TRIED:
        if case.counts is not None:
            counted.setdefault(SEATS[case.name].table, []).append(case.counts)
    for table, counts in counted.items():
        rows = [row for row in Ledger(lake, "bags").read("tables") if row["object"] == f"shop.{table}"]
        assert [sum(row[name] for row in rows) for name in _COUNTS] == [*map(sum, zip(*counts, strict=True))], table


def _assert_ledger_closes(lake: Lake, source: str) -> None:
    ledger = Ledger(lake, source)
    for row in ledger.read("tables"):
        assert row["events"] == sum(row[name] for name in _COUNTS), row
        assert min(row[name] for name in _COUNTS) >= 0, row
    for row in ledger.published_tables().values():
        if row.target is None:  # stopped
            continue
        name = row.identifier.name
        assert row.rows_after == lake.load((source, name)).scan().to_arrow().num_rows, row


def _published(lake: Lake, source: str, table: str) -> list[tuple[Any, ...]]:
    return _comparable(lake.load((source, table)).scan().to_arrow().to_pylist())


def _expected(changes: Sequence[Change]) -> list[tuple[Any, ...]]:
    return _comparable(fold(with_position(changes)).get(changes[0].table, {}).values())


def _comparable(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    shown_rows = [{**without_delivery(row), "size": _shown(row["size"])} for row in rows]
    return sorted((tuple(row.get(name) for name in (*COLUMNS, POSITION)) for row in shown_rows), key=repr)


def _generated(name: str, seed: int) -> list[Change]:
    """Make up the history of one bag: few values, so that there are equal rows and rows that are not there."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    length = dice.randint(4, 30)
    added = dice.randint(1, 2 * length)
    changes = []
    for place in range(1, length + 1):
        table = Bag(name) if place < added else Bag(name).wider()

        def row(table: Bag = table) -> tuple[Any, ...]:
            values = (dice.choice(("a", "b", None)), dice.choice((1, 0.0, -0.0, NAN)), dice.choice((None, None, 7)))
            return values[: len(table.columns)]

        chance = dice.random()
        at = 10 * place
        if chance < 0.04:
            changes.append(table.truncate(at))
        elif chance < 0.5:
            changes.append(table.insert(at, *row()))
        elif chance < 0.7:
            changes.append(table.update(at, row(), row()))
        else:
            changes.append(table.delete(at, *row()))
    return changes


_HISTORIES = 40


@pytest.mark.prove
def test_any_delivery_gives_the_bag_of_the_model(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Histories in any order, cut into runs, sent again: rows, counts and positions are the model's."""
    seed = 20260201
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    histories = {f"t{number}": _generated(f"t{number}", seed + number) for number in range(_HISTORIES)}
    # Some in order, where each run goes on from the one before it.
    deliveries = {
        table: _in_order(dice, changes) if number % 4 == 0 else mixed(dice, changes, dice.randint(1, _RUNS))
        for number, (table, changes) in enumerate(histories.items())
    }
    tables = {f"shop.{table}": {"key": [], "columns": COLUMNS, "feed": is_fed(table)} for table in histories}
    source = _source("made_up", tmp_path, tables=tables)
    for run in range(_RUNS):
        changes = [change for runs in deliveries.values() if run < len(runs) for change in runs[run]]
        for number in range(2):
            deliver(tmp_path, f"{run}-{number}", map(_message, changes[number::2]))
        reports = run_all(source)
        assert [problem for report in reports.values() for problem in report.problems] == []
    _assert_ledger_closes(lake, "made_up")
    wrong = [
        (table, deliveries[table])
        for table, changes in histories.items()
        if _published(lake, "made_up", table) != _expected(changes)
        or (is_fed(table) and replayed(lake, identifier := Identifier("made_up", table)) != published(lake, identifier))
    ]
    assert not wrong, f"seed {seed}: {wrong[0]}"


def _in_order(dice: random.Random, changes: Sequence[Change]) -> list[list[Change]]:
    cuts_at = sorted(dice.sample(range(1, len(changes)), 2))
    return [list(changes[start:end]) for start, end in zip([0, *cuts_at], [*cuts_at, len(changes)], strict=True)]


INT, PAIR = {"id": "int", "n": "int"}, {"id": "int", "n": "int", "t": "varchar(9)"}
CANAL_RUNS = [
    [
        canal("nobody_tells", "INSERT", INT, (1, 5), (1, 5), (2, 6), key=None),
        canal("told_empty", "INSERT", INT, (1, 5), (1, 5), key=[]),
        canal("overridden", "INSERT", INT, (1, 5), (1, 6), key=[]),
        canal("keyed_later", "INSERT", INT, (1, 5), (1, 5), key=[]),
        canal("keyless_later", "INSERT", INT, (1, 5)),
        canal("old_values", "INSERT", PAIR, (1, 5, "x"), (1, 5, "x"), (2, 5, "x"), key=[]),
        canal("no_old_row", "INSERT", INT, (1, 5), key=[]),
        canal("misfit", "INSERT", INT, (1, 5), (2, 5), key=[]),
    ],
    [
        canal("nobody_tells", "DELETE", INT, (1, 5), key=None),
        canal("keyed_later", "INSERT", INT, (2, 5)),
        canal("keyless_later", "INSERT", INT, (1, 7), key=[]),
        canal("old_values", "UPDATE", PAIR, (1, None, "x"), key=[], old={"n": 5}),
        canal("no_old_row", "UPDATE", INT, (1, 6), key=[]),
        canal("no_old_row", "DELETE", INT, (1, 5), key=[]).replace(b', "n": 5}', b"}"),
        canal("misfit", "DELETE", INT, (1, "many"), key=[]),
        canal("misfit", "UPDATE", INT, (3, 5), key=[], old={"id": "one"}),
    ],
]
CANAL_ROWS: dict[str, list[tuple[Any, ...]]] = {
    "nobody_tells": [(1, 5), (2, 6)],
    "told_empty": [(1, 5), (1, 5)],
    "overridden": [(1, 6)],
    "keyed_later": [(1, 5), (1, 5)],
    "keyless_later": [(1, 5), (1, 7)],
    "old_values": [(1, 5, "x"), (1, None, "x"), (2, 5, "x")],
    "no_old_row": [(1, 5)],
    "misfit": [(1, 5), (2, 5)],
}
CANAL_SET_ASIDE = [
    ("incomplete_image", "shop.no_old_row", "n"),
    ("incomplete_image", "shop.no_old_row", "only some of its columns"),
    (
        "unreadable_value",
        "shop.misfit",
        "column 'id': \"one\" is no int written as text: not an integer; `columns: {id: string}` keeps it as text",
    ),
    (
        "unreadable_value",
        "shop.misfit",
        "column 'n': \"many\" is no int written as text: not an integer; `columns: {n: string}` keeps it as text",
    ),
]


@pytest.fixture(scope="module")
def canal_reports(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """The tables of ``CANAL_RUNS`` in one source of Canal, published in two runs."""
    landing = tmp_path_factory.mktemp("canal")
    tables = {"shop.overridden": {"key": ["id"]}}
    fields = {"source": "bags_of_canal", "format": "canal_json", "landing": str(landing / "*"), "tables": tables}
    source = Source.model_validate(fields)
    reports = []
    for number, messages in enumerate(CANAL_RUNS):
        deliver(landing, f"{number}", messages)
        reports.append(run_all(source))
    return reports


@pytest.mark.parametrize("table", CANAL_ROWS)
def test_what_is_told_of_the_key_decides(table: str, canal_reports: list[dict[str, StageReport]], lake: Lake) -> None:
    """No key in the messages, an empty one, one in the source file, old rows in part: the rows written beside them."""
    rows = lake.load(("bags_of_canal", table)).scan().to_arrow().to_pylist()
    assert sorted((tuple(row.values())[:-2] for row in rows), key=repr) == sorted(CANAL_ROWS[table], key=repr)


def test_a_key_that_rows_cannot_have_stops_the_table(canal_reports: list[dict[str, StageReport]], lake: Lake) -> None:
    """Equal rows of a bag share its new key: it stays as it is, and the reason is reported; no other table stops."""
    assert canal_reports[0]["compact"].problems == ()
    (problem,) = canal_reports[1]["compact"].problems
    assert "shop.keyed_later: the key changed from [] to ['id']" in problem
    assert "2 share it with another row" in problem
    assert [name for name in lake.tables("rebuild") if "bags_of_canal" in name] == []
    _assert_ledger_closes(lake, "bags_of_canal")


def test_rows_that_cannot_be_told_are_quarantined(canal_reports: list[dict[str, StageReport]], lake: Lake) -> None:
    """An old row that lacks columns, or does not fit its type: nobody could say which row goes."""
    rows = lake.load(("quarantine", "bags_of_canal")).scan().to_arrow().to_pylist()
    found = sorted((row["reason"], row["object"], row["detail"]) for row in rows)
    assert [entry[:2] for entry in found] == [entry[:2] for entry in CANAL_SET_ASIDE]
    for (_, _, detail), (_, _, end) in zip(found, CANAL_SET_ASIDE, strict=True):
        assert detail.endswith(end)


def _half(sequence: int, operation: str, image: str, **columns: Any) -> bytes:
    """Write a row of DataHub: of an update, the old one or the new one."""
    flags = {"_before_image_": "Y" if image == "before" else "N", "_after_image_": "N" if image == "before" else "Y"}
    envelope = {"_sequence_id_": str(sequence), "_operation_type_": operation, "_excute_time_": 1649991726000}
    return json.dumps({**envelope, "_source_table_": "halves", **flags, **columns}).encode()


def test_halves_of_an_update_may_come_in_any_run(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """The new half in one run, the old one in the next, as a late event."""
    tables = {"halves": {"columns": {"a": "long", "b": "string"}}}
    fields = {"source": "halves", "format": "datahub_tuple", "landing": str(tmp_path / "*"), "tables": tables}
    source = Source.model_validate(fields)
    rows = [_half(1, "I", "after", a=1, b="x"), _half(2, "I", "after", a=1, b="x")]
    deliver(tmp_path, "0", [*rows, _half(3, "U", "after", a=2, b=None)])
    run_all(source)
    assert _values(lake) == [(1, "x"), (1, "x"), (2, None)]
    deliver(tmp_path, "1", [_half(3, "U", "before", a=1, b="x")])
    run_all(source)
    assert _values(lake) == [(1, "x"), (2, None)]
    _assert_ledger_closes(lake, "halves")


def _values(lake: Lake) -> list[tuple[Any, ...]]:
    rows = lake.load(("halves", "halves")).scan().to_arrow().to_pylist()
    return sorted((row["a"], row["b"]) for row in rows)


def test_a_mended_event_is_not_taken_for_one_sent_again(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """What went to quarantine took no part: the event is new when it comes as it should have been."""
    (first, second, _), (mended, _) = _MENDED
    assert _published(lake, "bags", "mended") == _expected([first, second, mended])
    newest = Ledger(lake, "bags").published_tables()["shop.mended"]
    assert (newest.applied, newest.duplicate) == (1, 1)
    (aside,) = lake.load(("quarantine", "bags")).scan().to_arrow().to_pylist()
    assert (aside["object"], aside["value"]) == ("shop.mended", _message(_MENDED[0][2]))


def test_the_change_log_is_searched_by_position(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Its files declare which positions they hold, untruncated: files of other runs are not opened."""
    case = next(case for case in CASES if case.name == SEARCHED)
    changelog, seat = lake.load(("changelog", "bags")), SEATS[case.name]
    for run in seat.seated(case.runs, _beside):
        at = encode_position(run[0].position[:3])
        where = And(equals("object", f"shop.{seat.table}"), StartsWith("position", at))
        assert len(list(changelog.scan(row_filter=where).plan_files())) == 1
