"""Keys that change at the source: rows stay what they are, also where later messages have the old key alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, Message, cut, record
from support.feeds import published, replayed
from support.histories import deliver
from support.rounds import PROVING, how_many
from support.running import die_at, run_all
from tidemark.errors import ConfigurationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.status import status_of
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables.schemas import COMMITTED_AT, DELETED, POSITION

pytestmark = pytest.mark.spark

_RUNS = how_many(usually=2, proving=3)


class Keyed(NamedTuple):
    """The log of one table whose messages name keys."""

    log: Log

    def put(self, at: int, key: dict[str, Any], before: Any = None, /, **row: Any) -> Message:
        """An insert or, with a before image, an update."""
        return record(self.log.put(at, before, **row), key=key)

    def change(self, at: int, key: dict[str, Any] | None, /, **row: Any) -> Message:
        """An update whose before image is empty."""
        return record(self.log.put(at, {}, **row), key=key)

    def delete(self, at: int, key: dict[str, Any]) -> Message:
        """A delete that has the key alone."""
        return record(self.log.delete(at, **key), key=key)

    def ddl(self, at: int, text: str) -> Message:
        """A change of the table."""
        return record(self.log.ddl(at, text))


class Case(NamedTuple):
    """The messages of a table in the order of the log, and the rows that they lead to."""

    name: str
    steps: Callable[[Keyed], list[Message]]
    rows: list[tuple[Any, ...]]


def _widened(t: Keyed) -> list[Message]:
    return [
        t.put(1, {"id": 1}, id=1, a="x"),
        t.put(2, {"id": 2}, id=2, a="x"),
        t.put(3, {"id": 3}, id=3, a="x"),
        t.change(4, {"id": 3}, id=3, a="y"),
        t.delete(5, {"id": 2}),
        t.put(6, {"id": 4}, id=4, a="x", n=None),
        t.ddl(7, "ADD COLUMN IF NOT EXISTS n int DEFAULT 7"),  # the table has it: no row changes
        t.ddl(9, "ADD COLUMN r varchar(9) NOT NULL DEFAULT 'eu', DROP PRIMARY KEY, ADD PRIMARY KEY (id, r)"),
        t.put(11, {"id": 1, "r": "us"}, id=1, a="z", n=1, r="us"),
        t.change(12, {"id": 3, "r": "eu"}, id=3, a="w", n=1, r="eu"),
        t.delete(13, {"id": 1, "r": "eu"}),
        t.put(14, {"id": 2, "r": "eu"}, id=2, a="new", n=1, r="eu"),
    ]


def _widened_by_a_tool(t: Keyed) -> list[Message]:
    """The same, where gh-ost changes a copy of the table and swaps it in; a clause of the copy is not understood."""
    table, made = t.log.table, Keyed(Log(f"_{t.log.table}_gho"))
    *before, widens, first, second, third, fourth = _widened(t)
    assert b"PRIMARY KEY" in widens
    return [
        *before,
        record(made.log.statement(8, f"CREATE TABLE {{}} LIKE {table}")),
        made.ddl(
            9, "ADD COLUMN r varchar(9) NOT NULL DEFAULT 'eu', WHATEVER, DROP PRIMARY KEY, ADD PRIMARY KEY (id, r)"
        ),
        record(t.log.statement(10, f"RENAME TABLE {table} TO _{table}_del, _{table}_gho TO {table}")),
        *(first, second, third, fourth),
    ]


def _other_column(t: Keyed) -> list[Message]:
    return [
        t.put(1, {"id": 1}, id=1, u="a"),
        t.put(2, {"id": 2}, id=2, u="b"),
        t.put(3, {"id": 3}, id=3, u="c"),
        t.change(4, {"id": 1}, id=1, u="A"),
        t.delete(5, {"id": 2}),
        t.put(11, {"u": "d"}, id=1, u="d"),
        t.delete(12, {"u": "A"}),
        t.change(13, {"u": "c"}, id=9, u="c"),
        t.put(14, {"u": "b"}, id=7, u="b"),
    ]


def _narrowed(t: Keyed) -> list[Message]:
    return [
        t.put(1, {"id": 1, "r": "eu"}, id=1, r="eu", a="x"),
        t.put(2, {"id": 1, "r": "us"}, id=1, r="us", a="y"),
        t.put(3, {"id": 2, "r": "eu"}, id=2, r="eu", a="x"),
        t.delete(4, {"id": 1, "r": "eu"}),
        t.change(11, {"id": 2}, id=2, r="as", a="z"),
        t.put(12, {"id": 3}, id=3, r="as", a="z"),
    ]


def _gained(t: Keyed) -> list[Message]:
    one, two = {"id": 1, "a": "x"}, {"id": 2, "a": "x"}
    plain = [t.log.put(1, **one), t.log.put(2, **one), t.log.put(3, **two), t.log.delete(4, **one)]
    return [
        *map(record, plain),
        record(t.log.put(5, two, id=2, a="y")),
        t.change(11, {"id": 1}, id=1, a="z"),
        t.put(12, {"id": 3}, id=3, a="z"),
    ]


CASES = [
    Case("widened", _widened, [(1, "z", 1, "us"), (2, "new", 1, "eu"), (3, "w", 1, "eu"), (4, "x", None, "eu")]),
    Case(
        "widened_by_a_tool",
        _widened_by_a_tool,
        [(1, "z", 1, "us"), (2, "new", 1, "eu"), (3, "w", 1, "eu"), (4, "x", None, "eu")],
    ),
    Case("other", _other_column, [(1, "d"), (7, "b"), (9, "c")]),
    Case("narrowed", _narrowed, [(1, "us", "y"), (2, "as", "z"), (3, "as", "z")]),
    Case("gained", _gained, [(1, "z"), (2, "y"), (3, "z")]),
]
_KINDS: dict[str, dict[str, Any]] = {"plain": {"feed": True}, "hist": {"history": True}, "soft": {"deletes": "soft"}}
_DELIVERIES = ("one_run", "in_order", "in_disorder", "backwards")
_USUALLY = {
    ("hist", "widened", "in_disorder"),
    ("plain", "other", "in_disorder"),
    ("plain", "gained", "in_disorder"),
}
"""What ``make test`` tries: cases in disorder, but for a narrower key. Rows that are erased come in order.

