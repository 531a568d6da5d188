"""Statements about a tool's copy that cannot be compared with the swap of the copy: they hold the cut."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec
import pytest

from tidemark.compaction.comparable_places import ComparablePlaces
from tidemark.compaction.unplaced_copies import doubts_about_copies, names_apart, unplaced_changes
from tidemark.compaction.unplaced_statements import UNPLACED_STATEMENT, Moved
from tidemark.ddl.lineages import Lineages
from tidemark.ddl.table_renames import TableRenames
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.offset_rows import OffsetsRow
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import BatchRow, ContentRow, CutRow, StatementRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.ledger.tally import LOAD
from tidemark.positions import encode_position
from tidemark.sources.model import Source

T, COPY, BY_HAND = "shop.t", "shop._t_gho", "shop._t_new"
AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SWAP = "rename table t to _t_del, _t_gho to t"
CHANGE, ADD = "alter table _t_gho change email mail varchar(80)", "alter table _t_gho add n int default 5"
TOPICS = ("copies/0", "erp/0")
_numbers = count(1)
MessagePlace = Sequence[int | str]


def _stated(text: str, place: MessagePlace, at: datetime | None = AT, **fields: Any) -> StatementRow:
    named = {"database": "shop", "schema": None, "name": "_t_gho", "dialect": "mysql", "batch": 1} | fields
    return StatementRow(position=encode_position(place), statement=text, at=at, **named)


def _swap(place: MessagePlace, at: datetime | None = AT + HOUR, text: str = SWAP, **fields: Any) -> StatementRow:
    return _stated(text, place, at, **{"name": "t", **fields})


def _offset(offset: int, rank: int = 1, partition: int = 0) -> MessagePlace:
    return (rank, 1, partition, offset, 0)


def _file(name: str, rank: int = 1) -> MessagePlace:
    return (rank, 0, 0, name, 1, 0)


def _source(**fields: Any) -> Source:
    return Source.model_validate({"source": "p", "format": "canal_json", "landing": "in/*"} | fields)


def _ledger(lake: Lake, rows: Sequence[StatementRow], logs: Sequence[str] = TOPICS, published: int = 0) -> Ledger:
    ledger = Ledger(lake, f"copies_{next(_numbers)}")
    noted = BatchRow(batch=1, landed=1, decoded=1, control=0, quarantined=0, events=1, logs=tuple(logs))
    ledger.replace(BatchRow, [noted])
    ledger.replace(StatementRow, list(rows))
    topics = {log.partition("/")[0] for log in logs if log[-1].isdigit()}
    ledger.replace(OffsetsRow, [OffsetsRow(batch=1, topic=topic, partition=0, ranges="[]") for topic in topics])
    ledger.replace(ContentRow, [_content(T)])
    if published:
        ledger.replace(CutRow, [CutRow(cut=1, state=CutState.PUBLISHED, batch=published)])
        ledger.replace(TableRow, [TableRow(cut=1, object=T, state=TableState.PUBLISHED, batch=published)])
    return ledger


def _content(table: str) -> ContentRow:
    return ContentRow(
        batch=1, object=table, database="shop", schema=None, name=table.removeprefix("shop."), operation="INSERT",
        shape="s", partial=False, key=("id",), half=False, events=1,
    )  # fmt: skip


def _doubted(ledger: Ledger, source: Source) -> str:
    """Why a cut that moves the table to batch 3 is held; nothing if it is not."""
    cut = Moved([TableRow(cut=9, object=T, state=TableState.CANDIDATE, batch=3)], 3, {}, Lineages())
    found = doubts_about_copies(ledger, source, cut)
    assert found.keys() <= {T}
    assert all(doubt.invariant == UNPLACED_STATEMENT for doubts in found.values() for doubt in doubts)
    return "\n".join(doubt.reason for doubts in found.values() for doubt in doubts)


def _apart(ledger: Ledger, source: Source) -> tuple[tuple[str, str], ...]:
    return names_apart(unplaced_changes(ledger, source, 3), [T])


@pytest.mark.parametrize(
    ("copy", "table", "logs", "held"),
    [
        (_offset(7), _offset(9), ["erp/0"], False),
        (_offset(7), _offset(9), ["erp/0", "erp/1"], False),
        (_offset(7), _offset(9), TOPICS, True),
        (_offset(1_000_000), _offset(9), TOPICS, True),
        (_offset(7, partition=1), _offset(9), ["erp/0", "erp/1"], True),
        (_offset(7), _offset(9, rank=3), TOPICS, False),
        (_offset(7), _file("in/2.json"), ["erp/0", "in/#.json"], True),
        (_file("in/1.json"), _file("in/2.json"), ["in/#.json"], False),
        (_file("in/a-1.json"), _file("in/b-1.json"), ["in/a-#.json", "in/b-#.json"], False),
        (_file("in/b-1.json"), _file("in/a-1.json"), ["in/a-#.json", "in/b-#.json"], True),
        ((0, 1, 0, 7, 0), _offset(9), ["erp/0"], True),
    ],
    ids=[
        "one_order", "one_partition", "topics", "topics_behind_it", "partitions", "another_log", "files_too",
        "one_series", "in_the_order_of_names", "against_the_order_of_names", "no_place",
    ],
)  # fmt: skip
def test_a_change_of_a_copy_is_placed_where_it_can_be_compared(
    lake: Lake, copy: MessagePlace, table: MessagePlace, logs: Sequence[str], held: bool  # noqa: FBT001
) -> None:  # fmt: skip
    """Offsets of two topics or partitions say nothing of each other. Names of files order, unless times disagree."""
    ledger = _ledger(lake, [_stated(CHANGE, copy), _swap(table)], logs)
    reason = _doubted(ledger, _source())
    assert bool(reason) is held
    assert _apart(ledger, _source()) == ((("email", "mail"),) if held else ())
    assert not held or (CHANGE in reason and SWAP in reason and "`reloads` of shop.t" in reason)


def test_what_no_swap_takes_is_in_doubt_with_each_of_them(lake: Lake) -> None:
    """The second migration lies behind both swaps, by offsets of another topic; each is named once."""
    swaps = [_swap(_offset(105)), _swap(_offset(300), AT + 4 * HOUR)]
    rows = [_stated(ADD, _offset(2)), swaps[0], _stated(CHANGE, _offset(1_000_001), AT + 3 * HOUR), swaps[1]]
    ledger, shop = _ledger(lake, rows), _source()
    assert len(unplaced_changes(ledger, shop, 3)[T]) == 4
    assert CHANGE in _doubted(ledger, shop)
    assert _apart(ledger, shop) == (("email", "mail"),)
    assert unplaced_changes(_ledger(lake, rows[:1]), shop, 3) == {}  # no copy took the name yet


def test_other_changes_need_no_place(lake: Lake) -> None:
    """A type, an index, a column without a value; what the source file leaves out; another table's copy."""
    for text in ("modify n bigint", "add index i (n)", "add n int", "drop primary key, add primary key (id, n)"):
        ledger = _ledger(lake, [_stated(f"alter table _t_gho {text}", _offset(7)), _swap(_offset(9))])
        assert not _doubted(ledger, _source())
    ledger = _ledger(lake, [_stated(CHANGE, _offset(7)), _swap(_offset(9))])
    assert not _doubted(ledger, _source(schema={"rename": "keep"}))
    assert _apart(ledger, _source(schema={"rename": "keep"})) == (("email", "mail"),)  # masked all the same
    other = _stated("alter table _u_gho drop a", _offset(7), name="_u_gho")
    assert not _doubted(_ledger(lake, [other, _swap(_offset(9))]), _source())


