"""Rows that move to another key, for which Debezium does not write the large values that did not change."""

from __future__ import annotations

import json
import pkgutil
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.histories import UNAVAILABLE, Table, deliver, mixed
from support.reference import Change, fold, with_moved_values
from support.rounds import PROVING, ROUNDS, how_many, in_two_runs
from support.running import assert_ledger_closes, run_all
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.queries.explain import explain
from tidemark.queries.row_life import Outcome
from tidemark.sources.model import Source

pytestmark = [pytest.mark.spark, pytest.mark.more]

Message = bytes
_RUNS = 3
_KEYS = 1000
"""Keys of a case."""


class Log:
    """The log of one case in a table of PostgreSQL, written down message by message.

    A case has keys and places in the log that no other case of its table has.
    """

    def __init__(self, table: str, number: int = 0) -> None:
        self.table = table
        self.number = number

    def insert(self, at: int, key: int, title: Any, body: Any) -> Message:
        """A row was inserted; with the placeholder for a value, it came from another key."""
        return self._message(at, "c", None, self._row(key, title, body))

    def load(self, key: int, title: Any, body: Any) -> Message:
        """A row was read by an incremental load: PostgreSQL's connector gives no place in the log."""
        return self._read(0, key, title, body, snapshot="incremental", lsn=None, txId=None)

    def whole_load(self, at: int, *rows: tuple[Any, ...]) -> list[Message]:
        """The rows of a complete load that began at a place."""
        return [self._read(at, *row, snapshot="true") for row in rows]

    def update(self, at: int, key: int, title: Any, body: Any) -> Message:
        """A row was updated."""
        return self._message(at, "u", None, self._row(key, title, body))

    def delete(self, at: int, key: int, title: Any = None, body: Any = None) -> Message:
        """A row went; with its key alone, or (replica identity FULL) with its values."""
        return self._message(at, "d", self._row(key, title, body), None)

    def truncate(self, at: int) -> Message:
        """All rows went."""
        return self._message(at, "t", None, None)

    def move(self, at: int, old: int, new: int, title: Any, *, number: int | None = None) -> list[Message]:
        """An update changed the key and not the body; ``number`` of its delete in the transaction, if it has one."""
        gone, came = self.delete(at, old), self.insert(at, new, title, UNAVAILABLE)
        if number is None:
            return [gone, came]
        return [self.within(at, number, gone), self.within(at, number + 1, came)]

    def within(self, at: int, number: int, message: Message) -> Message:
        """A message as an event of a transaction, which has that number there."""
        block = {"id": self._id(at), "total_order": number, "data_collection_order": 1}
        return json.dumps({**json.loads(message), "transaction": block}).encode()

    def begin(self, at: int) -> Message:
        """A transaction begins."""
        return json.dumps({"status": "BEGIN", "id": self._id(at), "ts_ms": 1_767_225_602_000}).encode()

    def end(self, at: int, count: int) -> Message:
        """The end of a transaction of so many events."""
        end = {"status": "END", "id": self._id(at), "ts_ms": 1_767_225_602_000, "event_count": count}
        return json.dumps(end).encode()

    def _id(self, at: int) -> str:
        return f"{self._place(at)}:{self._place(at) * 100}"

    def _read(self, at: int, *row: Any, **members: Any) -> Message:
        message = json.loads(self.insert(at, *row))
        message["source"] |= members
        return json.dumps({**message, "op": "r"}).encode()

    def _row(self, key: int, title: Any, body: Any) -> dict[str, Any]:
        return {"id": _KEYS * self.number + key, "title": title, "body": body}

    def _place(self, at: int) -> int:
        return at * len(CASES) + self.number

    def _message(self, at: int, op: str, before: Any, after: Any) -> Message:
        origin = {"connector": "postgresql", "snapshot": "false", "db": "app", "schema": "public", "table": self.table}
        place = {"txId": self._place(at), "lsn": self._place(at) * 100, "ts_ms": 1_767_225_600_000 + at * 1000}
        return json.dumps({"op": op, "before": before, "after": after, "source": {**origin, **place}}).encode()


