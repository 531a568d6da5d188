"""``where`` and ``derive``: readers see what the expressions make of the rows, whatever the delivery and its order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.feeds import published, replayed
from support.histories import Table, deliver, timed
from support.reference import Change
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.ledger.ledger import Ledger
from tidemark.queries import sql
from tidemark.queries.explain import explain
from tidemark.queries.row_life_text import as_text
from tidemark.sources.model import Source
from tidemark.stages import restore

pytestmark = [pytest.mark.spark, pytest.mark.more]

EDGE = Table("edge")
MADE = Table("made")
BAG = Table("bag", key=())
SHARDS = (Table("sold_1"), Table("sold_2"))
ENTRIES: Mapping[str, Mapping[str, Any]] = {
    "edge": {"where": "note = 'in'", "history": True, "feed": True},
    "made": {"derive": {"full": "name || '/' || note", "region": "'eu'"}, "deletes": "soft", "history": True},
    "bag": {"key": [], "where": "name = 'a'", "derive": {"big": "id > 1"}, "feed": True},
    r"sold_(\d)": {"target": "sold", "add": {"shard": "$1"}, "where": "shard = '1' or note = 'in'"},
}
EMPTIED = how_many(usually=(), proving=(SHARDS[0].truncate(81), SHARDS[1].truncate(39)))
"""A TRUNCATE of one shard, and a late one of the other. ``make test`` has the first in ``test_shards.py``."""
RUNS: Sequence[Sequence[Change]] = (
    [
        EDGE.insert(10, 1, "a", "in"), EDGE.insert(11, 2, "b", "out"), EDGE.insert(12, 3, "c", None),
        EDGE.insert(13, 4, "d", "in"), EDGE.insert(14, 5, "e", "in"), EDGE.insert(15, 6, "f", "in"),
        MADE.insert(20, 1, "a", "b"), MADE.insert(21, 2, "c", "d"), MADE.insert(22, 3, "e", "f"),
        BAG.insert(30, 1, "a", "x"), BAG.insert(31, 1, "a", "x"), BAG.insert(32, 2, "b", "x"),
        BAG.insert(33, 3, "a", None),
        SHARDS[0].insert(40, 1, "a", "out"), SHARDS[1].insert(41, 2, "b", "out"), SHARDS[1].insert(42, 3, "c", "in"),
    ],
    [
        EDGE.update(50, 1, "a2", "out"),           # leaves
        EDGE.update(51, 2, "b2", ...),             # stays outside: the filter's column is not in the image
        EDGE.update(52, 4, ..., "out"), EDGE.update(53, 4, "d2", ...), EDGE.update(54, 4, ..., "in"),  # comes back
        EDGE.update(56, 7, "f", "out", was=(6,)),  # leaves under another key
        EDGE.delete(57, 2, "b2", "out"),           # goes, unseen
        MADE.update(60, 1, "a2", ...), MADE.delete(61, 2, "c", "d"),
        BAG.delete(70, 1, "a", "x"), BAG.update(71, 3, "b", None)._replace(before={"id": 3, "name": "a", "note": None}),
        SHARDS[1].update(80, 2, "b", "in"), *EMPTIED,
    ],
    [
        EDGE.update(49, 1, ..., "in"),             # late: the row is outside since
        EDGE.update(55, 5, "late", "out"), EDGE.update(58, 5, "e3", ...),
        EDGE.update(59, 3, ..., "in"),             # enters by a part of it
        MADE.update(62, 3, ..., "g"),
        SHARDS[0].insert(90, 9, "i", "out"),
    ],
)  # fmt: skip
_LEFT_EARLY = 1
"""Of the changes of ``RUNS[1]``, how many come in the first of two runs of ``make test``: a row has left then, which a
late event finds outside."""
DELIVERED = how_many(
    usually=([*RUNS[0], *RUNS[1][:_LEFT_EARLY]], [*RUNS[1][_LEFT_EARLY:], *RUNS[2]]),
    proving=tuple(RUNS),
)
CHANGED: Mapping[str, Mapping[str, Any]] = {
    "edge": {"where": "note = 'out'", "history": True, "feed": True},
    "made": {"deletes": "soft", "history": True},
    "bag": {"key": [], "feed": True},
}
"""Another filter, no derived columns, no filter."""

LAST = (EDGE.insert(95, 8, "h", "in"), MADE.insert(96, 4, "g", "h"), BAG.insert(97, 4, "z", "z"))


def _source(landing: Path, **changed: Mapping[str, Any]) -> Source:
    columns = {"id": "long", "name": "string", "note": "string"}
    entries = {**ENTRIES, **changed}
    tables = {f"shop.{name}": {"key": ["id"], "columns": columns, **entry} for name, entry in entries.items()}
    fields = {"source": "chosen", "format": "debezium_json", "landing": str(landing / "*"), "max_deletes": 1}
    return Source.model_validate({**fields, "tables": tables})


def _rows(lake: Lake, table: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = lake.load(("chosen", table)).scan().to_arrow().to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)


def _versions(lake: Lake, table: str, key: int) -> list[tuple[Any, ...]]:
    rows = lake.load(history(Identifier("chosen", table))).scan().to_arrow().to_pylist()
    return sorted((row["name"], row["note"], row["is_current"]) for row in rows if row["id"] == key)


class Seen(NamedTuple):
    """What was to be seen, step by step: tests run in any order."""

    problems: list[str]
    rows: dict[str, list[tuple[Any, ...]]]
    versions: dict[int, list[tuple[Any, ...]]]
    made: set[tuple[Any, ...]]
    """Derived cells of the versions of a table."""
    fed: dict[str, bool]
    explained: dict[int, str]
    changes: list[dict[str, Any]]
    ledger: list[tuple[Any, ...]]
    """Rows before and after, and deleted ones, of each cut."""
    changed: dict[str, list[tuple[Any, ...]]]
    """Rows by other options. In ``make prove`` only, as the three below."""
    refed: dict[str, bool]
    restored: list[tuple[Any, ...]]
    again: list[tuple[Any, ...]]
    """Rows after the run that follows the restore, by the options of the beginning."""


TABLES = {
    "edge": ("id", "name", "note"),
    "made": ("id", "full", "region", "_cdc_deleted"),
    "bag": ("id", "note", "big"),
    "sold": ("id", "shard", "note"),
}


def _fed(lake: Lake) -> dict[str, bool]:
    tables = {name: Identifier("chosen", name) for name in ("edge", "bag")}
    return {name: replayed(lake, table) == published(lake, table) for name, table in tables.items()}


def _run(landing: Path, number: int, changes: Iterable[Change], **changed: Mapping[str, Any]) -> list[str]:
    deliver(landing, f"{number}", [timed(change, _minute(change)) for change in changes])
    reports = run_all(_source(landing, **changed))
    return [problem for report in reports.values() for problem in report.problems]


def _minute(change: Change) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=int(change.position[2]))


@pytest.fixture(scope="module")
def seen(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Two runs; in ``make prove`` three, then one with other options, and a restore with the options of before."""
    landing = tmp_path_factory.mktemp("chosen")
    problems = [problem for number, changes in enumerate(DELIVERED) for problem in _run(landing, number, changes)]
    recorded = [row for row in Ledger(lake, "chosen").tables() if row.object == "shop.edge"]
    made = lake.load(history(Identifier("chosen", "made"))).scan().to_arrow().to_pylist()
    first = {
        "rows": {table: _rows(lake, table, *columns) for table, columns in TABLES.items()},
        "versions": {key: _versions(lake, "edge", key) for key in range(1, 8)},
        "made": {(row["id"], row["full"], row["region"]) for row in made},
        "fed": _fed(lake),
        "explained": {key: list(as_text(explain(lake, "chosen.edge", [f"id={key}"])))[-1] for key in (1, 2)},
        "changes": sql.query(lake, "SELECT after FROM chosen.made__changes").to_pylist(),
        "ledger": [(row.rows_before, row.rows_after, row.deleted) for row in sorted(recorded, key=lambda row: row.cut)],
    }
    changed, refed = dict[str, list[tuple[Any, ...]]](), dict[str, bool]()
    restored, again = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    if PROVING:
        problems += _run(landing, 3, LAST, **CHANGED)
        changed = {table: _rows(lake, table, "id", "name", "note") for table in CHANGED}
        changed["columns"] = [tuple(lake.load(("chosen", "made")).schema().column_names)]
        refed = _fed(lake)
        restore.run(_source(landing), 3)
        restored = _rows(lake, "edge", *TABLES["edge"])
        problems += _run(landing, 4, [EDGE.insert(98, 9, "i", "in")])
        again = _rows(lake, "edge", *TABLES["edge"])
    assert_ledger_closes(lake, "chosen")
    return Seen(problems=problems, **first, changed=changed, refed=refed, restored=restored, again=again)


