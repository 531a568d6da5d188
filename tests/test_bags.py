"""Tables without a key converge: a bag of rows, whose counts and positions depend on the set of events alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from histories import canal, deliver, message, mixed, position, with_position
from reference import Change, Row, fold
from running import run_all
from tidemark import cuts
from tidemark.events import Operation
from tidemark.lake import Lake
from tidemark.ledger import Ledger
from tidemark.planning import POSITION
from tidemark.sources import Source
from tidemark.stages import StageReport

pytestmark = pytest.mark.spark

COLUMNS = {"name": "string", "size": "double", "extra": "long"}
_RUNS = 3
_COUNTS = ("applied", "superseded", "duplicate", "held", "quarantined")


class Bag:
    """A table without a key, whose changes a test writes down by the values of whole rows."""

    def __init__(self, name: str, columns: Sequence[str] = ("name", "size")) -> None:
        self.name = name
        self.columns = tuple(columns)

    def wider(self) -> Bag:
        """The same table after a column was added."""
        return Bag(self.name, (*self.columns, "extra"))

    def insert(self, at: int, *values: Any) -> Change:
        """A row was inserted."""
        return self._change(at, Operation.INSERT, None, values)

    def delete(self, at: int, *values: Any) -> Change:
        """A row was deleted."""
        return self._change(at, Operation.DELETE, values, None)

    def update(self, at: int, old: Sequence[Any], new: Sequence[Any]) -> Change:
        """A row was updated."""
        return self._change(at, Operation.UPDATE, old, new)

    def truncate(self, at: int) -> Change:
        """All rows went."""
        return self._change(at, Operation.TRUNCATE, None, None)

    def _change(self, at: int, operation: Operation, old: Sequence[Any] | None, new: Sequence[Any] | None) -> Change:
        before, after = (self._row(old) if old is not None else None), (self._row(new) if new is not None else None)
        return Change(self.name, operation, position(at, operation), (), before, after)

    def _row(self, values: Sequence[Any]) -> Row:
        return dict(zip(self.columns, values, strict=True))


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
            [[t.insert(1, "a", 1), t.insert(2, "a", 1)], [t.wider().insert(3, "a", 1, 7), t.wider().delete(4, "a", 1, None)]],
            [("a", 1, 2), ("a", 1, 7, 3)],
        ),
    ),
    _case(
        "column_first_seen_in_a_late_event",
        lambda t: (
            [[t.insert(1, "a", 1), t.insert(5, "a", 1)], [t.wider().delete(3, "a", 1, None)], [t.wider().insert(2, "a", 1, 7)]],
            [("a", 1, 5), ("a", 1, 7, 2)],
        ),
    ),
    _case(
        "one_row_very_often",
        lambda t: ([[t.insert(n, "a", 1) for n in range(1, 3001)], [t.delete(n, "a", 1) for n in range(3001, 5999)]],
                   [("a", 1, 2999), ("a", 1, 3000)]),
    ),
]  # fmt: skip


def _source(name: str, landing: Path, **fields: Any) -> Source:
    told = {"tables": {"shop.*": {"key": [], "columns": COLUMNS}}, **fields}
    return Source.model_validate({"source": name, "format": "debezium_json", "landing": str(landing / "*"), **told})


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All cases as tables of one source, landed and published in three runs; the runs' reports."""
    landing = tmp_path_factory.mktemp("bags")
    source = _source("bags", landing)
    reports = []
    for run in range(_RUNS):
        changes = [change for case in CASES for change in (case.runs[run] if run < len(case.runs) else [])]
        deliver(landing, f"run-{run}", map(message, changes))
        reports.append(run_all(source))
    return reports


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_bag_is_what_its_changes_lead_to(case: Case, cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Every case publishes the rows written beside it, each with the position of its own insertion."""
    expected = [_row(case, *told) for told in case.rows]
    assert _published(lake, "bags", case.name) == sorted(expected, key=repr)


def _row(case: Case, name: Any, size: Any, *told: Any) -> tuple[Any, ...]:
    extra, at = (None, *told)[-2:]
    found = {change.position[2]: change for run in case.runs for change in run if change.after is not None}
    wrote = next(with_position([found[at]]))
    assert wrote.after is not None
    return (name, None if size is None else float(size), extra, wrote.after[POSITION])


def test_the_model_agrees_with_every_case() -> None:
    """What is written beside the cases is what the plain model makes of them."""
    for case in CASES:
        expected = sorted((_row(case, *told) for told in case.rows), key=repr)
        assert _expected([change for run in case.runs for change in run]) == expected, case.name


def test_the_ledger_of_all_bags_closes(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """No run stopped a table, every event is accounted for, and the rows counted are the rows there are."""
    assert [report.problems for run in cases for report in run.values()] == [()] * len(cases) * 5
    _assert_ledger_closes(lake, "bags")
    for case in CASES:
        if case.counts is not None:
            rows = [row for row in Ledger(lake, "bags").read("tables") if row["object"] == f"shop.{case.name}"]
            assert tuple(sum(row[name] for row in rows) for name in _COUNTS) == case.counts, case.name


def _assert_ledger_closes(lake: Lake, source: str) -> None:
    ledger = Ledger(lake, source)
    for row in ledger.read("tables"):
        assert row["events"] == sum(row[name] for name in _COUNTS), row
        assert min(row[name] for name in _COUNTS) >= 0, row
    for row in ledger.published_tables().values():
        name = row["target"].partition(".")[2]
        assert row["rows_after"] == lake.load((source, name)).scan().to_arrow().num_rows, row


def _published(lake: Lake, source: str, table: str) -> list[tuple[Any, ...]]:
    return _comparable(lake.load((source, table)).scan().to_arrow().to_pylist())


def _expected(changes: Sequence[Change]) -> list[tuple[Any, ...]]:
    return _comparable(fold(with_position(changes)).get(changes[0].table, {}).values())


def _comparable(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    told = [{**row, "size": None if row["size"] is None else float(row["size"])} for row in rows]
    return sorted((tuple(row.get(name) for name in (*COLUMNS, POSITION)) for row in told), key=repr)


def _generated(name: str, seed: int) -> list[Change]:
    """Make up the history of one bag: few values, so that there are equal rows and rows that are not there."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    length = dice.randint(4, 30)
    added = dice.randint(1, 2 * length)
    changes = []
    for place in range(1, length + 1):
        table = Bag(name) if place < added else Bag(name).wider()

        def row(table: Bag = table) -> tuple[Any, ...]:
            told = (dice.choice(("a", "b", None)), dice.choice((1, 0.0, -0.0, NAN)), dice.choice((None, None, 7)))
            return told[: len(table.columns)]

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


def test_any_delivery_gives_the_bag_of_the_model(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Forty histories in any order, cut into runs, sent again: rows, counts and positions are the model's."""
    seed = 20260201
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    histories = {f"t{number}": _generated(f"t{number}", seed + number) for number in range(40)}
    # Some in order, where each run goes on from the one before it.
    deliveries = {
        table: _in_order(dice, changes) if number % 4 == 0 else mixed(dice, changes, dice.randint(1, _RUNS))
        for number, (table, changes) in enumerate(histories.items())
    }
    source = _source("made_up", tmp_path)
    for run in range(_RUNS):
        changes = [change for runs in deliveries.values() if run < len(runs) for change in runs[run]]
        for number in range(2):
            deliver(tmp_path, f"{run}-{number}", map(message, changes[number::2]))
        reports = run_all(source)
        assert [problem for report in reports.values() for problem in report.problems] == []
    _assert_ledger_closes(lake, "made_up")
    wrong = [
        (table, deliveries[table])
        for table, changes in histories.items()
        if _published(lake, "made_up", table) != _expected(changes)
    ]
    assert not wrong, f"seed {seed}: {wrong[0]}"


def _in_order(dice: random.Random, changes: Sequence[Change]) -> list[list[Change]]:
    cuts_at = sorted(dice.sample(range(1, len(changes)), 2))
    return [list(changes[start:end]) for start, end in zip([0, *cuts_at], [*cuts_at, len(changes)], strict=True)]
