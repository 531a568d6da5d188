"""The life of a row where more than its own events decide: transactions, soft deletes, DDL, and rows without a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.bags import COLUMNS as BAG_COLUMNS
from support.bags import Bag
from support.debezium_log import Log
from support.histories import COLUMNS, Table, deliver, message
from support.rounds import PROVING
from support.running import run_all
from support.transactional import change, transaction, written
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.queries.explain import Life, explain
from tidemark.queries.row_life import Chapter, Outcome
from tidemark.sources.model import Source
from tidemark.tables.schemas import DELETED, POSITION

pytestmark = pytest.mark.spark
SOFT, BAG, RENAMED, IGNORED = Table("soft"), Bag("bag"), Log("renamed"), Log("ignored")


def _told(chapters: Sequence[Chapter]) -> list[tuple[str, str, str]]:
    return [(chapter.step.operation, str(chapter.outcome), chapter.detail) for chapter in chapters]


def _row(life: Life) -> dict[str, Any]:
    (row,) = life.rows.to_pylist()
    return row


def _standing(life: Life) -> dict[str, object]:
    cells = [(name, cell) for chapter in life.chapters for name, cell in chapter.cells.items() if cell.stands]
    assert len({name for name, _ in cells}) == len(cells), "two setters of one cell"
    return {name: cell.new for name, cell in cells if cell.new is not None}


def _ddl(log: Log) -> list[bytes]:
    """Rows under names that change: one is renamed, one is dropped, one is added with a default; then a late event."""
    return [
        log.statement(20, "ALTER TABLE {} RENAME COLUMN a TO b"),
        log.statement(21, "ALTER TABLE {} DROP COLUMN gone"),
        log.statement(22, "ALTER TABLE {} ADD COLUMN c VARCHAR(9) DEFAULT 'd'"),
        log.put(30, {"id": 1, "b": "x", "c": "d"}, id=1, b="z", c="e"),
        log.put(9, {"id": 2, "a": "y", "gone": "g"}, id=2, a="late", gone="h"),
    ]


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Tables of one source, published in two runs."""
    landing = tmp_path_factory.mktemp("beside")
    tables = {
        "shop.soft": {"key": ["id"], "columns": COLUMNS, "deletes": "soft"},
        "shop.bag": {"key": [], "columns": BAG_COLUMNS},
        "shop.ignored": {"key": ["id"], "schema": "ignore"},
        "shop.*": {"key": ["id"]},
    }
    fields = {"source": "beside", "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    source = Source.model_validate({**fields, "max_deletes": 1})
    emptied = Log("emptied")
    put = [
        line
        for log in (RENAMED, IGNORED)
        for line in (log.put(1, id=1, a="x", gone="g"), log.put(2, id=2, a="y", gone="g"))
    ]
    changes = [
        SOFT.insert(1, 1, "a", "x"), SOFT.insert(2, 2, "b", "y"),
        SOFT.insert(3, 3, "c", "z"), SOFT.delete(4, 3, "c", "z"),
        BAG.insert(1, "a", 1), BAG.insert(2, "a", 1), BAG.insert(3, "b", 2),
    ]  # fmt: skip
    deliver(landing, "a", [*map(message, changes), *put, emptied.put(1, id=1, a="x"), emptied.put(2, id=2, a="y")])
    run_all(source)
    changes = [
        SOFT.delete(20, 1, "old", ...), SOFT.update(21, 12, "b", "y", was=(2,)), SOFT.insert(22, 3, "d", "w"),
        BAG.delete(20, "a", 1), BAG.update(21, ("b", 2), ("a", 1)),
    ]  # fmt: skip
    late = [emptied.statement(10, "TRUNCATE TABLE {}"), emptied.put(11, id=1, a="new"), emptied.put(5, id=2, a="late")]
    deliver(landing, "b", [*map(message, changes), *_ddl(RENAMED), *_ddl(IGNORED), *late])
    run_all(source)
    return source


def test_a_softly_deleted_row_is_deleted_and_there(shop: Source, lake: Lake) -> None:
    """It shows what its delete saw; a row that came again after its delete shows none of that."""
    deleted = explain(lake, "beside.soft", ["id=1"])
    assert _told(deleted.chapters) == [
        ("INSERT", "stands", "still standing: note"),
        ("DELETE", "stands", "the row is deleted, and stays marked"),
    ]
    row = _row(deleted)
    assert (row[DELETED], row["name"], row["note"]) == (True, "old", "x")
    assert _standing(deleted) == {"name": "old", "note": "x"}
    assert not {DELETED, POSITION} & {name for chapter in deleted.chapters for name in chapter.cells}

    moved = explain(lake, "beside.soft", ["id=2"])
    assert _told(moved.chapters)[-1] == ("UPDATE", "stands", "the row went to the other key")
    assert (_row(moved)[DELETED], _standing(moved)) == (True, {"name": "b", "note": "y"})

    again = explain(lake, "beside.soft", ["id=3"])
    assert [chapter.outcome for chapter in again.chapters] == ["superseded", "superseded", "stands"]
    assert (_row(again)[DELETED], _standing(again)) == (False, {"name": "d", "note": "w"})


@pytest.mark.parametrize(
    ("table", "id_", "cells"),
    [
        ("renamed", 1, {"b": "z", "c": "e"}),
        ("renamed", 2, {"b": "late", "c": "d"}),
        ("ignored", 1, {}),
        ("ignored", 2, {"a": "late", "gone": "h"}),
    ],
)
def test_columns_have_the_names_of_today(table: str, id_: int, cells: dict[str, str], shop: Source, lake: Lake) -> None:
    """An event's image is read with the names that were valid at its position; where DDL is ignored, with its own."""
    life = explain(lake, f"beside.{table}", [f"id={id_}"])
    assert len(life.chapters) == 2
    assert {name for chapter in life.chapters for name in chapter.cells} <= set(life.rows.column_names)
    assert _standing(life) == cells
    row = _row(life)
    assert {name: row[name] for name in cells} == cells


def test_a_statement_that_empties_a_table_is_a_truncate(shop: Source, lake: Lake) -> None:
    """DDL leaves no change event: it is shown with the file that has the statement."""
    first, truncate, new = explain(lake, "beside.emptied", ["id=1"]).chapters
    assert first.detail == "below the TRUNCATE, event 2"
    assert (truncate.step.operation, truncate.step.file.endswith("b.json"), new.outcome) == ("TRUNCATE", True, "stands")
    gone = explain(lake, "beside.emptied", ["id=2"])
    assert [chapter.outcome for chapter in gone.chapters] == ["superseded", "superseded", "stands"]
    assert gone.rows.num_rows == 0


def test_equal_rows_of_a_published_bag(shop: Source, lake: Lake) -> None:
    """Those that stand are the published ones, by position; an update takes one away and adds another."""
    life = explain(lake, "beside.bag", ["name=a", "size=1"])
    assert _told(life.chapters) == [
        ("INSERT", "superseded", "an equal row was taken away since"),
        ("INSERT", "stands", "a row that it added is published"),
        ("DELETE", "stands", "it takes away one equal row, if there is one"),
        ("UPDATE", "stands", "a row that it added is published"),
    ]
    added = {chapter.step.position for chapter in life.chapters if chapter.outcome == Outcome.STANDS and chapter.cells}
    assert {row[POSITION] for row in life.rows.to_pylist()} == added
    assert life.rows.num_rows == 2
    assert _told(explain(lake, "beside.bag", ["name=b"]).chapters) == [
        ("INSERT", "superseded", "an equal row was taken away since"),
        ("UPDATE", "stands", "it takes away one equal row, if there is one"),
    ]


@pytest.mark.more
def test_events_of_open_and_undone_transactions(spark: SparkSession, lake: Lake, tmp_path: Any) -> None:
    """They are held, or rolled back, and no part of the row; once the end lands they are (in ``make prove``).

    In ``make test``, ``test_features_together.py`` asks for rows of transactions that ended in a later run.
    """
    tables = {"shop.one": {"key": ["id"]}}
    fields = {"source": "half_told", "format": "dts_avro", "landing": str(tmp_path / "*"), "tables": tables}
    source = Source.model_validate(fields)
    one = transaction(1, change("one", 1, Operation.INSERT, 1, "a"))
    undone = transaction(2, change("one", 2, Operation.UPDATE, 1, "b"), end="ROLLBACK")
    open_ = transaction(3, change("one", 3, Operation.UPDATE, 1, "c"))
    deliver(tmp_path, "a", written("dts_avro", [*one, *undone, *open_[:-1]]))
    run_all(source)
    life = explain(lake, "half_told.one", ["id=1"])
    assert _told(life.chapters) == [
        ("INSERT", "stands", "all that it wrote stands"),
        ("UPDATE", "rolled_back", "its transaction was rolled back"),
        ("UPDATE", "held", "its transaction is open: the end has not landed"),
    ]
    assert (_standing(life), _row(life)["name"]) == ({"name": "a"}, "a")
    if not PROVING:
        return
    deliver(tmp_path, "b", written("dts_avro", open_[-1:]))
    run_all(source)
    life = explain(lake, "half_told.one", ["id=1"])
    assert [chapter.outcome for chapter in life.chapters] == ["superseded", "rolled_back", "stands"]
    assert _standing(life) == {"name": "c"}
