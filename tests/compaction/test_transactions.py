"""Whole transactions only: whatever the order, the split and the repeats, all events of a transaction show, or none."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.histories import canal, deliver
from support.reference import Change, fold
from support.rounds import PROVING, crash_windows, how_many
from support.running import die_at, run_all, tasks_apart
from support.transactional import (
    FORMATS,
    SENDS_MARKERS,
    TABLES,
    Step,
    change,
    generated,
    number_of,
    replicate_metadata,
    transaction,
    whole,
    written,
)
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import INSTANT
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.tally import Seen, merge_ranges, merged
from tidemark.normalization.transaction_tracker import READ_OF_CONTROLS, Tracker, all_of
from tidemark.pipeline import run_stage
from tidemark.queries.status import status_of
from tidemark.sources.choices import Transactions
from tidemark.sources.model import Source

INSERT, UPDATE, DELETE = Operation.INSERT, Operation.UPDATE, Operation.DELETE
KEYS = {"one": ["id"], "two": ["id"], "three": list[str]()}
"""Keys of tables, one of which has none."""
Told = tuple[str, int | None, bool | None]
"""Id, number and last-event flag of an event; an operation in lower case makes it a control event."""


def _rows(*given: tuple[Any, ...]) -> pa.RecordBatch:
    """Rows of ``READ_OF_CONTROLS``: operation, id, number, last, and the detail if there is any."""
    types = (pa.string(), pa.string(), INSTANT, pa.string(), pa.int64(), pa.bool_(), pa.string())
    rows = [(operation, "1.011", 1, *rest, None)[: len(types)] for operation, *rest in given]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)],
        names=list(READ_OF_CONTROLS),
    )


def _seen(*given: tuple[Any, ...], marked: bool = False, keep: Iterable[str] = ()) -> dict[str, Seen]:
    """What a tracker reports for events and markers, each given by itself."""
    tracker = Tracker(marked=marked, keep=frozenset(keep))
    for each in given:
        if each[0].islower():
            tracker.controls(1, _rows(each))
        else:
            tracker.changes(1, "shop.t", _rows(each))
    return all_of([tracker.close()])


FLAGGED = [("INSERT", "a", 1, False), ("UPDATE", "a", 2, False), ("DELETE", "a", 3, True)]
COUNTED = [*((op, id_, number, None) for op, id_, number, _ in FLAGGED), ("transaction_end", "a", 3, True)]
BRACKETED = [
    ("transaction_begin", "a", None, None), ("INSERT", "a", None, None), ("DELETE", "a", None, None),
    ("transaction_end", "a", None, True),
]  # fmt: skip
XA = [("transaction_begin", "a", None, None), ("INSERT", "a", None, None), ("xa_commit", "a", None, None)]
DROPPED = [("INSERT", "a", 1, False), ("drop_column", "a", 2, False), ("DELETE", "a", 3, True)]
DROPPED_LAST = [("INSERT", "a", 1, False), ("drop_column", "a", 2, False), ("drop_column", "a", 3, True)]


@pytest.mark.parametrize(
    "parts",
    [FLAGGED, COUNTED, BRACKETED, XA, DROPPED, DROPPED_LAST],
    ids=["flagged", "counted", "bracketed", "xa", "dropped", "dropped_last"],
)
def test_a_transaction_is_whole_in_any_order_and_with_copies(parts: list[tuple[Any, ...]]) -> None:
    """Once all of it was seen, nothing is reported of it, unless its id is to be kept: then it is reported as whole."""
    for order in itertools.permutations(parts):
        assert _seen(*order) == {}
        assert _seen(*order, *order[:2]) == {}
    kept = _seen(*parts, keep=["a"])
    assert [seen.whole for seen in kept.values()] == [True]


@pytest.mark.parametrize("parts", [FLAGGED, COUNTED], ids=["flagged", "counted"])
@pytest.mark.parametrize("missing", range(3))
def test_a_transaction_that_lacks_an_event_is_open_until_it_comes(parts: list[tuple[Any, ...]], missing: int) -> None:
    """Copies of the other events do not stand for the one that is missing; two tasks know together."""
    there = [each for number, each in enumerate(parts) if number != missing]
    (seen,) = _seen(*there, *there, marked=True).values()
    assert not seen.whole
    events = sum(each[0].isupper() for each in there)
    assert seen.tables == {"shop.t": (2 * events, 0)}
    other = _seen(parts[missing], marked=True)["a"]
    assert merged(seen, other).whole
    assert merged(other, seen) == merged(seen, other)


@pytest.mark.parametrize("events", [FLAGGED, COUNTED], ids=["flagged", "counted"])
@pytest.mark.parametrize("missing", range(2))
def test_one_copy_does_not_stand_for_a_missing_event(events: list[tuple[Any, ...]], missing: int) -> None:
    """As many events as the transaction has are not all of its events, if one of them is a copy."""
    there = [each for number, each in enumerate(events) if number != missing]
    for copied in [each for each in there if each[0].isupper()]:
        for order in itertools.permutations([*there, copied]):
            (seen,) = _seen(*order, marked=True).values()
            assert not seen.whole


def test_a_transaction_undone_is_told_though_its_end_came() -> None:
    """A rollback, an abort and the rollback of an XA transaction undo it, with or without an end."""
    for kind in ("transaction_rollback", "transaction_abort", "xa_rollback"):
        (seen,) = _seen(*BRACKETED, (kind, "a", None, None)).values()
        assert (seen.undone, seen.whole) == (True, False)


def test_an_id_alone_marks_nothing() -> None:
    """Events with an id only, and XA ends with their own ids, are not reported. Any other marker changes that."""
    ids = [("INSERT", "a", None, None), ("INSERT", "b", 1, None)]
    assert _seen(*ids) == {}
    assert _seen(*ids, ("xa_commit", "c", None, None)) == {}
    assert set(_seen(*ids, ("transaction_begin", "c", None, None))) >= {"a", "b"}


@pytest.mark.parametrize("parts", [DROPPED, DROPPED_LAST])
def test_a_dropped_column_counts_in_its_transaction_wherever_it_lands(parts: list[tuple[Any, ...]]) -> None:
    """A task may see nothing else of the transaction. Without its rows it is open."""
    tasks = [Tracker(marked=False) for _ in parts]
    for tracker, part in zip(tasks, parts, strict=True):
        (tracker.controls(1, _rows(part)) if part[0].islower() else tracker.changes(1, "shop.t", _rows(part)))
    assert all_of([tracker.close() for tracker in tasks])["a"].whole
    assert not _seen(*parts[1:])["a"].whole


def test_the_old_half_of_an_update_is_not_the_update() -> None:
    """The old half has the number of the new one, and does not stand for it."""
    tracker = Tracker(marked=False)
    half = _rows(("UPDATE", "a", 1, False)).set_column(1, "position", pa.array(["1.011.010"]))
    tracker.changes(1, "shop.t", half)
    tracker.changes(1, "shop.t", _rows(("INSERT", "a", 2, True)))
    assert all_of([tracker.close()])["a"].numbers == [(2, 2)]


def test_many_rows_are_settled_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of whole transactions are dropped as it goes; copies that come later make the result inexact."""
    monkeypatch.setattr("tidemark.normalization.transaction_tracker._SETTLE_ROWS", 5)
    tracker = Tracker(marked=False)
    for _ in range(2):
        for number in range(20):
            tracker.changes(1, "shop.t", _rows(("INSERT", f"{number // 2}", number % 2 + 1, number % 2 == 1)))
    tracker.changes(1, "shop.t", _rows(("INSERT", "0", 1, False)))
    seen = tracker.close()
    assert not seen.exact
    assert all_of([seen]).keys() <= {"0"}


