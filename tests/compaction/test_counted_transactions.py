"""Transactions whose ends count by table: events that no run can bring hold nothing; others are held and reported."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.counted import Told, generated, open_ones, transaction
from support.histories import deliver
from support.rounds import how_many
from support.running import assert_ledger_closes, run_all, tasks_apart
from support.transactional import number_of
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.status import status_of
from tidemark.sources.invariants import Invariants
from tidemark.sources.model import Source
from tidemark.stages import StageReport

Make = Callable[..., Source]


class World:
    """A source, run by run."""

    def __init__(self, make: Make, lake: Lake, folder: Path, **fields: Any) -> None:
        tables = {"erp.public.*": {"key": ["id"], "columns": {"id": "long"}}}
        self.source = make("debezium_json", **{"tables": tables, "max_open_hours": 100_000, **fields})
        self.lake = lake
        self.folder = folder / "landing"
        self.runs = 0

    def deliver(self, *files: Iterable[Told]) -> None:
        """Put dumps into the landing folder."""
        for file in files:
            self.runs += 1
            deliver(self.folder, f"{self.runs:03d}", [each.bytes() for each in file])

    def normalize(self, *files: Iterable[Told], **more: Any) -> None:
        """Deliver, and run the first two stages."""
        self.deliver(*files)
        for stage in ("land", "normalize"):
            run_stage(stage, self.source.model_copy(update=more), None, None)

    def run(self, *files: Iterable[Told], **more: Any) -> StageReport:
        """Deliver, run all stages, and return what publish said."""
        self.deliver(*files)
        report = run_all(self.source.model_copy(update=more))["publish"]
        assert_ledger_closes(self.lake, self.source.source)
        return report

    def transactions(self) -> dict[str, Any]:
        """What ``tidemark status --json`` says of transactions."""
        found: dict[str, Any] = status_of(self.lake, self.source.source)["transactions"]
        return found

    def open(self) -> set[int]:
        """Numbers of the open transactions."""
        return {number_of(each["id"]) for each in self.transactions()["open"]}

    def rows(self, name: str) -> set[int]:
        """Ids of the published rows of a table."""
        table = self.lake.find((self.source.source, name))
        return set() if table is None else set(table.scan().to_arrow().column("id").to_pylist())


def _mixed(seed: int, transactions: Sequence[Sequence[Told]], without: str) -> list[list[Told]]:
    """Deliver in four runs, in any order, some of it again; little of it never, and all of one table never."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    runs: list[list[Told]] = [[] for _ in range(4)]
    for messages in transactions:
        home = dice.randrange(4)
        for each in messages:
            if each.table == without or dice.random() < 0.05:
                continue
            # a table whose topic is dumped later than the others
            first = 2 if each.table == "late" else 0
            runs[max(first, home if dice.random() < 0.7 else dice.randrange(4))].append(each)
            if dice.random() < 0.15:
                runs[dice.randrange(first, 4)].append(each)
    for run in runs:
        dice.shuffle(run)
    return runs


