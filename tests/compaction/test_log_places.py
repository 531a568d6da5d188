"""A place in a log is no identity: changes that MySQL compressed into one entry are told apart, and copies are not."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.compressed import Step, Transaction, bag, counted_rows, keyed, long_versions, rows_by_key, sent
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
from tidemark.queries.explain import explain
from tidemark.queries.row_life import Outcome
from tidemark.sources.model import Source
from tidemark.tables.schemas import POSITION

pytestmark = [pytest.mark.spark, pytest.mark.more]

_RUNS = 3
_BAGS = how_many(usually=("bag",), proving=("bag", "numbered_bag"))
"""Tables without a key, in ``make prove`` also one whose events have numbers in their transactions."""


def _source(name: str, landing: Path) -> Source:
    tables = {
        "shop.*bag*": {"key": []},
        "shop.kept*": {"key": ["id"], "history": True},
        "shop.*": {"key": ["id"]},
    }
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields)


def _deliver(source: Source, landing: Path, runs: list[list[str]]) -> None:
    landing.mkdir(exist_ok=True)
    for number, records in enumerate(runs):
        (landing / f"{number}.jsonl").write_text("".join(f"{record}\n" for record in records), "utf-8")
        reports = run_all(source)
        assert [problem for report in reports.values() for problem in report.problems] == []


def _rows(lake: Lake, source: str, table: str) -> list[dict[str, Any]]:
    return lake.load((source, table)).scan().to_arrow().to_pylist()


def _order(op: str, id_: int, was: str | None, now: str | None, row: int = 0) -> Step:
    before, after = ({"id": id_, "status": status, "number": 0} if status else None for status in (was, now))
    return Step(op, before, after, row)


TO_AND_FRO = [
    _order("c", 1001, None, "new"), _order("u", 1001, "new", "paid"), _order("u", 1001, "paid", "new"),
    _order("u", 1001, "new", "paid"), _order("c", 1002, None, "new"), _order("d", 1002, "new", None),
]  # fmt: skip

BAGS: dict[str, tuple[list[str], str]] = {
    "equal rows": (["1:ABCA"], "ABCA"),
    "equal rows first": (["1:AAB"], "AAB"),
    "cut by runs": (["1:AB", "1:AC"], "ABAC"),
    "proved late": (["1:A", "1:A", "1:B"], "AAB"),
    "sent again": (["1:ABA 2:C 1:ABA 2:C"], "ABAC"),
    "sent again in a later run": (["1:ABA 2:C", "1:ABA 2:C"], "ABAC"),
    "killed within": (["1:AB", "1:ABCA"], "ABCA"),
    "killed within, over three runs": (["1:AB", "1:A", "1:BCA"], "ABCA"),
    "rows of one entry": (["1:A0A1B2", "1:A0A1"], "AAB"),
    "single rows": (["1:A 2:A", "1:A 2:A"], "AA"),
    "deleted": (["1:ABA", "1:-A 2:A"], "ABA"),
}
"""Deliveries run by run: in each the numbers of transactions, each with the letters of the rows that it inserts (with
``-``: deletes), some with a number of the row. Then the rows that they lead to."""


class _Topic:
    """A topic that a test writes transaction by transaction; offsets go on."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.sent = 10_000

    def write(self, *transactions: tuple[int, list[Step]], numbered: bool = False) -> list[str]:
        """Send changes of transactions, each with the number that says its place."""
        records = []
        for number, steps in transactions:
            dice = random.Random(0)  # noqa: S311  it decides nothing
            for line in sent(dice, self.table, [Transaction(number, steps)], restarts=0, numbered=numbered):
                records.append(json.dumps(json.loads(line) | {"offset": self.sent}))
                self.sent += 1
        return records


def _steps(case: str, letters: str) -> list[Step]:
    found = re.findall(r"(-?)([A-Z])([0-9]?)", letters)
    rows = [({"code": f"{case}: {letter}", "quantity": 1}, minus, int(row or 0)) for minus, letter, row in found]
    return [Step("d", image, None, row) if minus else Step("c", None, image, row) for image, minus, row in rows]


class _Delivered(NamedTuple):
    """What was delivered, in three runs, beside ``BAGS`` and ``TO_AND_FRO``: made up by a seed."""

    source: str
    orders: list[Transaction]
    scans: list[Transaction]


_BEHIND = 1000
"""The numbers of transactions that are made up are below."""


