"""Rows that fail a check with ``on_fail: quarantine`` or ``keep_last_good`` are kept back, whatever the delivery."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message, with_position
from support.published import without_delivery
from support.reference import Change, Row, fold
from support.rounds import how_many
from support.running import assert_ledger_closes, run_all
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.states import CutState
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.row_life import Outcome
from tidemark.sources.model import Source
from tidemark.stages import StageReport

pytestmark = pytest.mark.spark

_KEEPS = {"type": "expect_column_values_to_be_between", "column": "amount", "min_value": 0, "on_fail": "keep_last_good"}
_OUT = {"type": "expect_column_values_to_not_be_null", "column": "name", "on_fail": "quarantine"}
_BOTH = [_OUT, _KEEPS]
_CHECKS = {"keeps": [_KEEPS], "out": [_OUT], "both": _BOTH}
_REGEX = {"type": "expect_column_values_to_match_regex", "column": "name", "on_fail": "quarantine"}
_PATTERNS = {"broken": [{**_REGEX, "regex": "(?P<word>a)"}], "sound": [{**_REGEX, "regex": r"^\p{IsLatin}$"}]}
_COLUMNS = ("id", "name", "amount")
_HISTORIES = how_many(usually=40, proving=400)


def _source(name: str, landing: Path, checks: dict[str, list[dict[str, Any]]]) -> Source:
    tables = {
        f"shop.{table}": {
            "key": ["id"],
            "columns": {"amount": "decimal(12, 2)"},
            "checks": of_table,
            "history": name == "kept" and table == "both",
            "max_quarantined": 0.05 if table == "few" else 1,
        }
        for table, of_table in checks.items()
    }
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields | {"max_quarantined": 1, "max_deletes": 1})


def _history(name: str) -> list[Change]:
    """Many histories of three keys each, side by side in the order of the log; a TRUNCATE, and two complete loads."""
    dice = random.Random(f"kept {name}")  # noqa: S311  a test's own mixing
    table, alive, found = Table(name, columns=_COLUMNS), set[int](), list[Change]()
    length = _HISTORIES * 6
    for place in range(1, length):
        at, first = place * 10, 3 * dice.randrange(_HISTORIES)
        key, other = dice.sample(range(first, first + 3), 2)
        values = _values(dice)
        if place in {1, length * 3 // 4}:
            alive |= {key} if alive else set(range(0, 3 * _HISTORIES, 3))
            found += table.load(at, *((each, *_values(dice)) for each in sorted(alive)))
        elif place == length // 2:
            found.append(table.truncate(at))
            alive.clear()
        elif key not in alive:
            found.append(table.insert(at, key, *values))
            alive.add(key)
        elif (what := dice.random()) < 0.2:
            found.append(table.delete(at, key, *values))
            alive.remove(key)
        elif what < 0.4 and other not in alive:
            found.append(table.update(at, other, *values, was=(key,)))
            alive.symmetric_difference_update({key, other})
        else:
            found.append(table.update(at, key, *values))
    return found


def _values(dice: random.Random) -> tuple[str | None, str | None]:
    return dice.choice(["a", "b", None]), dice.choice(["1.00", "2.50", "-1.00", None])


def _judged(changes: Iterable[Change], kinds: list[dict[str, Any]]) -> Iterator[Change]:
    """What the changes do where rows are kept back, as changes that need no check."""
    for change in changes:
        row = change.after
        out = row is not None and _OUT in kinds and row["name"] is None
        bad = row is not None and _KEEPS in kinds and row["amount"] is not None and Decimal(row["amount"]) < 0
        if row is None or not (out or bad):
            yield change
            continue
        old = (change.before or row)["id"]
        gone = [old] if old != row["id"] else []
        for number, key in enumerate([*gone, *([row["id"]] if out else [])]):
            position = (*change.position, number)
            yield change._replace(operation=Operation.DELETE, position=position, before={"id": key}, after=None)


def _expected(changes: list[Change], kinds: list[dict[str, Any]]) -> list[Row]:
    rows = fold(with_position(_judged(changes, kinds))).get(changes[0].table, {})
    return _in_order(rows.values())


def _in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows by their keys, with their log places: of a loaded row, where it stood in the dump follows."""
    placed = [{**row, "_cdc_position": row["_cdc_position"].split(".")[:5]} for row in rows]
    return sorted(placed, key=lambda row: int(row["id"]))


def _published(lake: Lake, source: str, table: str) -> list[Row]:
    rows = lake.load((source, table)).scan().to_arrow().select([*_COLUMNS, "_cdc_position"]).to_pylist()
    return _in_order({**without_delivery(row), "amount": row["amount"] and str(row["amount"])} for row in rows)