That a copy of a tool brings its key and its notes is in ``ddl/test_swaps.py``.
"""


def _tables() -> list[tuple[str, Case, str, str]]:
    return [
        (f"{kind}_{case.name}_{delivery}", case, kind, delivery)
        for case in CASES
        for kind in _KINDS
        for delivery in _DELIVERIES
        if (kind, case.name, delivery) in _USUALLY or (PROVING and (kind == "plain" or case.name != "gained"))
    ]


_ERASED = "rows_are_erased"


def _kinds() -> dict[str, Any]:
    return {f"shop.{name}": _KINDS[kind] for name, _, kind, _ in _tables()} | {f"shop.{_ERASED}": _KINDS["plain"]}


def _source(name: str, landing: Path, tables: dict[str, Any]) -> Source:
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields)


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """Every case in every delivery, as tables of one source in some runs; the runs' reports."""
    landing = tmp_path_factory.mktemp("cases")
    source = _source("key_changes", landing, _kinds())
    runs_by_table = {name: cut(case.steps(Keyed(Log(name))), delivery, _RUNS) for name, case, _, delivery in _tables()}
    runs_by_table[_ERASED] = cut(_other_column(Keyed(Log(_ERASED))), "in_order", _RUNS)
    reports = []
    for run in range(_RUNS):
        deliver(landing, f"run-{run}", [message for runs in runs_by_table.values() for message in runs[run]])
        reports.append(run_all(source))
    return reports


def _rows(lake: Lake, source: str, table: str) -> list[tuple[Any, ...]]:
    found = lake.load((source, table)).scan().to_arrow().drop_columns([POSITION, COMMITTED_AT])
    if DELETED in found.schema.names:
        found = found.filter(pc.invert(found[DELETED])).drop_columns([DELETED])
    names = sorted(found.schema.names, key=lambda name: (name != "id", name))
    return sorted((tuple(row[name] for name in names) for row in found.to_pylist()), key=repr)