def test_ranges_are_joined_whatever_their_order() -> None:
    """Numbers seen one by one are one range."""
    numbers = [(number, number) for number in range(1, 50)]
    random.Random(1).shuffle(numbers)  # noqa: S311  a test's own mixing
    assert merge_ranges(numbers) == [(1, 49)]


pytest_spark = pytest.mark.spark
Make = Callable[..., Source]


class Running:
    """A source of one format, run by run."""

    def __init__(self, make: Make, lake: Lake, folder: Path, format_name: str, **fields: Any) -> None:
        keys = {} if format_name != "shareplex_json" else {"columns": {"id": "long", "name": "string"}}
        tables = {f"shop.{table}": {"key": ["id"], **keys} for table in TABLES}
        # what these tests are about stays open for as long as they like
        self.source = make(format_name, **{"tables": tables, "max_open_hours": 100_000, **fields})
        self.format = format_name
        self.lake = lake
        self.folder = folder / "landing"
        self.number = 0
        if format_name == "replicate_json":
            deliver(self.folder, "metadata", replicate_metadata())

    def deliver(self, *files: Iterable[Step]) -> None:
        """Put dumps into the landing folder."""
        for steps in files:
            self.number += 1
            deliver(self.folder, f"{self.number:03d}", written(self.format, steps))

    def run(self, *files: Iterable[Step], **more: Any) -> None:
        """Deliver and run all stages; nothing may be held back but what waits for its end."""
        self.deliver(*files)
        source = self.source.model_copy(update=more)
        assert [problem for report in run_all(source).values() for problem in report.problems] == []
        for row in Ledger(self.lake, self.source.source).read("tables"):
            terms = ("applied", "superseded", "duplicate", "held", "quarantined")
            assert row["events"] == sum(row[term] for term in terms), row
            assert min(row[term] for term in terms) >= 0, row

    def rows(self) -> dict[str, list[tuple[int, str]]]:
        """Published rows by table; a table without any is left out."""
        found = {}
        for name in TABLES:
            table = self.lake.find((self.source.source, name))
            rows = [] if table is None else table.scan().to_arrow().to_pylist()
            found[name] = sorted((int(row["id"]), row["name"]) for row in rows)
        return {name: rows for name, rows in found.items() if rows}

    def status(self) -> dict[str, Any]:
        """As ``tidemark status --json``."""
        return json.loads(json.dumps(status_of(self.lake, self.source.source)))

    def held(self) -> int:
        """Events held now."""
        return sum(table["held"] for table in self.status()["tables"].values())