@pytest.fixture(scope="module")
def delivered(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> _Delivered:
    """A connector that was restarted now and then; its records out of order, split into runs, some landed twice."""
    dice = random.Random(20261125)  # noqa: S311  a test's own mixing
    orders, scans = keyed(dice, 30), bag(dice, 30)
    records = [
        *sent(dice, "kept_orders", orders),
        *sent(dice, "bag", scans),
        *(sent(dice, "numbered_bag", scans, numbered=True) if PROVING else []),
    ]
    again = [record for record in records if dice.random() < 0.1]
    runs: list[list[str]] = [[] for _ in range(_RUNS)]
    for record in dice.sample([*records, *again], len(records) + len(again)):
        runs[dice.randrange(_RUNS)].append(record)
    topics = {name: _Topic(name) for name in ("bag", "numbered_bag", "kept_orders")}
    for place, (case, (deliveries, _)) in enumerate(BAGS.items(), start=1):
        for number, delivery in enumerate(deliveries):
            pairs = (transaction.split(":") for transaction in delivery.split())
            steps = [(_BEHIND * place + int(at), _steps(case, letters)) for at, letters in pairs]
            runs[number] += topics["bag"].write(*steps)
    for number in range(_RUNS):
        equal = [(_BEHIND + 1, _steps("equal", "AA")), (_BEHIND + 2, _steps("equal", "B"))]
        runs[number] += topics["numbered_bag"].write(*equal, numbered=True) if PROVING else []
        runs[number] += topics["kept_orders"].write((_BEHIND, TO_AND_FRO[2 * number : 2 * number + 2]))
    landing = tmp_path_factory.mktemp("places")
    source = _source("places", landing)
    _deliver(source, landing, runs)
    return _Delivered("places", orders, scans)


def test_rows_of_one_place_are_as_many_as_were_inserted(delivered: _Delivered, lake: Lake) -> None:
    """Equal ones too, whatever was sent again and in whichever run it landed."""
    found: dict[str, str] = dict.fromkeys(BAGS, "")
    for row in _rows(lake, delivered.source, "bag"):
        case, named, letter = row["code"].partition(": ")
        if named:
            found[case] += letter
    expected = {case: sorted(letters) for case, (_, letters) in BAGS.items()}
    assert {case: sorted(letters) for case, letters in found.items()} == expected


@pytest.mark.prove
def test_numbers_tell_equal_rows_apart(delivered: _Delivered, lake: Lake) -> None:
    """``transaction.total_order`` is the same in an event that is sent again, and in no other of its transaction."""
    codes = Counter(row["code"] for row in _rows(lake, delivered.source, "numbered_bag"))
    assert (codes["equal: A"], codes["equal: B"]) == (2, 1)


def test_a_row_that_changes_to_and_fro_at_one_place(delivered: _Delivered, lake: Lake) -> None:
    """Cut into three runs: the last change stands, and a row that was inserted and deleted is gone."""
    rows = [row for row in _rows(lake, delivered.source, "kept_orders") if row["id"] > _BEHIND]
    assert [(row["id"], row["status"]) for row in rows] == [(_BEHIND + 1, "paid")]
    versions = [row for row in _rows(lake, delivered.source, "kept_orders__history") if row["id"] > _BEHIND]
    assert [row["status"] for row in versions if row["is_current"]] == ["paid"]


def test_any_delivery_gives_the_rows_and_versions_of_the_model(delivered: _Delivered, lake: Lake) -> None:
    """Rows by key, counts of equal rows, and the versions that lasted."""
    rows = [row for row in _rows(lake, delivered.source, "kept_orders") if row["id"] < _BEHIND]
    assert {row["id"]: {name: row[name] for name in ("id", "status", "number")} for row in rows} == rows_by_key(
        delivered.orders
    )
    for table in _BAGS:
        counts = Counter((row["code"], row["quantity"]) for row in _rows(lake, delivered.source, table))
        made_up = {row: count for row, count in counts.items() if ": " not in row[0]}
        assert made_up == counted_rows(delivered.scans), table
    history = [row for row in _rows(lake, delivered.source, "kept_orders__history") if row["id"] < _BEHIND]
    assert _versions(history) == long_versions(delivered.orders)
    assert_ledger_closes(lake, delivered.source)


def test_explain_agrees_with_what_is_published(delivered: _Delivered, lake: Lake) -> None:
    """The event that stands is the one whose position the row has."""
    for row in _rows(lake, delivered.source, "kept_orders"):
        chapters = explain(lake, f"{delivered.source}.kept_orders", [f"id={row['id']}"]).chapters
        *_, newest = (chapter for chapter in chapters if chapter.outcome == Outcome.STANDS)
        assert newest.step.position == row[POSITION], chapters
        assert newest.cells["status"].new == row["status"]


def _versions(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    spans = []
    for row in rows:
        times = [row[name] and round(row[name].timestamp() * 1000) for name in ("valid_from", "valid_to")]
        if times[0] != times[1]:
            spans.append((row["id"], row["status"], row["number"], *times))
    return sorted(spans, key=repr)