@pytest.mark.more
def test_rows_are_those_of_the_source_in_any_delivery(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Each table holds the rows of the source after the last run, whatever the order and split of its log."""
    wrong = {}
    for name, case, _, _ in _tables():
        columns = sorted(case.rows, key=repr)
        if case.name == "narrowed":
            columns = sorted(((i, a, r) for i, r, a in case.rows), key=repr)
        if (found := _rows(lake, "key_changes", name)) != columns:
            wrong[name] = found
    assert wrong == {}
    assert cases[-1]["publish"].problems == ()


@pytest.mark.prove
def test_a_clause_of_a_copy_that_is_not_understood_is_told(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """The table is listed that the copy takes the name of, and no other."""
    noted = status_of(lake, "key_changes")["ddl_not_followed"]
    assert noted.keys() == {f"shop.{name}" for name, case, _, _ in _tables() if case.name == "widened_by_a_tool"}
    assert all("'WHATEVER'" in note for notes in noted.values() for note in notes)


def test_the_ledger_closes(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Every event of every run is accounted for, and none went to quarantine in the end."""
    for row in Ledger(lake, "key_changes").read("tables"):
        names = ("applied", "superseded", "duplicate", "held", "quarantined", "erased")
        assert row["events"] == sum(row[name] for name in names), row


def test_feeds_lead_to_the_rows(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """Whoever follows a table sees what a new key changes in it, as any other change."""
    fed = [Identifier("key_changes", name) for name, _, kind, _ in _tables() if kind == "plain"]
    assert {str(table): replayed(lake, table) for table in fed} == {str(table): published(lake, table) for table in fed}


LIVES = {
    "widened": {"id=1 r=us": 1, "id=2 r=eu": 3, "id=3 r=eu": 3, "id=1 r=eu": 2, "id=4 r=eu": 1},
    "widened_by_a_tool": {"id=1 r=us": 1, "id=2 r=eu": 3, "id=3 r=eu": 3, "id=1 r=eu": 2, "id=4 r=eu": 1},
    "other": {"u=d": 1, "u=b": 3, "u=c": 2, "u=A": 3},
    "narrowed": {"id=1": 1, "id=2": 2, "id=3": 1},
    "gained": {"id=1": 4, "id=2": 2, "id=3": 1},
}
"""Rows by the key that the table has in the end, and how many events each has under all of its keys."""


def test_a_row_is_explained_through_all_of_its_keys(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """All events of the row are shown, under each key that it had, and the values that stand are the published row."""
    wrong = {}
    for name, case, _, _ in _tables():
        for key, events in LIVES[case.name].items():
            life = explain(lake, f"key_changes.{name}", key.split())
            standing = {c: cell.new for each in life.chapters for c, cell in each.cells.items() if cell.stands} | {
                **life.key
            }
            alive = [row for row in life.rows.to_pylist() if not row.get(DELETED)]
            shown = [{c: str(value) for c, value in row.items() if not c.startswith("_cdc")} for row in alive]
            found = [] if life.chapters[-1].step.deletes else [{c: str(value) for c, value in standing.items()}]
            if (len(life.chapters), found) != (events, shown):
                wrong[name, key] = (len(life.chapters), found, shown)
    assert wrong == {}


def test_a_row_is_erased_under_all_of_its_keys(
    cases: list[dict[str, StageReport]], lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone under the key of each time; other rows that have the old key now stay; a dump brings none back."""
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "s" * 64)
    name = _ERASED
    table = f"key_changes.{name}"
    source = _source("key_changes", tmp_path, _kinds())
    with pytest.MonkeyPatch.context() as patched:
        die_at(patched, "tidemark.erasure.logs.recount", 1)
        with pytest.raises(SystemExit):
            run_stage("erase", source, table=table, key=("u=c",))
    report = run_stage("erase", source, table=table, key=("u=c",))
    assert (report.summary["nothing_found"], report.problems) == (1, ())
    certificate = json.loads(Path(str(report.summary["certificate"])).read_text())
    assert (certificate["names"], certificate["key_columns"], certificate["earlier_key_columns"]) == (
        [f"shop.{name}"],
        ["u"],
        [["id"]],
    )
    assert len(certificate["digests"]) == 2
    assert {row.state for row in Ledger(lake, "key_changes").erasures()} == {"done"}
    assert _rows(lake, "key_changes", name) == [(1, "d"), (7, "b")]
    assert replayed(lake, Identifier.parse(table)) == published(lake, Identifier.parse(table))
    log = Keyed(Log(name))
    again = [
        log.put(3, {"id": 3}, id=3, u="c"),
        log.change(13, {"u": "c"}, id=9, u="c"),
        log.put(14, {"u": "b"}, id=7, u="b"),
    ]
    deliver(tmp_path, "again", again)
    for stage in ("land", "normalize"):
        run_stage(stage, source)
    landed = lake.load(("changelog", "key_changes")).scan(row_filter=f"object = 'shop.{name}'").to_arrow().to_pylist()
    newest = max(row["batch"] for row in landed)
    assert sorted(row["kind"] for row in landed if row["batch"] == newest) == ["change", "erased", "erased"]
    gained = next(table for table, case, _, _ in _tables() if case.name == "gained")
    with pytest.raises(ConfigurationError, match="had no key for a time"):
        run_stage("erase", source, table=f"key_changes.{gained}", key=("id=1",))


def _loaded(t: Keyed, at: int, key: dict[str, Any], /, **row: Any) -> Message:
    """A row of a complete initial load that began at a place."""
    event = json.loads(t.log.put(at, **row))
    event["op"] = "r"
    event["source"]["snapshot"] = "true"
    return record(json.dumps(event).encode(), key=key)


_UNKNOWN = how_many(usually="tw", proving="tuvw")
"""Tables whose new key is not known of all rows; ``make prove`` has those too that lose theirs."""


def _told_of(tables: Mapping[str, list[Message]]) -> list[Message]:
    """The messages of the tables that are tried."""
    return [message for name, messages in tables.items() if name in _UNKNOWN for message in messages]


@pytest.mark.more
def test_a_key_that_is_not_known_of_rows_from_before_waits_for_a_load(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """The table stops and says what helps: a load, another key in the source file, or none; each brings it on."""
    t, u, v, w = (Keyed(Log(name)) for name in "tuvw")
    given: dict[str, Any] = {"shop.v": {"key": ["id"]}, "shop.w": {"key": ["id"]}}
    source = _source("unknown_keys", tmp_path, given)
    deliver(tmp_path, "1", _told_of({
        "t": [_loaded(t, 1, {"id": 1}, id=1, a="x"), t.put(2, {"id": 2}, id=2, a="x")],
        "u": [_loaded(u, 1, {"id": 1}, id=1, a="x"), u.put(2, {"id": 2}, id=2, a="x")],
        "v": [_loaded(v, 1, {"id": 1}, id=1, a="x")],
        "w": [record(w.log.put(1, id=1, a="x"))],
    }))  # fmt: skip
    assert [report.problems for report in run_all(source).values()] == [()] * 5
    widened = "ADD COLUMN r varchar(9) NOT NULL DEFAULT 'eu', DROP PRIMARY KEY, ADD PRIMARY KEY (id, r)"
    deliver(tmp_path, "2", _told_of({
        "t": [t.put(11, {"id": 1, "r": "us"}, id=1, a="z", r="us"), t.delete(5, {"id": 2})],
        "u": [record(u.log.put(11, {"id": 1, "a": "x"}, id=1, a="y"))],
        "v": [v.put(11, {"id": 1, "a": "y"}, id=1, a="y")],
        "w": [w.ddl(10, widened), record(w.log.put(11, id=1, a="z", r="us"))],
    }))  # fmt: skip
    helps = {
        "t": "1 have null in a part of the new key",
        "u": "later ones name none",
        "v": "Take `key:` out of the source file",
        "w": "Write `key: [id, r]`, and rebuild",
    }
    problems = sorted(run_all(source)["compact"].problems)
    assert [each.partition(" ")[0] for each in problems] == [f"shop.{name}:" for name in _UNKNOWN]
    assert all(helps[name] in problem for name, problem in zip(_UNKNOWN, problems, strict=True)), problems
    assert _rows(lake, "unknown_keys", "t") == [(1, "x"), (2, "x")]
    deliver(tmp_path, "3", [
        _loaded(t, 50, {"id": 1, "r": "eu"}, id=1, a="x", r="eu"),
        _loaded(t, 50, {"id": 1, "r": "us"}, id=1, a="z", r="us"),
    ])  # fmt: skip
    mended = _source("unknown_keys", tmp_path, {"shop.u": {"key": []}, "shop.w": {"key": ["id", "r"]}})
    run_stage("rebuild", mended, table="shop.w")
    assert run_all(mended)["compact"].problems == ()
    assert _rows(lake, "unknown_keys", "t") == [(1, "x", "eu"), (1, "z", "us")]
    assert _rows(lake, "unknown_keys", "w") == [(1, "x", "eu"), (1, "z", "us")]
    if PROVING:
        assert _rows(lake, "unknown_keys", "u") == [(1, "y"), (2, "x")]
        assert _rows(lake, "unknown_keys", "v") == [(1, "x"), (1, "y")]