def _expected(changes: Sequence[Change]) -> dict[str, list[tuple[int, str]]]:
    tables = {name: sorted((row["id"], row["name"]) for row in rows.values()) for name, rows in fold(changes).items()}
    return {name: rows for name, rows in tables.items() if rows}


@pytest_spark
@pytest.mark.prove
@pytest.mark.parametrize("format_name", FORMATS)
def test_an_open_one_is_held(format_name: str, source: Make, lake: Lake, tmp_path: Path, spark: Any) -> None:
    """Its events show in all tables at once; a table whose events are all held stays as it is; copies hold nothing."""
    running = Running(source, lake, tmp_path, format_name)
    first = transaction(1, change("one", 1, INSERT, 1, "a"), change("two", 2, INSERT, 1, "b"))
    cut = transaction(
        2,
        change("one", 3, INSERT, 2, "c"),
        change("three", 4, INSERT, 2, "d"),
        change("two", 5, INSERT, 2, "e"),
        change("one", 6, UPDATE, 1, "f"),
    )
    third = transaction(3, change("one", 7, INSERT, 3, "g"))
    running.run([*first, *cut[:3]])
    assert running.rows() == {"one": [(1, "a")], "two": [(1, "b")]}
    (waiting,) = running.status()["transactions"]["open"]
    assert (waiting["events"], waiting["tables"]) == (2, {"shop.one": 1, "shop.three": 1})
    assert running.held() == 2
    running.run(third)
    assert running.rows() == {"one": [(1, "a"), (3, "g")], "two": [(1, "b")]}
    assert running.held() == 2
    running.run(cut[3:])
    settled = {"one": [(1, "f"), (2, "c"), (3, "g")], "three": [(2, "d")], "two": [(1, "b"), (2, "e")]}
    assert running.rows() == settled
    assert (running.held(), running.status()["transactions"]["open"]) == (0, [])
    running.run([*first[1:2], *cut[1:2]], [*cut[2:5], *third])
    assert running.rows() == settled
    assert (running.held(), running.status()["transactions"]["open"]) == (0, [])
    tables = running.status()["tables"].values()
    copies = 6
    assert sum(table["events"] for table in tables) == 7 + copies
    terms = ("applied", "superseded", "duplicate", "held", "quarantined")
    assert all(table["events"] == sum(table[term] for term in terms) for table in tables)


