"""Rows that move to another key, of which Debezium does not tell the large values that did not change."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.histories import UNAVAILABLE, deliver
from support.rounds import PROVING
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
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
        """A row was read by an incremental load: PostgreSQL's connector tells no place in the log."""
        row = json.loads(self.insert(0, key, title, body))
        row["source"] |= {"snapshot": "incremental", "lsn": None, "txId": None}
        return json.dumps({**row, "op": "r"}).encode()

    def update(self, at: int, key: int, title: Any, body: Any) -> Message:
        """A row was updated."""
        return self._message(at, "u", None, self._row(key, title, body))

    def delete(self, at: int, key: int, title: Any = None, body: Any = None) -> Message:
        """A row went; with its key alone, or (replica identity FULL) with its values."""
        return self._message(at, "d", self._row(key, title, body), None)

    def move(self, at: int, old: int, new: int, title: Any, *, number: int | None = None) -> list[Message]:
        """An update changed the key and not the body; ``number`` of its delete in the transaction, if it is told."""
        gone, came = self.delete(at, old), self.insert(at, new, title, UNAVAILABLE)
        if number is None:
            return [gone, came]
        return [self._numbered(gone, at, number), self._numbered(came, at, number + 1)]

    def _row(self, key: int, title: Any, body: Any) -> dict[str, Any]:
        return {"id": _KEYS * self.number + key, "title": title, "body": body}

    def _place(self, at: int) -> int:
        return at * len(CASES) + self.number

    def _numbered(self, message: Message, at: int, number: int) -> Message:
        block = {"id": f"{self._place(at)}:{self._place(at) * 100}", "total_order": number, "data_collection_order": 1}
        return json.dumps({**json.loads(message), "transaction": block}).encode()

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
        lambda t: [[t.insert(1, 1, "a", "A"), t.update(2, 1, "b", UNAVAILABLE), *t.move(5, 1, 101, "c", number=3)]],
        [(101, "c", "A")],
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
}
"""Messages by run, the rows that they must lead to, and how many events are set aside."""
_KINDS: list[dict[str, Any]] = [{}, {"history": True}, {"deletes": "soft"}]
_MASKED = "a_mask_makes_null_of_the_value"


def _table(number: int, name: str) -> str:
    """The table of a case: cases with a table of one kind share it, and each has its own in ``make prove``."""
    return name if PROVING or name == _MASKED else f"kind_{number % len(_KINDS)}"


LOGS = {name: Log(_table(number, name), number) for number, name in enumerate(CASES)}


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """The cases in tables of one source, with a history or soft deletes here and there, in three runs."""
    landing = tmp_path_factory.mktemp("moved")
    promised: dict[str, dict[str, Any]] = {
        f"app.public.{log.table}": {"key": ["id"], **_KINDS[log.number % len(_KINDS)]} for log in LOGS.values()
    }
    promised[f"app.public.{_MASKED}"]["mask"] = {"body": "null"}
    fields = {"source": "moved", "format": "debezium_json", "landing": str(landing / "*"), "tables": promised}
    source = Source.model_validate({**fields, "max_deletes": 1, "max_quarantined": 1})
    runs = [build(LOGS[name]) for name, (build, _, _) in CASES.items()]
    for run in range(_RUNS):
        deliver(landing, f"{run}", [message for made in runs if run < len(made) for message in made[run]])
        run_all(source)
    return source


@pytest.mark.parametrize("name", CASES)
def test_a_moved_row_keeps_what_was_not_captured(name: str, cases: Source, lake: Lake) -> None:
    """The value is that of the row that moved, or the event is set aside and counted: never null."""
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


def test_every_event_is_accounted_for(cases: Source, lake: Lake) -> None:
    """The ledger closes over moved rows."""
    assert_ledger_closes(lake, "moved")


def test_an_event_that_was_held_reaches_the_row_that_moved_meanwhile(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction ends in a later run than the move. A run of newer events does not look at the change log."""
    log = Log("held")
    open_ = {"id": "2:200", "total_order": 1, "data_collection_order": 1}
    held = json.dumps({**json.loads(log.update(2, 1, "d", "D")), "transaction": open_}).encode()
    begin, end = (
        json.dumps({"status": status, "id": "2:200", "ts_ms": 1_767_225_602_000, **count}).encode()
        for status, count in (("BEGIN", {}), ("END", {"event_count": 1}))
    )
    source = Source.model_validate(
        {
            "source": "moved_held",
            "format": "debezium_json",
            "landing": str(tmp_path / "*"),
            "tables": {"app.public.held": {"key": ["id"]}},
        }
    )
    runs = [[log.insert(1, 1, "a", "A"), begin, held, *log.move(5, 1, 101, "b")], [log.insert(6, 7, "x", "X")], [end]]
    expected = [[(101, "b", "A")], [(7, "x", "X"), (101, "b", "A")], [(7, "x", "X"), (101, "b", "D")]]
    read = pkgutil.resolve_name("tidemark.compaction.moved_rows._everything")
    reads: list[int] = []
    monkeypatch.setattr("tidemark.compaction.moved_rows._everything", lambda *log: reads.append(number) or read(*log))
    for number, (messages, wanted) in enumerate(zip(runs, expected, strict=True)):
        deliver(tmp_path, f"{number}", messages)
        run_all(source)
        rows = lake.load(("moved_held", "held")).scan().to_arrow().to_pylist()
        assert sorted((row["id"], row["title"], row["body"]) for row in rows) == wanted
    assert set(reads) == {0, 2}