CASES: dict[str, tuple[Callable[[Log], list[list[Message]]], list[tuple[Any, ...]], int]] = {
    "the_row_is_in_the_table": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), t.insert(2, 2, "b", "B")],
            [*t.move(5, 1, 101, "a"), t.update(6, 2, "c", UNAVAILABLE)],
        ],
        [(2, "c", "B"), (101, "a", "A")],
        0,
    ),
    "in_one_run_with_numbers": (
        lambda t: [
            [
                t.insert(1, 1, "a", "A"),
                t.within(5, 1, t.update(2, 1, "b", UNAVAILABLE)),
                t.within(5, 2, t.insert(3, 2, "x", "X")),
                *t.move(5, 1, 101, "c", number=3),
                t.end(5, 4),
            ]
        ],
        [(2, "x", "X"), (101, "c", "A")],
        0,
    ),
    "the_delete_tells_the_value": (
        lambda t: [[t.delete(5, 1, "a", "A"), t.insert(5, 101, "a", UNAVAILABLE)]],
        [(101, "a", "A")],
        0,
    ),
    "the_create_comes_a_run_later": (
        lambda t: [[t.insert(1, 1, "a", "A")], t.move(5, 1, 101, "b")[:1], t.move(5, 1, 101, "b")[1:]],
        [(101, "b", "A")],
        0,
    ),
    "the_create_comes_a_run_earlier": (
        lambda t: [[t.insert(1, 1, "a", "A")], t.move(5, 1, 101, "b")[1:], t.move(5, 1, 101, "b")[:1]],
        [(101, "b", "A")],
        0,
    ),
    "the_row_comes_last": (
        lambda t: [t.move(5, 1, 101, "b"), [t.update(6, 101, "c", UNAVAILABLE)], [t.insert(1, 1, "a", "A")]],
        [(101, "c", "A")],
        0,
    ),
    "an_update_comes_last": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), *t.move(5, 1, 101, "b")],
            [*t.move(7, 101, 102, "c"), t.insert(1, 1, "a", "A")],
            [t.update(2, 1, "d", "D")],
        ],
        [(102, "c", "D")],
        0,
    ),
    "moved_again_and_again": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), *t.move(5, 1, 2, "b")],
            [*t.move(6, 2, 3, None), t.update(7, 3, "d", UNAVAILABLE), *t.move(8, 3, 4, "e")],
            [t.insert(9, 1, "new", "N"), *t.move(10, 4, 5, "f")],
        ],
        [(1, "new", "N"), (5, "f", "A")],
        0,
    ),
    "sent_again": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), *t.move(5, 1, 101, "b"), *t.move(5, 1, 101, "b")],
            [*t.move(6, 101, 102, "c"), *t.move(5, 1, 101, "b")],
            t.move(6, 101, 102, "c"),
        ],
        [(102, "c", "A")],
        0,
    ),
    "moved_back": (
        lambda t: [[t.insert(1, 1, "a", "A")], [*t.move(5, 1, 2, "b"), *t.move(6, 2, 1, "c")]],
        [(1, "c", "A")],
        0,
    ),
    "an_incremental_load_read_the_row_before_it_moved": (
        lambda t: [[t.load(1, "a", "A"), *t.move(5, 1, 101, "b")]],
        [(101, "b", "A")],
        0,
    ),
    "an_incremental_load_read_another_row_of_the_key_later": (
        lambda t: [[*t.move(5, 1, 101, "b"), *t.move(6, 2, 1, "c"), t.load(1, "c", "C"), t.load(101, "b", "B")]],
        [(101, "b", "B")],
        2,
    ),
    "the_row_was_never_seen": (
        lambda t: [t.move(5, 1, 101, "a"), [t.update(6, 101, "late", UNAVAILABLE)]],
        [(101, "late", None)],
        1,
    ),
    "the_delete_never_comes": (
        lambda t: [[t.insert(1, 1, "a", "A"), t.insert(5, 101, "b", UNAVAILABLE)]],
        [(1, "a", "A")],
        1,
    ),
    "the_delete_comes_a_run_later_and_a_row_has_its_key": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), t.insert(2, 101, "z", "Z")],
            t.move(5, 1, 101, "b")[1:],
            [t.delete(4, 101), *t.move(5, 1, 101, "b")[:1]],
        ],
        [(101, "b", "A")],
        0,
    ),
    "the_delete_never_comes_and_a_row_has_its_key": (
        lambda t: [[t.insert(1, 1, "a", "A"), t.insert(2, 101, "z", "Z")], t.move(5, 1, 101, "b")[1:]],
        [(1, "a", "A"), (101, "z", "Z")],
        1,
    ),
    "the_delete_never_comes_and_a_truncate_took_the_row_of_its_key": (
        lambda t: [[t.insert(1, 101, "z", "Z"), t.truncate(2), t.insert(3, 1, "a", "A")], t.move(5, 1, 101, "b")[1:]],
        [(1, "a", "A")],
        1,
    ),
    "a_truncate_comes_late": (
        lambda t: [[t.insert(1, 1, "a", "A")], t.move(5, 1, 101, "b"), [t.truncate(2)]],
        [],
        1,
    ),
    "a_load_had_no_such_row": (
        lambda t: [
            t.whole_load(1, (1, "a", "A"), (2, "b", "B")),
            t.whole_load(3, (2, "b", "B")),
            t.move(5, 1, 101, "c"),
        ],
        [(2, "b", "B")],
        1,
    ),
    "the_row_was_deleted_and_its_next_insert_never_comes": (
        lambda t: [[t.insert(1, 1, "a", "A"), t.delete(2, 1)], t.move(5, 1, 101, "b")],
        [],
        1,
    ),
    "another_row_came_to_the_key": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), *t.move(3, 7, 1, "b")[1:], *t.move(5, 1, 101, "c")],
            t.move(3, 7, 1, "b")[:1],
        ],
        [],
        2,
    ),
    "another_delete_of_the_transaction": (
        lambda t: [[t.insert(1, 1, "a", "A"), t.insert(2, 2, "b", "B"), t.delete(4, 2), *t.move(5, 1, 101, "c")]],
        [(101, "c", "A")],
        0,
    ),
    "a_mask_makes_null_of_the_value": (
        lambda t: [[t.insert(1, 1, "a", "A")], [*t.move(5, 1, 101, "b")]],
        [(101, "b", None)],
        0,
    ),
    "the_life_before_is_not_looked_at": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), t.delete(2, 1), t.update(3, 1, "b", UNAVAILABLE)],
            t.move(5, 1, 101, "c"),
        ],
        [],
        1,
    ),
    "its_transaction_ends_after_the_move": (
        lambda t: [
            [t.insert(1, 1, "a", "A"), t.begin(2), t.within(2, 1, t.update(2, 1, "d", "D")), *t.move(5, 1, 101, "b")],
            [t.end(2, 1)],
        ],
        [(7, "x", "X"), (101, "b", "D")],
        0,
    ),
}
"""Messages by run, the rows that they must lead to, and how many events are set aside."""
_KINDS: list[dict[str, Any]] = how_many(
    usually=[{"history": True, "deletes": "soft"}], proving=[{}, {"history": True}, {"deletes": "soft"}]
)
_MASKED = "a_mask_makes_null_of_the_value"
_HELD = "its_transaction_ends_after_the_move"
"""It gets the row of the last run, which has nothing else."""
_ALONE = {
    _MASKED,
    "the_delete_never_comes_and_a_truncate_took_the_row_of_its_key",
    "a_truncate_comes_late",
    "a_load_had_no_such_row",
}
"""Cases whose table is masked, or is emptied."""