@pytest.mark.parametrize(
    ("ranks", "at", "held"),
    [
        ((3, 3), AT, ""),
        ((1, 3), AT, "`--reprocess` reads them anew"),
        ((1, 3), None, "`--reprocess` reads them anew"),
        ((1, 1), AT, "`"),
    ],
    ids=["alike", "of_an_earlier_release", "no_time", "not_read_anew"],
)
def test_positions_are_raised_by_the_moments_of_the_table(
    lake: Lake, ranks: tuple[int, int], at: datetime | None, held: str
) -> None:
    """One order of the dump, and a table that was loaded anew before: both statements rank behind it."""
    rows = [_stated(CHANGE, _offset(7, ranks[0]), at), _swap(_offset(9, ranks[1]))]
    for name in ("canal_json", "debezium_json"):
        shop = _source(format=name, tables={T: {"key": ["id"], "reloads": [AT - HOUR]}})
        reason = _doubted(_ledger(lake, rows, ["erp/0"]), shop)
        assert (bool(reason), held in reason) == (bool(held), True)


def test_a_later_load_settles_it_and_it_is_held_once(lake: Lake) -> None:
    """The load replaces the rows from before. A cut that was approved is not asked for again."""
    rows = [_stated(CHANGE, _offset(7)), _swap(_offset(9), batch=2)]
    shop = _source()
    for published, held in [(0, True), (1, True), (2, False)]:
        assert bool(_doubted(_ledger(lake, rows, published=published), shop)) is held
    moment = AT + 2 * HOUR
    load = _stated('{"at": 1, "row": null}', (2,), moment, dialect=LOAD, name="t")
    loaded = _source(tables={T: {"key": ["id"], "reloads": [moment]}})
    assert not _doubted(_ledger(lake, [*rows, load]), loaded)


def _unfilled(ledger: Ledger, rows: Sequence[StatementRow], newest: MessagePlace) -> list[bool]:
    """Of each swap that is in doubt, whether the copy had events at all."""
    comparable = ComparablePlaces(ledger, _source(), 3).comparable
    span = SpanRow(batch=1, object=BY_HAND, newest=encode_position(newest))
    found = TableRenames(rows, (T, BY_HAND)).unfilled_swaps([span], comparable)
    return [each.unplaced for each in found.get(T, ())]


def test_rows_of_a_copy_are_of_the_one_that_they_can_be_compared_with(lake: Lake) -> None:
    """A tool copied a million rows; then a person swaps an empty copy in. Offsets of two topics do not tell it."""
    text = "rename table t to _t_old, _t_new to t"
    swaps = [_swap(_offset(at), text=text) for at in (199, 299)]
    dropped = _stated("drop table if exists _t_new", _offset(1_000_001), name="_t_new")
    apart, alike = _ledger(lake, swaps), _ledger(lake, swaps, ["erp/0"])
    assert _unfilled(apart, swaps, _offset(1_000_000)) == [True, True]
    assert _unfilled(apart, [*swaps[1:], dropped], _offset(1_000_000)) == [True]
    assert _unfilled(apart, swaps[1:], _offset(1_000_000)) == []  # the only copy that there ever was
    assert _unfilled(alike, swaps, _offset(250)) == []
    assert _unfilled(alike, swaps, _offset(150)) == [False]
    raised = [msgspec.structs.replace(each, position=f"013{each.position[3:]}") for each in swaps]
    assert _unfilled(alike, raised, _offset(250, rank=3)) == []
