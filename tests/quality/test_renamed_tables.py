"""Tables that are renamed at the source: rows that may be those of another table are not published unasked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log
from support.histories import deliver
from support.running import run_all
from tidemark.ddl.table_renames import TableRenames
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import ContentRow, CutRow, StatementRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.pipeline import run_stage
from tidemark.positions import encode_position
from tidemark.quality.doubt import Doubt
from tidemark.quality.renamed_tables import RENAMED, Followed, doubts_about_renames
from tidemark.quality.unplaced_loads import UNPLACED_LOAD
from tidemark.sources.model import Source
from tidemark.stages.publish import run as publish

SWAP = "RENAME TABLE a TO tmp, b TO a, tmp TO b"
UNKNOWN = "RENAME TABLE a TO tmp, x TO a, tmp TO x"
_numbers = count(1)


def _stated(statement: str, at: int, *, batch: int = 2, dialect: str = "mysql") -> StatementRow:
    place = encode_position((1, at))
    return StatementRow(
        batch=batch, database="shop", schema=None, name=None, position=place, dialect=dialect, statement=statement
    )


@pytest.mark.parametrize(
    ("statement", "dialect", "concerned"),
    [
        (SWAP, "mysql", ["shop.a", "shop.b"]),
        ("RENAME TABLE a TO b", "mysql", ["shop.a", "shop.b"]),
        ("RENAME TABLE a TO elsewhere", "mysql", ["shop.a"]),
        ("RENAME TABLE new_b TO b", "mysql", ["shop.b"]),
        ("RENAME TABLE a TO other, b TO another", "mysql", ["shop.a", "shop.b"]),
        ("RENAME TABLE `shop`.`a` TO `archive`.`a`", "mysql", ["shop.a"]),
        ("ALTER TABLE a RENAME TO b", "postgres", ["shop.a", "shop.b"]),
        ("ALTER TABLE a RENAME b", "mysql", ["shop.a", "shop.b"]),
        ("RENAME TABLE a TO _a_del, _a_gho TO a", "mysql", []),
        ("RENAME TABLE A TO _A_old, _A_new TO A", "mysql", []),
        ("RENAME TABLE elsewhere TO other", "mysql", []),
        ("ALTER TABLE a RENAME COLUMN b TO a", "mysql", []),
        ("DROP TABLE a", "mysql", []),
    ],
)
def test_which_tables_a_rename_concerns(statement: str, dialect: str, concerned: list[str]) -> None:
    """The table that was renamed and the one whose name it takes; none if a schema-change tool swaps its copy in."""
    found = TableRenames([_stated(statement, 10, dialect=dialect)], ["shop.a", "shop.b"]).by_table()
    assert sorted(found) == concerned


def _doubted(lake: Lake, *statements: StatementRow, **given: Any) -> set[str]:
    """The tables whose renames are in doubt; see ``_doubts``."""
    found = _doubts(lake, *statements, **given)
    assert all(doubt.invariant == RENAMED for doubts in found.values() for doubt in doubts)
    return set(found)


def _doubts(
    lake: Lake,
    *statements: StatementRow,
    published: dict[str, int] | None = None,
    followed: Sequence[StatementRow] = (),
    before: Sequence[StatementRow] = (),
    spans: Sequence[SpanRow] = (),
    contents: Sequence[ContentRow] = (),
) -> dict[str, list[Doubt]]:
    """The doubts in a cut that moves a and b to batch 3.

    ``published`` is the last batch of the cut that moved a table before; ``followed`` are those that are followed,
    ``before`` those that were when the newest cut was published.
    """
    ledger = Ledger(lake, f"renamed_{next(_numbers)}")
    ledger.replace(StatementRow, list(statements))
    for number, (name, batch) in enumerate((published or {}).items(), start=1):
        ledger.replace(TableRow, [TableRow(cut=number, object=name, state=TableState.PUBLISHED, batch=batch)])
        ledger.replace(CutRow, [CutRow(cut=number, state=CutState.PUBLISHED, batch=batch)])
    rows = [TableRow(cut=9, object=name, state=TableState.CANDIDATE, batch=3) for name in ("shop.a", "shop.b")]
    if spans:
        ledger.replace(SpanRow, list(spans))
    if contents:
        ledger.replace(ContentRow, list(contents))
    known = Followed(*({(row.position, row.statement) for row in each} for each in (followed, before)))
    return doubts_about_renames(ledger, rows, batch=3, folded={}, followed=known)


def test_a_rename_is_doubted_until_a_cut_with_it_is_published(lake: Lake) -> None:
    """Of each table apart: one that the cut with the statement did not move is doubted when its rows come."""
    swap, both = _stated(SWAP, 10), {"shop.a", "shop.b"}
    assert _doubted(lake, swap) == both
    assert _doubted(lake, swap, published={"shop.a": 1, "shop.b": 1}) == both
    assert _doubted(lake, swap, published={"shop.a": 1, "shop.b": 2}) == {"shop.a"}
    assert _doubted(lake, swap, published={"shop.a": 2, "shop.b": 2}) == set()
    assert _doubted(lake, _stated(SWAP, 10, batch=4)) == set()  # not known to the cut yet
    assert _doubted(lake, swap, followed=[swap]) == set()


def test_a_rename_that_is_followed_no_more_is_doubted_again(lake: Lake) -> None:
    """What was published long ago had the rows under other names."""
    swap, at = _stated(SWAP, 10), {"shop.a": 2, "shop.b": 2}
    assert _doubted(lake, swap, published=at, before=[swap]) == {"shop.a", "shop.b"}
    assert _doubted(lake, swap, published=at, followed=[swap], before=[swap]) == set()


def test_rows_that_were_loaded_after_a_rename_are_doubted(lake: Lake) -> None:
    """They rank below it, as rows of the table that had the name before; those of the first load do belong to it."""
    then = datetime(2026, 1, 1, tzinfo=UTC)
    swap = msgspec.structs.replace(_stated(SWAP, 10), at=then)
    early, late = (then + timedelta(hours=hours) for hours in (-1, 1))
    loaded = SpanRow(batch=1, object="shop.a", newest="", unplaced=7, unplaced_last=early)
    again = SpanRow(batch=3, object="shop.b", newest="", unplaced=5, unplaced_last=late)
    found = _doubts(lake, swap, followed=[swap], spans=[loaded, again])
    assert {name: [(each.invariant, each.value) for each in doubts] for name, doubts in found.items()} == {
        "shop.b": [(UNPLACED_LOAD, 5)]
    }
    assert _doubts(lake, swap, followed=[swap], spans=[loaded, again], published={"shop.b": 3}) == {}


def test_a_table_that_was_emptied_after_the_rename_is_as_the_source_has_it(lake: Lake) -> None:
    """What came before is gone; a statement before the rename settles nothing."""
    assert _doubted(lake, _stated(SWAP, 10), _stated("TRUNCATE TABLE b", 11, batch=3)) == {"shop.a"}
    assert _doubted(lake, _stated(SWAP, 10), _stated("DROP TABLE b", 9)) == {"shop.a", "shop.b"}


def test_a_swap_with_a_copy_that_never_had_a_row_is_doubted(lake: Lake) -> None:
    """The table had rows before, and the copy may have been empty: no tool need have filled it."""
    swap = _stated("RENAME TABLE a TO _a_old, _a_new TO a", 10)
    before, behind = (
        SpanRow(batch=1, object="shop.a", newest=encode_position((1, at)), oldest=encode_position((1, at)))
        for at in (9, 11)
    )
    [doubt] = _doubts(lake, swap, spans=[before])["shop.a"]
    assert (doubt.invariant, "No event of shop._a_new came for it" in doubt.reason) == (RENAMED, True)
    assert _doubted(lake, swap, spans=[behind]) == set()
    assert _doubted(lake, swap, spans=[before], published={"shop.a": 2}) == set()
    assert _doubted(lake, swap, _stated("TRUNCATE TABLE a", 12), spans=[before]) == set()


def test_rows_of_an_earlier_copy_say_nothing_of_the_next_one(lake: Lake) -> None:
    """Each swap is asked for events of its own copy: a tool filled the first one, and a person may have made this."""
    first, second = (_stated("RENAME TABLE a TO _a_old, _a_new TO a", at) for at in (10, 20))
    events = {"shop.a": (1, 19), "shop._a_new": (8, 9)}
    before, of_first = (
        SpanRow(batch=1, object=name, oldest=encode_position((1, oldest)), newest=encode_position((1, newest)))
        for name, (oldest, newest) in events.items()
    )
    of_second = msgspec.structs.replace(
        of_first, batch=2, oldest=encode_position((1, 18)), newest=encode_position((1, 19))
    )
    content = ContentRow(
        batch=1, object="shop._a_new", database="shop", schema=None, name="_a_new", operation="INSERT", shape="s",
        partial=False, key=None, half=False, events=2,
    )  # fmt: skip

    def doubted(*statements: StatementRow, spans: Sequence[SpanRow]) -> list[int]:
        found = _doubts(lake, *statements, spans=spans, contents=[content])
        return [doubt.value for doubt in found.get("shop.a", ())]

    assert doubted(first, spans=[before, of_first]) == []
    assert doubted(first, second, spans=[before, of_first]) == [1]
    assert doubted(first, second, spans=[before, of_first, of_second]) == []
    dropped = _stated("DROP TABLE IF EXISTS _a_new", 12)
    assert doubted(dropped, second, spans=[before, of_first]) == [1]


@pytest.mark.spark
def test_a_rename_that_is_not_followed_is_held(source: Callable[..., Source], spark: SparkSession, lake: Lake) -> None:
    """One of its tables has no events. The reason has the statement and what to do; a person may approve it."""
    shop = source("debezium_json", tables={"shop.*": {"key": ["id"], "columns": {"id": "long", "v": "string"}}})
    a, b, folder = Log("a"), Log("b"), Path(shop.landing).parent
    deliver(folder, "0", [a.put(1, id=1, v="of one"), b.put(2, id=2, v="of the other")])
    assert run_all(shop)["publish"].problems == ()

    def rows(name: str) -> list[int]:
        return sorted(lake.load((shop.source, name)).scan().to_arrow().column("id").to_pylist())

    deliver(folder, "1", [a.statement(10, UNKNOWN), a.put(11, id=2, v="now"), b.put(12, id=1, v="now")])
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, shop, None, None)
    problems = "\n".join(run_stage("check", shop, None, None).problems)
    assert f"shop.a: it was renamed, or got the name of another table: {UNKNOWN}" in problems
    assert "shop.b" not in problems
    with pytest.raises(ExpectationError, match="--approve 2"):
        publish(shop)
    assert (rows("a"), rows("b")) == ([1], [2])

    publish(shop, approve=2)
    deliver(folder, "2", [a.put(13, id=3, v="new")])
    assert run_all(shop)["publish"].problems == ()
    assert rows("a") == [1, 2, 3]