@pytest.mark.more
@pytest.mark.parametrize("seed", range(how_many(usually=1, proving=3)))
@pytest.mark.parametrize(
    "format_name", ["debezium_json", "shareplex_json", pytest.param("replicate_json", marks=pytest.mark.prove)]
)
def test_open_is_what_lacks_a_part(format_name: str, seed: int, source: Make, lake: Lake, tmp_path: Path) -> None:
    """After each normalize, a transaction is open exactly if a part of it has landed and another part has not."""
    running = Running(source, lake, tmp_path, format_name)
    transactions = generated(seed, 30)
    delivered: list[Step] = []
    for steps in _mixed(seed, transactions):
        for part in (steps[::2], steps[1::2]):
            running.deliver(part)
        for stage in ("land", "normalize"):
            run_stage(stage, running.source, None, None)
        delivered += steps
        begun = {step.transaction for step in delivered if step.change}
        lacking = {id_ for id_ in begun if not whole(format_name, transactions[id_ - 1 : id_], delivered)}
        reported = running.status()["transactions"]["open"]
        assert sorted(map(number_of, (each["id"] for each in reported))) == sorted(lacking)
    assert not reported


# ``test_counted_transactions.py`` decodes transactions of Debezium again.
@pytest.mark.parametrize(
    "format_name",
    [pytest.param(name, marks=[pytest.mark.prove] * (name == "debezium_json")) for name in sorted(SENDS_MARKERS)],
)
def test_decoded_again_on_other_tasks(
    format_name: str, source: Make, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is whole, open or undone stays so, where the task that reads the ends of transactions reads no event."""
    running = Running(source, lake, tmp_path, format_name)
    good = transaction(1, change("one", 1, INSERT, 1, "a"), change("two", 2, INSERT, 1, "b"))
    long = transaction(2, change("one", 3, INSERT, 2, "c"), change("two", 4, INSERT, 2, "d"))
    cut = transaction(3, change("one", 5, INSERT, 3, "e"), change("two", 6, INSERT, 3, "f"))
    undone = transaction(4, change("one", 7, INSERT, 4, "g"), end="ROLLBACK")
    for steps in ([*good, *long[:2], *cut[:3]], [*long[2:], *undone]):
        running.deliver(steps)
        for stage in ("land", "normalize"):
            run_stage(stage, running.source)
    tasks_apart(monkeypatch)
    for reprocess in (False, True):
        run_stage("normalize", running.source, reprocess=reprocess)
        found = running.status()["transactions"]
        expected = ({3}, 1) if format_name == "dts_avro" else ({3, 4}, 0)  # Debezium writes no rollback
        assert ({number_of(each["id"]) for each in found["open"]}, found["rolled_back"]) == expected


@pytest.mark.usefixtures("one_task_or_apart")
@pytest.mark.parametrize(
    "one_task_or_apart", [pytest.param("one_task", marks=pytest.mark.prove), "tasks_apart"], indirect=True
)
def test_decoded_again_without_an_event(
    source: Make,
    lake: Lake,
    tmp_path: Path,
) -> None:
    """Where events have flags and no marker is sent: an event that is read again no more opens its transaction.

    All tables of the transaction are built again then, though events of some of them are in other batches.
    """
    running = Running(source, lake, tmp_path, "shareplex_json", landing=str(tmp_path / "%Y-%m-%d" / "*"))
    strict, ledger = running.source.model_copy(update={"max_message_mib": 1}), Ledger(lake, running.source.source)
    long = change("two", 2, INSERT, 1, "b" * (1 << 20))
    steps = transaction(1, change("one", 1, INSERT, 1, "a"), long, change("two", 3, INSERT, 2, "c"))
    for day, delivered in enumerate((steps[:2], [steps[2]], [*steps[3:], *transaction(2, long)]), 1):
        running.folder = tmp_path / f"2026-01-{day:02d}"
        running.deliver(delivered)
        run_stage("land", strict)
        run_stage("normalize", running.source)
    second = (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    for reading, days, expected in ((running.source, (), []), (strict, second, [1]), (running.source, second, [])):
        ledger.answered(ledger.rebuild_requests())
        run_stage("normalize", reading, *days, reprocess=True)
        reported = running.status()["transactions"]["open"]
        assert [number_of(each["id"]) for each in reported] == expected
        assert ledger.rebuild_requests().keys() == {"shop.one", "shop.two"}


def _mixed(seed: int, transactions: Sequence[Sequence[Step]]) -> list[list[Step]]:
    """Deliver transactions in four runs: every step once at least, in any order, some of them again."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    runs: list[list[Step]] = [[] for _ in range(4)]
    for steps in transactions:
        home = dice.randrange(4)
        for step in steps:
            runs[home if dice.random() < 0.7 else dice.randrange(4)].append(step)
            if dice.random() < 0.15:
                runs[dice.randrange(4)].append(step)
    runs[0] += transactions[0]  # that markers are sent shows from the first run on
    for run in runs:
        dice.shuffle(run)
    return runs


DELIVERED = how_many(
    usually=[("debezium_json", 2)],
    proving=[("debezium_json", 2), ("shareplex_json", 1), ("shareplex_json", 2), ("replicate_json", 1)],
)


@pytest_spark
@pytest.mark.more
@pytest.mark.parametrize(("format_name", "tasks"), DELIVERED)
def test_any_delivery(
    format_name: str, tasks: int, source: Make, lake: Lake, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events in any order, cut into runs, sent again: after each run the tables hold exactly the whole transactions.

    On two tasks none of them sees all, and what one has seen whole another may have a copy of.
    """
    if tasks > 1:
        monkeypatch.setattr("tidemark.spark.spread._FEW_FILES", 0)
    running = Running(source, lake, tmp_path, format_name)
    transactions = generated(7, 24)
    delivered: list[Step] = []
    runs = _mixed(20260101, transactions)
    if not PROVING:
        runs = [[*runs[0], *runs[1]], [*runs[2], *runs[3]]]
    for steps in runs:
        running.run(steps[::2], steps[1::2])
        delivered += steps
        assert running.rows() == _expected(whole(format_name, transactions, delivered))
    assert running.held() == 0


@pytest_spark
@pytest.mark.more
def test_what_was_rolled_back_never_shows(source: Make, lake: Lake, tmp_path: Path, spark: Any) -> None:
    """Undone in its own run, or later: its events are counted and discarded, and so are copies of them."""
    running = Running(source, lake, tmp_path, "dts_avro")
    good = transaction(1, change("one", 1, INSERT, 1, "a"))
    short = transaction(2, change("one", 2, INSERT, 2, "b"), end="ROLLBACK")
    long = transaction(3, change("one", 3, UPDATE, 1, "c"), change("two", 4, INSERT, 1, "d"), end="ROLLBACK")
    running.run([*good, *short, *long[:-1]])
    assert (running.rows(), running.held()) == ({"one": [(1, "a")]}, 2)
    end, copies = long[-1:], [*long[1:3], *short[1:2]]
    if PROVING:
        running.run(end)
        # a marker alone makes no cut of its own unless it settles something
        assert (running.rows(), running.held()) == ({"one": [(1, "a")]}, 0)
    running.run(copies if PROVING else [*end, *copies])
    assert (running.rows(), running.held()) == ({"one": [(1, "a")]}, 0)
    status = running.status()
    assert status["transactions"] == {"open": [], "given_up": 0, "rolled_back": 2, "not_awaited": {}}
    assert status["tables"][f"{running.source.source}.one"]["superseded"] == 4
    assert status["tables"][f"{running.source.source}.two"]["superseded"] == 2


@pytest_spark
@pytest.mark.prove
def test_without_markers_nothing_waits(source: Make, lake: Lake, tmp_path: Path, spark: Any) -> None:
    """Debezium whose transaction topic never lands: an id and a number alone hold nothing."""
    running = Running(source, lake, tmp_path, "debezium_json")
    one, two = generated(3, 2)
    running.run([step for step in one if step.change][:1])
    assert (running.held(), running.status()["transactions"]["open"]) == (0, [])
    rest = [step for step in one if step.change][1:] + one[-1:]
    running.run([*rest, *two[:-1]])
    assert running.rows() == _expected([step.change for step in one if step.change])
    running.run(two[-1:])
    assert running.rows() == _expected([step.change for step in (*one, *two) if step.change])


@pytest_spark
@pytest.mark.more
def test_ignored_transactions_hold_nothing(source: Make, lake: Lake, tmp_path: Path, spark: Any) -> None:
    """``transactions: ignore`` releases what waits for an event that was lost, with nothing new landed; and goes on.

    What one run gave up stays so: an event without a key that comes late is folded together with it.
    """
    columns = {"id": "long", "name": "string"}
    tables = {f"shop.{name}": {"key": key, "columns": columns} for name, key in KEYS.items()}
    running = Running(source, lake, tmp_path, "shareplex_json", tables=tables)
    steps = transaction(
        3,
        change("one", 1, INSERT, 1, "a"),
        change("two", 2, INSERT, 1, "b"),
        change("three", 3, DELETE, 5, "v"),
        change("one", 4, INSERT, 2, "c"),
    )
    running.run(transaction(1, change("three", 1, INSERT, 5, "v")), steps[1:4])
    assert (running.rows(), running.held()) == ({"three": [(5, "v")]}, 3)
    running.run(transactions=Transactions.IGNORE)
    assert (running.rows(), running.held()) == ({"one": [(1, "a")], "two": [(1, "b")]}, 0)
    assert running.status()["transactions"] == {"open": [], "given_up": 1, "rolled_back": 0, "not_awaited": {}}
    cut = running.status()["cut"]
    running.run(transactions=Transactions.IGNORE)
    assert running.status()["cut"] == cut
    late = transaction(2, change("three", 2, INSERT, 5, "v"))
    running.run(transaction(4, change("one", 5, INSERT, 9, "z")), late)
    assert running.rows() == {"one": [(1, "a"), (9, "z")], "three": [(5, "v")], "two": [(1, "b")]}
    if PROVING:
        running.run(steps[4:])
        assert running.rows() == {"one": [(1, "a"), (2, "c"), (9, "z")], "three": [(5, "v")], "two": [(1, "b")]}


def test_gtids_of_canal_hold_nothing(source: Make, lake: Lake, tmp_path: Path) -> None:
    """A GTID names a transaction and marks no end, nor does the commit of an XA transaction, which has its own."""
    made = source("canal_json")
    row = json.loads(canal("t", "INSERT", {"id": "int"}, (1,)))
    commit = {"type": "XACOMMIT", "database": "", "table": "", "gtid": "u:8", "isDdl": False, "es": 1, "data": None}
    deliver(tmp_path / "landing", "a", [json.dumps(each).encode() for each in ({**row, "gtid": "u:7"}, commit)])
    for stage in ("land", "normalize"):
        run_stage(stage, made)
    (batch,) = Ledger(lake, made.source).batches()
    assert (batch.decoded, batch.control) == (1, 1)
    assert status_of(lake, made.source)["transactions"]["open"] == []


CRASHES = {
    "before_transactions_are_told": ("tidemark.normalization.open_transactions.settle", 1),
    "before_changelog_append": ("tidemark.lake.lake.Lake.append_files", 3),
    "between_two_fast_forwards": ("tidemark.ledger.cuts.move", 2),
}


@pytest_spark
@pytest.mark.parametrize(
    "point",
    crash_windows(CRASHES, usually={"before_transactions_are_told"}),
)
def test_a_killed_run(
    point: str, source: Make, lake: Lake, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as a transaction opens, and as it closes, then run again: rows and counts are as after a clean run."""
    running = Running(source, lake, tmp_path, "replicate_json")
    first = transaction(1, change("one", 1, INSERT, 1, "a"), change("two", 2, INSERT, 1, "b"))
    cut = transaction(2, change("one", 3, UPDATE, 1, "c"), change("two", 4, UPDATE, 1, "d"))
    for steps in ([*first, *cut[:2]], cut[2:]):
        running.deliver(steps)
        with monkeypatch.context() as patched:
            die_at(patched, *CRASHES[point])
            with pytest.raises(SystemExit):
                run_all(running.source)
        running.run()
        assert running.held() == (steps is not cut[2:] and steps[0] in first)
    assert running.rows() == {"one": [(1, "c")], "two": [(1, "d")]}
    assert sum(table["events"] for table in running.status()["tables"].values()) == 4