def test_rows_are_judged_by_their_last_state(seen: Seen) -> None:
    """Whole and partial updates, late ones, deletes, changed keys: inside or outside. A TRUNCATE in ``make prove``."""
    assert seen.problems == []
    assert seen.rows == {
        "edge": [(3, "c", "in"), (4, "d2", "in")],
        "made": [(1, "a2/b", "eu", False), (2, "c/d", "eu", True), (3, "e/g", "eu", False)],
        "bag": [(1, "x", False)],
        "sold": [*([] if EMPTIED else [(1, "1", "out")]), (2, "2", "in"), (3, "2", "in"), (9, "1", "out")],
    }
    assert seen.fed == {"edge": True, "bag": True}


def test_a_version_ends_where_its_row_leaves_the_filter(seen: Seen) -> None:
    """What a row was while it was outside is in no history; late events split what is inside alone."""
    assert seen.versions == {
        1: [("a", "in", False), ("a", "in", False)],
        2: [],
        3: [("c", "in", True)],
        4: [("d", "in", False), ("d2", "in", True)],
        5: [("e", "in", False)],
        6: [("f", "in", False)],
        7: [],
    }
    assert seen.made == {(1, "a/b", "eu"), (1, "a2/b", "eu"), (2, "c/d", "eu"), (3, "e/f", "eu"), (3, "e/g", "eu")}