@pytest.mark.more
@pytest.mark.parametrize(
    "one_task_or_apart", [pytest.param("one_task", marks=pytest.mark.prove), "tasks_apart"], indirect=True
)
@pytest.mark.usefixtures("one_task_or_apart")
@pytest.mark.parametrize("seed", range(how_many(usually=1, proving=9)))
def test_open_is_what_lacks_an_event_that_can_land(
    seed: int,
    source: Make,
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After each run, in whatever runs the same events land, and decoded again, the same transactions are open.

    It makes no difference which of the tasks read the events of a transaction, and which read its end.
    """
    runs = _mixed(seed, generated(seed, 40), without="never")
    world = World(source, lake, tmp_path)
    landed: list[Told] = []
    for run in runs:
        world.normalize(run[::2], run[1::2])
        landed += run
        if any(not message.number for message in landed):
            assert world.open() == open_ones(landed)
    assert world.transactions()["not_awaited"].keys() >= {"public.never"}
    (tmp_path / "once").mkdir()
    once = World(source, lake, tmp_path, landing=str(tmp_path / "once" / "*"))
    once.folder = tmp_path / "once"
    once.normalize(landed)
    assert once.open() == world.open()
    by_runs, at_once = world.transactions()["not_awaited"], once.transactions()["not_awaited"]
    assert by_runs.keys() == at_once.keys()
    # a transaction that was whole, and was opened again, still counts among those that did not wait
    assert all(by_runs[name] >= newest for name, newest in at_once.items())
    # copies of events come after the rows of their transactions were dropped as whole
    monkeypatch.setattr("tidemark.normalization.transaction_tracker._SETTLE_ROWS", 20)
    run_stage("normalize", world.source, reprocess=True)
    assert world.open() == once.open()
    assert world.transactions()["not_awaited"] == once.transactions()["not_awaited"]


def test_what_is_missing_is_told(source: Make, lake: Lake, tmp_path: Path) -> None:
    """By table where the end counts so, else by number; and where the counts contradict each other."""
    world = World(source, lake, tmp_path)
    seen = transaction(1, 1, "one", "two")
    lacking = transaction(2, 2, "one", "two", "two", "")
    endless = transaction(3, 3, "one")
    contradictory = transaction(4, 4, "one", "never", total=3)
    message = transaction(5, 5, "", "one", "never")
    world.normalize(seen, [lacking[0], lacking[2], lacking[-1]], endless[:1], contradictory[::2], message[1:])
    why = {number_of(each["id"]): each["why"] for each in world.transactions()["open"]}
    assert why == {
        2: "1 of 2 events of public.two landed",
        3: "the end has not landed",
        4: "1 of 3 events landed; the counts of its end do not add up",
    }
    (open_transaction,) = (each for each in world.transactions()["open"] if number_of(each["id"]) == 2)
    assert open_transaction["missing"] == [{"collection": "public.two", "landed": 1, "counted": 2}]
    assert open_transaction["committed_at"] == "2026-01-01T02:00:00+00:00"


def test_the_source_file_says_what_never_lands(source: Make, lake: Lake, tmp_path: Path) -> None:
    """Once it does, nothing waits for it any more, though nothing new has landed; and the other way round."""
    world = World(source, lake, tmp_path)
    lacking = transaction(2, 2, "one", "two")
    world.normalize(transaction(1, 1, "one", "two"), [lacking[0], lacking[-1]])
    assert world.open() == {2}
    for _ in range(2):
        world.normalize(undelivered=("public.tw?",))
        assert world.open() == set()
    assert world.transactions()["not_awaited"] == {"public.two": "2026-01-01T02:00:00+00:00"}
    world.normalize(transaction(3, 3, "one"))
    assert world.open() == {2}


def test_a_table_that_landed_before_the_first_end_counts(source: Make, lake: Lake, tmp_path: Path) -> None:
    """The change log says since when it is there."""
    world = World(source, lake, tmp_path)
    world.normalize(transaction(1, 2, "two")[:-1])
    early, lacking = transaction(2, 1, "one", "two"), transaction(3, 2, "one", "two")
    world.normalize([early[0], early[-1], lacking[0], lacking[-1]])
    assert world.open() == {3}


def test_a_task_may_see_the_end_alone(
    source: Make, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An end closes a transaction that is open, and shows what it lacks, where no task has it together with events.

    A table that lands for the first time has the transactions of its time looked at again, of this run and of earlier
    ones.
    """
    tasks_apart(monkeypatch)
    world = World(source, lake, tmp_path)
    begun, lacking = transaction(1, 5, "one", "two"), transaction(2, 5, "one", "late")
    whole, other = transaction(3, 5, "two", "late"), transaction(5, 6, "one", "late")
    world.normalize([*begun[:2], whole[0]], [lacking[0], lacking[-1], whole[-1]])
    assert world.open() == {1}
    assert world.transactions()["not_awaited"] == {"public.late": "2026-01-01T05:00:00+00:00"}
    world.normalize([*begun[-1:], other[0], other[-1]], transaction(4, 5, "late"), whole[1:2])
    assert world.open() == {2, 5}
    run_stage("normalize", world.source, reprocess=True)
    assert world.open() == {2, 5}


@pytest.mark.spark
def test_tasks_know_of_each_others_tables(
    source: Make, lake: Lake, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that reads the end does not see that a table of it lands, in the same run, and in the next one."""
    monkeypatch.setattr("tidemark.spark.spread._FEW_FILES", 0)
    world = World(source, lake, tmp_path)
    lacking, other = transaction(1, 1, "one", "two"), transaction(2, 2, "one", "late")
    world.normalize([lacking[0], lacking[-1]], transaction(3, 1, "two"))
    assert world.open() == {1}
    world.normalize([other[0], other[-1]], transaction(4, 1, "late"))
    assert world.open() == {1, 2}


@pytest.mark.spark
def test_held_events_show_in_every_run(source: Make, lake: Lake, tmp_path: Path, spark: Any) -> None:
    """A transaction is published that lacks only events that never land.

    One that lacks another event is held and reported, and is too old at last.
    """
    world = World(source, lake, tmp_path, max_open_hours=24)
    foreign = transaction(1, 1, "one", "never", "")
    emptied = transaction(2, 2, "two", "never")
    emptied[0] = emptied[0]._replace(operation="t")
    lacking = transaction(3, 3, "one", "two", "two")
    late = transaction(5, 27, "one", "never", "never")
    first = [*foreign[::3], *emptied[::2], *lacking[:2], lacking[-1], *transaction(4, 4, "two"), late[0], late[-1]]
    report = world.run(first)
    assert (world.rows("one"), world.rows("two")) == ({1001, 5001}, {4001})
    assert report.problems == ()
    assert (report.summary["held"], report.summary["held_since"]) == (2, "2026-01-01T03:00:00+00:00")
    (chapter,) = (each for each in explain(lake, f"{world.source.source}.two", ["id=3002"]).chapters if each.detail)
    assert chapter.detail == "its transaction is open: 1 of 2 events of public.two landed"

    # now events of a table land for the first time, and the transactions of its time are looked at again
    report = world.run(late[1:2], transaction(6, 28, "two"))
    (problem,) = report.problems
    assert "transaction 3 is open since 2026-01-01T03:00:00+00:00, for longer than 24 hours" in problem
    assert "1 of 2 events of public.two landed. 2 events are held in erp.public.one, erp.public.two" in problem
    assert (world.rows("one"), world.rows("two"), world.open()) == ({1001}, {4001, 6001}, {3, 5})
    for asked, expected in (("block", ((problem,), ())), ("warn", ((), (problem,))), ("off", ((), ()))):
        chosen = world.source.model_copy(update={"invariants": Invariants.model_validate({"open_transactions": asked})})
        again = run_stage("publish", chosen, None, None)
        assert (again.problems, again.remarks) == expected
        assert again.summary == report.summary

    report = world.run(late[2:3], undelivered=("public.two",))
    assert (report.problems, report.summary["held"], world.open()) == ((), 0, set())
    assert (world.rows("one"), world.rows("two")) == ({1001, 3001, 5001}, {3002, 4001, 6001})
    assert world.rows("never") == {5002, 5003}