_PROVED = {*_ALONE - {_MASKED}, "moved_again_and_again"}
"""Cases of ``make prove``: the longest way back, as each move is looked up in a round of its own, and a TRUNCATE."""
TRIED = [name for name in CASES if PROVING or name not in _PROVED]
"""Cases that are tried. A late one builds all tables twice. Generated histories are in ``test_worlds.py`` too."""
_TRIED_RUNS = how_many(usually=2, proving=_RUNS)


def _table(number: int, name: str) -> str:
    """The table of a case: cases with a table of one kind share it, and each has its own in ``make prove``."""
    return name if PROVING or name in _ALONE else f"kind_{number % len(_KINDS)}"


def _kind(log: Log) -> Mapping[str, Any]:
    """The kind of the table of a case: where it is masked a plain one in ``make test``."""
    return _KINDS[log.number % len(_KINDS)] if PROVING or log.table != _MASKED else {}


LOGS = {name: Log(_table(number, name), number) for number, name in enumerate(CASES) if name in TRIED}

HISTORIES = [f"history_{seed}" for seed in range(how_many(usually=0, proving=6 * ROUNDS))]


def generated(name: str, seed: int) -> list[Change]:
    """A history of rows that move again and again, with and without their large value, and now and then a TRUNCATE.

    Every row that moves is there. Its DELETE has its values, or its key alone.
    """
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    table, alive, changes = Table(name, ("id",), ("id", "title", "body")), dict[int, str](), list[Change]()
    for place in range(1, 90):
        at, chance, number, title = 10 * place, dice.random(), dice.randrange(12), f"t{place}"
        known = dice.choice(sorted(alive)) if alive else number
        values = dice.choice([(None, None), ("", alive.get(known))])
        free = dice.choice(sorted({*range(12)} - alive.keys()) or [known])
        if chance < 0.03:
            changes.append(table.truncate(at))
            alive.clear()
        elif chance < 0.15 and alive:
            changes.append(table.delete(at, known, *values))
            del alive[known]
        elif chance < 0.55 and alive and free != known:
            body = alive.pop(known)
            changes += [table.delete(at, known, *values), table.insert(at, free, title, dice.choice([..., ..., body]))]
            alive[free] = body
        elif chance < 0.75 and alive:
            body = dice.choice([..., f"b{place}"])
            changes.append(table.update(at, known, title, body))
            alive[known] = alive[known] if body is ... else body
        elif number not in alive:
            alive[number] = f"b{place}"
            changes.append(table.insert(at, number, title, alive[number]))
    return changes


