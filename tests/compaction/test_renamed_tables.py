"""Tables that are renamed at the source: their rows go with them, in any delivery."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, Message, cut
from support.feeds import published, replayed
from support.histories import deliver
from support.rounds import how_many
from support.running import assert_ledger_closes
from tidemark.errors import ConfigurationError, ExpectationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import REBUILD, STAGES, StageReport
from tidemark.stages.erase import run as erase

pytestmark = pytest.mark.spark

Rows = dict[int, str]

_RUNS = 3

_SOURCE = "renames"


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


def _renamed(one: str) -> Database:
    a, b = f"{one}a", f"{one}b"
    done = Database(a)
    done.put(a, 1, "x")
    done.put(a, 2, "x")
    done.rename((a, b), statement=f"ALTER TABLE {a} RENAME TO {b}")
    done.put(b, 1, "y")
    done.delete(b, 2)
    done.put(b, 3, "z")
    return done


def _alone(one: str) -> Database:
    """Nothing comes under the new name; a new table takes the old one."""
    a = f"{one}a"
    done = Database(a)
    done.put(a, 1, "x")
    done.rename((a, f"{one}b"))
    done.tables[a] = {}
    done.put(a, 1, "another")
    done.put(a, 7, "another")
    return done


def _swapped(one: str) -> Database:
    a, b, between = f"{one}a", f"{one}b", f"{one}tmp"
    done = Database(a, b)
    for name, numbers in ((a, (1, 2, 3)), (b, (2, 3, 4))):
        for number in numbers:
            done.put(name, number, f"{name} {number}")
    done.rename((a, between), (b, a), (between, b))
    done.put(a, 2, "now")
    done.delete(b, 3)
    done.delete(a, 4)
    done.put(b, 9, "now")
    return done


def _generated(seed: int) -> Callable[[str], Database]:
    """A history of three tables with a few renames among them."""

    def done(one: str) -> Database:
        dice = random.Random(seed)  # noqa: S311  a test's own mixing
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

    return done


def _rename(done: Database, dice: random.Random, one: str) -> None:
    old, other = dice.sample(sorted(done.tables), 2)
    free = sorted({f"{one}{name}" for name in "abcd"} - done.tables.keys())
    if dice.random() < 0.5:
        done.rename((old, f"{one}tmp"), (other, old), (f"{one}tmp", other))
    else:
        done.rename((old, free[0]))


_HISTORIES: dict[str, Callable[[str], Database]] = {
    "renamed": _renamed,
    "alone": _alone,
    "swapped": _swapped,
    **{f"generated_{seed}": _generated(seed) for seed in range(how_many(usually=1, proving=12))},
}
_DELIVERIES = how_many(
    usually=("in_order", "in_disorder"), proving=("one_run", "in_two", "in_order", "in_disorder", "backwards")
)
CASES = {
    (name, delivery): history(f"{name}_{delivery}_") for name, history in _HISTORIES.items() for delivery in _DELIVERIES
}


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All histories in each delivery, as tables of one source; the reports of its runs."""
    landing = tmp_path_factory.mktemp("renames")
    source = _source(landing)
    runs = [cut(done.log, delivery, _RUNS) for (_, delivery), done in CASES.items()]
    reports = []
    for run in range(_RUNS):
        deliver(landing, f"run-{run}", [message for each in runs for message in each[run]])
        reports.append({stage: _run(stage, source) for stage in STAGES})
    return reports


def _run(stage: str, source: Source) -> StageReport:
    """Run a stage. A cut is held where it has the rename of a table of which no event has come yet."""
    try:
        return run_stage(stage, source)
    except ExpectationError as error:
        return StageReport(stage=stage, source=source.source, summary={}, problems=(str(error),))


def _source(landing: Path) -> Source:
    tables = {"shop.*": {"key": ["id"], "columns": {"id": "long", "v": "string"}, "feed": True}}
    told = {"source": _SOURCE, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(told)


def _published(lake: Lake) -> dict[str, Rows]:
    """The rows of every table that any event or statement named."""
    found = {}
    for name in _expected():
        table = lake.find((_SOURCE, name))
        rows = [] if table is None else table.scan().to_arrow().to_pylist()
        found[name] = {row["id"]: row["v"] for row in rows}
        assert len(found[name]) == len(rows)
    return found


def _expected() -> dict[str, Rows]:
    """What each of them has at the source in the end; a name that no table has any more has no rows."""
    names = ((done, json.loads(message)["source"]["table"]) for done in CASES.values() for message in done.log)
    held = {name: rows for done in CASES.values() for name, rows in done.tables.items()}
    return {name: held.get(name, {}) for _, name in names} | held


@pytest.mark.more
def test_each_table_has_the_rows_of_its_own_whatever_the_delivery(
    told: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Rows go with their table, and nothing is held in the end."""
    found = _published(lake)
    assert {name: found[name] for name, rows in _expected().items() if found[name] != rows} == {}
    assert [report.problems for report in told[-1].values()] == [()] * len(STAGES)


@pytest.mark.more
def test_every_event_is_accounted_for(told: list[dict[str, StageReport]], lake: Lake) -> None:
    """The ledger closes in every run, and nothing went to quarantine."""
    assert_ledger_closes(lake, _SOURCE)
    assert {row["quarantined"] for row in Ledger(lake, _SOURCE).read("tables")} == {0}


@pytest.mark.more
def test_a_rebuild_gives_the_same_rows(told: list[dict[str, StageReport]], lake: Lake) -> None:
    """From the whole change log, every table as it was."""
    source = _source(Path("nowhere"))
    for stage in REBUILD:
        assert run_stage(stage, source).problems == ()
    assert _published(lake) == _expected()


@pytest.mark.more
def test_feeds_lead_to_the_rows(told: list[dict[str, StageReport]], lake: Lake) -> None:
    """Whoever follows a name sees the rows that come to it and go from it."""
    fed = [table for name in _expected() if lake.find(table := Identifier(_SOURCE, name)) is not None]
    assert {str(table): replayed(lake, table) for table in fed} == {str(table): published(lake, table) for table in fed}


def test_an_erasure_from_a_renamed_table_is_refused(
    told: list[dict[str, StageReport]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that came under its other names would stay."""
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "s" * 64)
    with pytest.raises(ConfigurationError, match="got another key or another name at the source"):
        erase(_source(Path("nowhere")), f"{_SOURCE}.swapped_in_order_b", ["id=9"])