def _versions(lake: Lake, source: str) -> list[str]:
    rows = lake.load((source, "both__history")).scan().to_arrow().to_pylist()
    return sorted(map(repr, map(without_delivery, rows)))


def _aside(lake: Lake, source: str) -> list[tuple[str, str, str]]:
    rows = lake.load(("quarantine", source)).scan().to_arrow().to_pylist()
    return sorted((row["object"], row["reason"], row["detail"]) for row in rows)


def _runs(every: list[Change]) -> list[list[Change]]:
    """Deliver changes in any order, in three runs, some of them again."""
    mixed = random.Random(7).sample(every, len(every))  # noqa: S311  a test's own mixing
    return [
        mixed[: len(mixed) // 3],
        mixed[len(mixed) // 4 : len(mixed) * 2 // 3],
        [*mixed[len(mixed) * 2 // 3 :], *mixed[:50]],
    ]


@pytest.mark.prove
def test_any_delivery_publishes_the_same_rows(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Late events, copies, splits, TRUNCATE, loads, changed keys: as the model says; with a history, and rebuilt."""
    changes = {name: _history(name) for name in _CHECKS}
    source = _source("kept", tmp_path, _CHECKS)
    for number, run in enumerate(_runs([change for of_table in changes.values() for change in of_table])):
        deliver(tmp_path, f"{number}.json", map(message, run))
        report = run_all(source)["check"]
        assert not report.has_problems
        assert not [remark for remark in report.remarks if "expect_" in remark]
    expected = {name: _expected(of_table, _CHECKS[name]) for name, of_table in changes.items()}
    assert {name: _published(lake, "kept", name) for name in _CHECKS} == expected
    assert all(expected.values())
    assert_ledger_closes(lake, "kept")
    aside = set(_aside(lake, "kept"))
    assert {reason for _, reason, _ in aside} == {"check_failed", "check_failed_kept_last_good"}
    versions = _versions(lake, "kept")
    for name in _CHECKS:
        run_stage("rebuild", source, table=f"shop.{name}")
    for stage in ("compact", "check", "publish"):
        report = run_stage(stage, source, None, None)
        assert not report.has_problems, report.problems
    assert {name: _published(lake, "kept", name) for name in _CHECKS} == expected
    assert _versions(lake, "kept") == versions
    assert set(_aside(lake, "kept")) == aside


def _item(table: str, at: int, key: int, name: str | None, amount: str, **more: Any) -> Change:
    changes = Table(table, columns=_COLUMNS)
    return (changes.update if more else changes.insert)(at, key, name, amount, **more)


_EDGES: list[list[Change]] = [
    [
        *(
            _item(table, 10 * n, n, "a", amount)
            for table in ("later", "eased")
            for n, amount in ((1, "1.00"), (2, "-1.00"))
        ),
        _item("parts", 10, 1, "a", "1.00"),
        _item("few", 10, 1, "a", "1.00"),
        _item("told", 10, 1, "a", "1.00"),
        _item("told", 20, 1, "a", "-1.00", was=(1,)),
        _item("told", 30, 1, None, "2.00", was=(1,)),
        _item("told", 40, 2, None, "2.00", was=(1,)),
        _item("told", 50, 3, "a", "1.00"),
        _item("told", 60, 4, "a", "-3.00", was=(3,)),
    ],
    [
        _item("later", 30, 3, "a", "3.00"),
        _item("eased", 30, 3, "a", "3.00"),
        Table("parts", columns=_COLUMNS).update(20, 1, ..., "2.00"),
        *(_item("few", 20 + n, n, "a", "-1.00") for n in range(2, 22)),
    ],
]


class Edges(NamedTuple):
    """Two runs of one source, whose checks change between them; the second one was approved."""

    landing: Path
    first: dict[str, StageReport]
    """The reports of the first run, and of the second one."""
    second: dict[str, StageReport]
    cut: int
    state: str
    """The second cut, and how it was before a person approved it."""


@pytest.fixture(scope="module")
def edges(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Edges:
    """Beside the cases, many changes of the table ``mixed`` in any order."""
    landing = tmp_path_factory.mktemp("edges")
    one, two, three = _runs(_history("mixed"))
    patterns = [[_item(table, 10 * n, n, name, "1.00") for table in _PATTERNS] for n, name in ((1, "a"), (2, "-"))]
    deliver(landing, "1.json", map(message, [*_EDGES[0], *patterns[0], *one]))
    first = run_all(_edges(landing, first=True))
    deliver(landing, "2.json", map(message, [*_EDGES[1], *patterns[1], *two, *three]))
    source = _edges(landing, first=False)
    second = {stage: run_stage(stage, source, None, None) for stage in ("land", "normalize", "compact", "check")}
    cut = Ledger(lake, "edges").last_cut()
    assert cut is not None
    run_stage("publish", source, None, None, approve=cut.cut)
    return Edges(landing, first, second, cut.cut, cut.state)


def _edges(landing: Path, *, first: bool) -> Source:
    checks = {"later": [] if first else [_KEEPS], "eased": [_KEEPS] if first else []}
    checks |= {"parts": [_KEEPS], "few": [_KEEPS], "told": [_KEEPS, _OUT], "mixed": _BOTH, **_PATTERNS}
    return _source("edges", landing, checks)


@pytest.mark.more
def test_late_and_repeated_changes_publish_the_rows_of_the_model(edges: Edges, lake: Lake) -> None:
    """Copies, TRUNCATE, loads and changed keys among them; no check is told as failed where rows are kept back."""
    for report in (edges.first["check"], edges.second["check"]):
        assert not [text for text in (*report.problems, *report.remarks) if "edges.mixed" in text and "expect_" in text]
        assert not [problem for problem in report.problems if "mixed" in problem]
    expected = _expected(_history("mixed"), _BOTH)
    assert _published(lake, "edges", "mixed") == expected != []
    assert_ledger_closes(lake, "edges")
    reasons = {reason for table, reason, _ in _aside(lake, "edges") if table == "shop.mixed"}
    assert reasons == {"check_failed", "check_failed_kept_last_good"}


def test_rows_are_those_of_the_checks_of_today(edges: Edges, lake: Lake) -> None:
    """A check that comes or goes builds the table again; too many rows kept back hold the cut, and may be approved."""
    (few,) = (problem for problem in edges.second["check"].problems if "would" in problem)
    assert "leave out 20 of 20 events of edges.few" in few
    assert edges.state == CutState.AWAITING_APPROVAL
    landing, ledger = edges.landing, Ledger(lake, "edges")
    assert [row["id"] for row in _published(lake, "edges", "later")] == [1, 3]
    assert [row["id"] for row in _published(lake, "edges", "eased")] == [1, 2, 3]
    assert [row["id"] for row in _published(lake, "edges", "few")] == [1]
    own = {aside[0] for aside in _aside(lake, "edges")} - {"shop.mixed"}
    assert own == {"shop.later", "shop.few", "shop.told", "shop.sound"}
    # With the rule of today nothing is built again by the next run.
    deliver(landing, "3.json", map(message, [_item("later", 40, 4, "a", "4.00"), _item("eased", 40, 4, "a", "-4.00")]))
    run_all(_edges(landing, first=False))
    rows = {row.object: row for row in ledger.tables() if row.cut == edges.cut + 1}
    assert {rows[f"shop.{name}"].rebuilt for name in ("later", "eased")} == {None}
    assert [row["id"] for row in _published(lake, "edges", "eased")] == [1, 2, 3, 4]


def test_the_life_of_a_row_tells_why_it_is_kept_back(edges: Edges, lake: Lake) -> None:
    """An event that is set aside, one that takes the row out, one that leaves its old key although its row is bad."""
    lives = {key: explain(lake, "edges.told", [f"id={key}"]).chapters for key in (1, 2, 3, 4)}
    outcomes = {key: [(each.outcome, each.detail.partition(":")[0]) for each in life] for key, life in lives.items()}
    aside, left = (Outcome.QUARANTINED, "check_failed_kept_last_good"), "the row went to the other key"
    out = (Outcome.QUARANTINED, "check_failed")
    assert outcomes[1][1:3] == [aside, out]
    assert outcomes[1][3][0] == Outcome.STANDS
    assert outcomes[2] == [out]
    assert outcomes[3] == [(Outcome.SUPERSEDED, "below the change of the key, event 2"), (Outcome.STANDS, left)]
    assert outcomes[4] == [aside]
    assert _published(lake, "edges", "told") == []


def test_a_table_of_partial_images_stops(edges: Edges) -> None:
    """What an event leaves out cannot be judged; the other tables go on."""
    (problem,) = (each for each in edges.second["compact"].problems if not each.startswith("shop.broken"))
    assert problem.startswith(
        "shop.parts: `on_fail: quarantine` and `keep_last_good` judge each event by its whole row"
    )


def test_a_pattern_that_the_engine_does_not_know_stops_its_table(edges: Edges, lake: Lake) -> None:
    """The reason names the check and the pattern; other tables go on, also with a pattern that only Java knows."""
    (problem,) = (each for each in edges.second["compact"].problems if not each.startswith("shop.parts"))
    assert problem.startswith(
        "shop.broken: `on_fail` of expect_column_values_to_match_regex (name): '(?P<word>a)' is no regular expression"
    )
    assert [row["id"] for row in _published(lake, "edges", "sound")] == [1]