def _written(log: Log, change: Change) -> Message:
    """The message of a change of a generated history."""
    at = int(change.position[2])
    if change.operation is Operation.TRUNCATE:
        return log.truncate(at)
    if change.after is None:
        return log.delete(at, *(change.before or {}).values())
    write = log.insert if change.operation is Operation.INSERT else log.update
    row = {"body": UNAVAILABLE, **change.after}
    return write(at, row["id"], row["title"], row["body"])


class Published(NamedTuple):
    """What two or three runs of a source led to."""

    source: Source
    histories: Mapping[str, Sequence[Sequence[Change]]]
    """Changes by run, of each generated history."""
    rows: Mapping[str, Sequence[list[tuple[Any, ...]]]]
    """Rows of each history's table after each run."""
    looked: set[int]
    """Runs that looked for moved rows in the change log."""


@pytest.fixture(scope="module")
def cases(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """The cases and histories in tables of one source, with a history or soft deletes here and there."""
    landing = tmp_path_factory.mktemp("moved")
    promised: dict[str, dict[str, Any]] = {
        f"app.public.{log.table}": {"key": ["id"], **_kind(log)} for log in LOGS.values()
    }
    promised[f"app.public.{_MASKED}"]["mask"] = {"body": "null"}
    promised |= {f"app.public.{name}": {"key": ["id"], **_KINDS[-n % len(_KINDS)]} for n, name in enumerate(HISTORIES)}
    fields = {"source": "moved", "format": "debezium_json", "landing": str(landing / "*"), "tables": promised}
    source = Source.model_validate({**fields, "max_deletes": 1, "max_quarantined": 1})
    runs = [in_two_runs(CASES[name][0](log)) for name, log in LOGS.items()]
    dice = random.Random(20261126)  # noqa: S311  a test's own mixing
    histories = {name: mixed(dice, generated(name, seed), _RUNS) for seed, name in enumerate(HISTORIES)}
    rows: dict[str, list[list[tuple[Any, ...]]]] = {name: [] for name in HISTORIES}
    looked: set[int] = set()
    read = pkgutil.resolve_name("tidemark.compaction.moved_rows._everything")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tidemark.compaction.moved_rows._everything", lambda *log: looked.add(run) or read(*log))
        for run in range(_TRIED_RUNS):
            made_up = [_written(Log(name), change) for name, delivery in histories.items() for change in delivery[run]]
            deliver(landing, f"{run}", [*(m for made in runs if run < len(made) for m in made[run]), *made_up])
            run_all(source)
            for name, found in rows.items():
                found.append(_shown(lake.load(("moved", name)).scan().to_arrow().to_pylist()))
        run = _TRIED_RUNS
        deliver(landing, f"{run}", [LOGS[_HELD].insert(100, 7, "x", "X")])
        run_all(source)
    return Published(source, histories, rows, looked)


def _shown(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    there = (row for row in rows if not row.get("_cdc_deleted"))
    return sorted((row["id"], row["title"], row.get("body")) for row in there)


@pytest.mark.prove
@pytest.mark.parametrize("name", HISTORIES)
def test_any_delivery_of_rows_that_move_gives_the_model(name: str, cases: Published) -> None:
    """After each run: shuffled, with copies, and cut wherever it may be, also between the two halves of a move."""
    landed: list[Change] = []
    for changes, rows in zip(cases.histories[name], cases.rows[name], strict=True):
        landed += changes
        assert rows == _shown(list(fold(with_moved_values(landed, {"body"})).get(name, {}).values()))


@pytest.mark.parametrize("name", TRIED)
def test_a_moved_row_keeps_what_was_not_captured(name: str, cases: Published, lake: Lake) -> None:
    """The value is the one that the moved row had, or the event is set aside and counted: never null."""
    (_, expected, aside), log = CASES[name], LOGS[name]

    def own(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        keyed = [(*divmod(row["id"], _KEYS), row["title"], row["body"]) for row in rows]
        return sorted(row[1:] for row in keyed if row[0] == log.number)

    rows = lake.load(("moved", log.table)).scan().to_arrow().to_pylist()
    assert own([row for row in rows if not row.get("_cdc_deleted")]) == expected
    quarantine = lake.load(("quarantine", "moved")).scan().to_arrow().to_pylist()
    mine = [row for row in quarantine if row["object"] == f"app.public.{log.table}" and own([_after(row["value"])])]
    assert [row["reason"] for row in mine] == ["partial_key_change"] * aside
    if (history := lake.find(("moved", f"{log.table}__history"))) is not None:
        assert own([row for row in history.scan().to_arrow().to_pylist() if row["is_current"]]) == expected


def _after(message: Message) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(message)["after"]
    return row


def test_what_was_set_aside_is_explained(cases: Published, lake: Lake) -> None:
    """It does not stand in the row that has its key."""
    log = LOGS["the_delete_never_comes_and_a_row_has_its_key"]
    life = explain(lake, f"moved.{log.table}", [f"id={_KEYS * log.number + 101}"])
    assert [chapter.outcome for chapter in life.chapters] == [Outcome.STANDS, Outcome.QUARANTINED]


def test_every_event_is_accounted_for(cases: Published, lake: Lake) -> None:
    """The ledger closes over moved rows."""
    assert_ledger_closes(lake, "moved")


def test_an_event_that_was_held_reaches_the_row_that_moved_meanwhile(cases: Published, lake: Lake) -> None:
    """Its transaction ends in a later run than the move. Until then the row has the value from before."""
    log = LOGS[_HELD]
    table = lake.load(("moved", log.table))
    rows = table.scan(snapshot_id=table.refs()["cut_1"].snapshot_id).to_arrow().to_pylist()
    own = [(row["id"] % _KEYS, row["title"], row["body"]) for row in rows if row["id"] // _KEYS == log.number]
    assert [row for row in own if row[0] == 101] == [(101, "b", "A")]


def test_a_run_of_newer_events_does_not_look_at_the_change_log(cases: Published) -> None:
    """Each other run had a row that moved, or an event of one from before."""
    assert cases.looked == {*range(_TRIED_RUNS)}
