"""Tables that are renamed at the source: their rows go with them, in any delivery."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, Message
from support.histories import deliver
from support.rounds import how_many
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import STAGES, StageReport

pytestmark = pytest.mark.spark

Rows = dict[int, str]

_RUNS = 3


class Database:
    """A database whose tables are written and renamed one step after another, and the log of it."""

    def __init__(self, *names: str) -> None:
        self.tables: dict[str, Rows] = {name: {} for name in names}
        self.log: list[Message] = []

    @property
    def at(self) -> int:
        """Place of the next message."""
        return 10 * (len(self.log) + 1)

    def put(self, name: str, number: int, value: str) -> None:
        """Insert a row or update it; an update tells the new row alone."""
        before = {} if number in self.tables[name] else None
        self.tables[name][number] = value
        self.log.append(Log(name).put(self.at, before, id=number, v=value))

    def delete(self, name: str, number: int) -> None:
        """Delete a row; its message tells the key alone."""
        del self.tables[name][number]
        self.log.append(Log(name).delete(self.at, id=number))

    def rename(self, *pairs: tuple[str, str], statement: str = "") -> None:
        """Rename tables, one after another, in one statement."""
        for old, new in pairs:
            self.tables[new] = self.tables.pop(old)
        told = statement or "RENAME TABLE " + ", ".join(f"{old} TO {new}" for old, new in pairs)
        self.log.append(Log(pairs[0][0]).statement(self.at, told))


class Case(NamedTuple):
    """What was done in a database of its own."""

    name: str
    done: Database


def _renamed() -> Database:
    done = Database("renamed_a")
    done.put("renamed_a", 1, "x")
    done.put("renamed_a", 2, "x")
    done.rename(("renamed_a", "renamed_b"), statement="ALTER TABLE renamed_a RENAME TO renamed_b")
    done.put("renamed_b", 1, "y")
    done.delete("renamed_b", 2)
    done.put("renamed_b", 3, "z")
    return done


def _alone() -> Database:
    """Nothing comes under the new name; a new table takes the old one."""
    done = Database("alone_a")
    done.put("alone_a", 1, "x")
    done.rename(("alone_a", "alone_b"))
    done.tables["alone_a"] = {}
    done.put("alone_a", 1, "another")
    done.put("alone_a", 7, "another")
    return done


def _swapped() -> Database:
    done = Database("swapped_a", "swapped_b")
    for name, numbers in (("swapped_a", (1, 2, 3)), ("swapped_b", (2, 3, 4))):
        for number in numbers:
            done.put(name, number, f"{name} {number}")
    done.rename(("swapped_a", "swapped_tmp"), ("swapped_b", "swapped_a"), ("swapped_tmp", "swapped_b"))
    done.put("swapped_a", 2, "now")
    done.delete("swapped_b", 3)
    done.delete("swapped_a", 4)
    done.put("swapped_b", 9, "now")
    return done


def _generated(seed: int) -> Database:
    """A history of three tables with a few renames among them."""
    dice, one = random.Random(seed), f"g{seed}_"  # noqa: S311  a test's own mixing
    done = Database(*(f"{one}{name}" for name in "abc"))
    for name in done.tables:
        done.put(name, 0, "first")  # a table of which no event is known is not followed
    for step in range(24):
        name = dice.choice(sorted(done.tables))
        rows, number = done.tables[name], dice.randrange(4)
        if step % 7 == 6:
            _rename(done, dice, one)
        elif number in rows and dice.random() < 0.3:
            done.delete(name, number)
        else:
            done.put(name, number, f"{name} {step}")
    return done


def _rename(done: Database, dice: random.Random, one: str) -> None:
    old, other = dice.sample(sorted(done.tables), 2)
    free = sorted({f"{one}{name}" for name in "abcd"} - done.tables.keys())
    if dice.random() < 0.5:
        done.rename((old, f"{one}tmp"), (other, old), (f"{one}tmp", other))
    else:
        done.rename((old, free[0]))


CASES = [
    Case("renamed", _renamed()),
    Case("alone", _alone()),
    Case("swapped", _swapped()),
    *(Case(f"generated_{seed}", _generated(seed)) for seed in range(how_many(usually=2, proving=12))),
]


def _runs(log: Sequence[Message], delivery: str) -> list[list[Message]]:
    """Cut a log into runs."""
    told = list(log)
    if delivery == "one_run":
        return [told, [], []]
    if delivery == "in_disorder":
        random.Random(len(told)).shuffle(told)  # noqa: S311  a test's own mixing
    if delivery == "backwards":
        told.reverse()
    third = -(-len(told) // (2 if delivery == "in_two" else _RUNS))
    return [told[place : place + third] for place in range(0, _RUNS * third, third)]


_DELIVERIES = how_many(
    usually=("in_order", "in_disorder"), proving=("one_run", "in_two", "in_order", "in_disorder", "backwards")
)


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, StageReport]]]:
    """All cases in each delivery, as a source of its own; the reports of its runs."""
    reports = {}
    for delivery in _DELIVERIES:
        landing = tmp_path_factory.mktemp(delivery)
        source = _source(f"renames_{delivery}", landing)
        runs = [_runs(case.done.log, delivery) for case in CASES]
        reports[delivery] = []
        for run in range(_RUNS):
            deliver(landing, f"run-{run}", [message for each in runs for message in each[run]])
            reports[delivery].append({stage: _run(stage, source) for stage in STAGES})
    return reports


def _run(stage: str, source: Source) -> StageReport:
    """Run a stage. A cut is held where it has the rename of a table of which no event has come yet."""
    try:
        return run_stage(stage, source)
    except ExpectationError as error:
        return StageReport(stage=stage, source=source.source, summary={}, problems=(str(error),))


def _source(name: str, landing: Path) -> Source:
    tables = {"shop.*": {"key": ["id"], "columns": {"id": "long", "v": "string"}}}
    told = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(told)


def _rows(lake: Lake, source: str, table: str) -> Rows:
    found = lake.find((source, table))
    rows = [] if found is None else found.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


def _names() -> Iterator[tuple[str, Rows]]:
    for case in CASES:
        named = {message.split(b'"table": "')[1].split(b'"')[0].decode() for message in case.done.log}
        for name in sorted(named | case.done.tables.keys()):
            yield name, case.done.tables.get(name, {})


@pytest.mark.more
def test_each_table_has_the_rows_of_its_own_whatever_the_delivery(
    told: dict[str, list[dict[str, StageReport]]], lake: Lake
) -> None:
    """A name that no table has any more has no rows; and no cut is held in the end, or where the log comes in order."""
    wrong = {}
    for delivery in _DELIVERIES:
        for name, rows in _names():
            if (found := _rows(lake, f"renames_{delivery}", name)) != rows:
                wrong[delivery, name] = (found, rows)
    assert wrong == {}
    for delivery, reports in told.items():
        runs = reports if delivery == "in_order" else reports[-1:]
        assert [report.problems for run in runs for report in run.values()] == [()] * 5 * len(runs)


@pytest.mark.more
def test_the_ledger_closes(told: dict[str, list[dict[str, StageReport]]], lake: Lake) -> None:
    """Every event of every table is accounted for, and none went to quarantine."""
    for delivery in told:
        for row in Ledger(lake, f"renames_{delivery}").read("tables"):
            names = ("applied", "superseded", "duplicate", "held", "quarantined")
            assert row["events"] == sum(row[name] for name in names), row
            assert row["quarantined"] == 0, row


@pytest.mark.more
def test_a_rebuild_gives_the_same_rows(told: dict[str, list[dict[str, StageReport]]], lake: Lake) -> None:
    """From the whole change log, every table as it was."""
    source = _source(f"renames_{_DELIVERIES[-1]}", Path("nowhere"))
    for stage in ("rebuild", "compact", "check", "publish"):
        assert run_stage(stage, source).problems == ()
    assert {name: _rows(lake, source.source, name) for name, _ in _names()} == dict(_names())