def test_rows_that_leave_are_counted_as_deleted(seen: Seen) -> None:
    """The limit of deletes is about what readers lose. The events of rows outside are counted as others."""
    assert seen.ledger == how_many(usually=[(0, 3, 0), (3, 2, 2)], proving=[(0, 4, 0), (4, 2, 2), (2, 2, 1)])


def test_explain_and_changes_tell_of_all_rows(seen: Seen) -> None:
    """A row outside has a life, and `explain` says why nothing is published; derived columns are in no event."""
    assert seen.explained == {
        1: "published rows: 0 (`where` leaves out: note = 'in')",
        2: "published rows: 0",
    }
    assert len(seen.changes) == sum(change.table == "made" for changes in RUNS for change in changes)
    assert all(row["after"] is None or set(row["after"]) == {"id", "name", "note"} for row in seen.changes)


@pytest.mark.prove
def test_other_expressions_make_all_rows_anew(seen: Seen) -> None:
    """Another filter, no filter, no derived columns, and back by a restore and the next run.

    ``make test`` has a table that is rebuilt for a changed source file in ``test_versions.py``.
    """
    expected = {
        "edge": [(1, "a2", "out"), (5, "e3", "out"), (7, "f", "out")],
        "made": [(1, "a2", "b"), (2, "c", "d"), (3, "e", "g"), (4, "g", "h")],
        "bag": [(1, "a", "x"), (2, "b", "x"), (3, "b", None), (4, "z", "z")],
    }
    assert {name: seen.changed[name] for name in CHANGED} == expected
    assert "full" not in seen.changed["columns"][0]
    assert seen.refed == {"edge": True, "bag": True}
    assert seen.restored == seen.rows["edge"]
    assert seen.again == [(3, "c", "in"), (4, "d2", "in"), (8, "h", "in"), (9, "i", "in")]
