"""Which events belong to a table that was renamed, according to statements, without Spark."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import msgspec
import pytest

from tidemark.ddl.lineages import Segment, lineages
from tidemark.events import TableId
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import StatementRow

OBJECTS = {f"shop.{name}": TableId("shop", None, name) for name in ("a", "b")}


def _stated(position: str, statement: str, *, batch: int = 1, **fields: Any) -> StatementRow:
    named = {"database": "shop", "schema": None, "name": None, "dialect": "mysql"} | fields
    return StatementRow(batch=batch, position=position, statement=statement, **named)


def _in_parts(position: str, *pairs: str) -> list[StatementRow]:
    """A statement as Debezium sends it: a message for each rename; it names the table that has the new name then."""
    renames = [tuple(pair.split(">")) for pair in pairs]
    there: set[str] = set()
    for old, new in renames:
        there = there - {old} | {new}
    together = tuple(sorted({new for _, new in renames}))
    return [
        _stated(
            position,
            f"RENAME TABLE {old} TO {new}",
            name=new if new in there else ",".join(together),
            together=together,
        )
        for old, new in renames
    ]


def _found(*rows: StatementRow) -> dict[str, list[tuple[str, str, str | None]]]:
    tables = lineages(rows, OBJECTS).tables
    assert all(str(lineage.table) == name for name, lineage in tables.items())
    return {name: [tuple(segment) for segment in lineage.segments] for name, lineage in tables.items()}


A, B, C = "shop.a", "shop.b", "shop.c"
OLD = "shop._a_old"


@pytest.mark.parametrize(
    ("statements", "tables"),
    [
        ([], {}),
        (["RENAME TABLE a TO c"], {C: [(A, "", "1"), (C, "1", None)], A: [(A, "1", None)]}),
        (["ALTER TABLE a RENAME TO c"], {C: [(A, "", "1"), (C, "1", None)], A: [(A, "1", None)]}),
        (["RENAME TABLE a TO b"], {B: [(A, "", "1"), (B, "1", None)], A: [(A, "1", None)]}),
        (
            ["RENAME TABLE A TO tmp, b TO a, tmp TO B"],
            {A: [(B, "", "1"), (A, "1", None)], B: [(A, "", "1"), (B, "1", None)]},
        ),
        (
            ["RENAME TABLE a TO tmp, b TO a, tmp TO b", "RENAME TABLE a TO tmp, b TO a, tmp TO b"],
            {
                A: [(A, "", "1"), (B, "1", "2"), (A, "2", None)],
                B: [(B, "", "1"), (A, "1", "2"), (B, "2", None)],
            },
        ),
        (
            ["RENAME TABLE a TO c", "RENAME TABLE b TO a"],
            {C: [(A, "", "1"), (C, "1", None)], A: [(B, "", "2"), (A, "2", None)], B: [(B, "2", None)]},
        ),
        (["RENAME TABLE a TO tmp, x TO a, tmp TO x"], {}),
        (["RENAME TABLE a TO _a_del, _a_gho TO a"], {}),
        (["ALTER TABLE a RENAME COLUMN x TO y"], {}),
        (["RENAME TABLE a TO _a_old"], {OLD: [(A, "", "1"), (OLD, "1", None)], A: [(A, "1", None)]}),
        (
            ["RENAME TABLE a TO _a_old", "RENAME TABLE b TO a"],
            {OLD: [(A, "", "1"), (OLD, "1", None)], A: [(B, "", "2"), (A, "2", None)], B: [(B, "2", None)]},
        ),
        (
            ["RENAME TABLE a TO _a_old", "RENAME TABLE a TO _a_del, _a_gho TO a"],
            {OLD: [(A, "", "1"), (OLD, "1", None)], A: [(A, "1", None)]},
        ),
    ],
    ids=[
        *("none", "renamed", "altered", "over_another", "swap", "there_and_back", "chain", "unknown", "tool", "column"),
        *("put_aside", "put_aside_for_another", "put_aside_and_later_a_tool"),
    ],
)
def test_a_table_keeps_the_events_of_the_names_it_had(
    statements: list[str], tables: dict[str, list[tuple[str, str, str | None]]]
) -> None:
    """Each name up to the statement that gave the table the next one; a table without events is followed nowhere."""
    rows = [_stated(str(place), text) for place, text in enumerate(statements, start=1)]
    for sequence in permutations(rows):
        assert _found(*sequence, *sequence) == tables


@pytest.mark.parametrize("statement", ["RENAME TABLE IF EXISTS a TO b", "ALTER TABLE IF EXISTS a RENAME TO b"])
def test_a_rename_that_ran_twice_renamed_once(statement: str) -> None:
    """The second one found no such table; it is followed, so nothing is in doubt. A tool may log it all the same."""
    once, twice = _stated("1", statement), _stated("2", statement)
    assert _found(once, twice) == _found(once)
    assert _found(once, _stated("2", statement), _stated("3", "RENAME TABLE b TO c"))[C] == [
        (A, "", "1"),
        (B, "1", "3"),
        (C, "3", None),
    ]
    assert lineages([once, twice], OBJECTS).followed == {("1", statement), ("2", statement)}


def test_a_name_that_a_table_has_goes_to_no_other() -> None:
    """A statement that gives it away again contradicts the first one, unless the table was dropped between."""
    first, again = (_stated(position, "RENAME TABLE a TO b") for position in ("1", "3"))
    assert lineages([first, again], OBJECTS).followed == {("1", again.statement)}
    for text in ("DROP TABLE IF EXISTS b", "RENAME TABLE b TO c"):
        between = _stated("2", text)
        assert ("3", again.statement) in lineages([first, between, again], OBJECTS).followed
        assert _found(first, between, again)[B] == [(A, "1", "3"), (B, "3", None)]


def _followed(*rows: StatementRow, spans: tuple[SpanRow, ...] = ()) -> list[str]:
    return sorted(position for position, _ in lineages(rows, OBJECTS, spans=spans).followed)


@pytest.mark.parametrize(
    "between",
    [
        [],  # the capture tool leaves it out, or its place is not certain
        ["DROP TABLE c"],
        ["DROP TABLE IF EXISTS C"],
        ["DROP DATABASE shop"],
        ["RENAME TABLE c TO d, x TO y"],  # not followed: no event of x is known
    ],
)
@pytest.mark.parametrize("way", ["RENAME TABLE a TO c, b TO a", "RENAME TABLE a TO c"])
def test_a_name_without_events_is_given_again(way: str, between: list[str]) -> None:
    """As in a nightly rotation: the rename proves that the name was free, so the table that had it was dropped."""
    texts = [way, *between, way]
    rows = [_stated(str(place), text) for place, text in enumerate(texts, start=1)]
    last = str(len(texts))
    assert _followed(*rows) == ["1", last]
    found = _found(*rows)
    assert (
        found[C] == [(A, "1", last), (C, last, None)]
        if way.endswith("c")
        else [
            (B, "", "1"),
            (A, "1", last),
            (C, last, None),
        ]
    )
    assert found[A] == ([(B, "1", last), (A, last, None)] if way.endswith("a") else [(A, last, None)])


def test_a_chain_and_a_recycle_bin_are_rotations_too() -> None:
    """Each name goes to the next generation, although no event of either name is known."""
    monthly = [
        ("1", "RENAME TABLE a TO c"),
        ("2", "DROP TABLE IF EXISTS d"),
        ("3", "RENAME TABLE c TO d, a TO c"),
        ("4", "DROP TABLE IF EXISTS d"),
        ("5", "RENAME TABLE c TO d, a TO c"),
    ]
    found = _found(*(_stated(*each) for each in monthly))
    assert found["shop.d"] == [(A, "1", "3"), (C, "3", "5"), ("shop.d", "5", None)]
    assert found[C] == [(A, "3", "5"), (C, "5", None)]
    binned = [
        ("1", 'ALTER TABLE "a" RENAME TO "c"'),
        ("2", 'ALTER TABLE "c" RENAME TO "BIN$x"'),
        ("3", 'drop table "c" AS "BIN$x"'),
        ("4", 'ALTER TABLE "a" RENAME TO "c"'),
    ]
    assert _found(*(_stated(*each, dialect="oracle") for each in binned))[C] == [(A, "1", "4"), (C, "4", None)]


def test_statements_of_one_text_come_one_after_another() -> None:
    """A DROP behind a rename is one of the new name; one in front of it frees the name for another table."""
    text = "RENAME TABLE IF EXISTS a TO c; DROP TABLE c"
    assert _found(_stated("1", text), _stated("2", text))[C] == [(A, "1", "2"), (C, "2", None)]
    text = "DROP TABLE IF EXISTS c; ALTER TABLE IF EXISTS a RENAME TO c"
    assert _found(_stated("1", text), _stated("2", text))[C] == [(A, "1", "2"), (C, "2", None)]


def test_a_drop_of_a_name_that_a_rename_gave_counts_with_if_exists_too() -> None:
    """Then the name was free again. Without one, the table was gone from its earlier name, and nothing happened."""
    text = "RENAME TABLE IF EXISTS a TO c"
    once, again = _stated("1", text), _stated("3", text)
    assert _found(once, _stated("2", "DROP TABLE c"), again)[C] == [(A, "1", "3"), (C, "3", None)]
    assert _found(once, again) == _found(once)
    assert _followed(once, again) == ["1", "3"]


def _span(name: str, oldest: str, newest: str) -> SpanRow:
    return SpanRow(batch=1, object=name, oldest=oldest, newest=newest)


@pytest.mark.parametrize(
    ("spans", "followed"),
    [
        ([_span(B, "00", "05")], True),  # all of a table that had the name before
        ([_span(B, "31", "32")], True),  # all of the one that has it since
        ([_span(B, "15", "16")], False),
        ([_span(B, "00", "05"), _span(B, "31", "32")], False),
        ([_span(A, "00", "99")], False),  # where those of the name lie is not known
    ],
)
def test_events_under_a_name_say_that_its_table_was_there(spans: list[SpanRow], followed: bool) -> None:  # noqa: FBT001
    """Those that came since it took the name: a DROP of such a table would have come too, so the place is in doubt."""
    rows = [_stated(position, "RENAME TABLE a TO b") for position in ("10", "30")]
    assert _followed(*rows, spans=(*spans,)) == (["10", "30"] if followed else ["10"])


def test_a_rename_with_if_exists_of_a_table_that_was_made_again_is_not_followed() -> None:
    """Events under its name since it had another one say so: whether there was a table to rename is not certain."""
    rows = [_stated(position, "RENAME TABLE IF EXISTS a TO c") for position in ("10", "30")]
    assert _followed(*rows, spans=(_span(A, "00", "09"),)) == ["10", "30"]
    assert _followed(*rows, spans=(_span(A, "00", "20"),)) == ["10"]


@pytest.mark.parametrize(
    "swap",
    [
        [_stated("1", "RENAME TABLE a TO _a_old, _a_new TO a")],
        [_stated("0", "ALTER TABLE a RENAME _a_old"), _stated("1", "ALTER TABLE _a_new RENAME a")],
        _in_parts("1", "a>_a_old", "_a_new>a"),
    ],
    ids=["whole", "in_two_steps", "in_parts"],
)
def test_a_copy_brings_no_rows_of_an_earlier_copy(swap: list[StatementRow]) -> None:
    """What came under its name before a swap went to the table with that swap, where its later changes are."""
    copy = "shop._a_new"
    objects = {name: TableId("shop", None, name.removeprefix("shop.")) for name in (A, copy)}
    dropped, renamed = _stated("5", "DROP TABLE IF EXISTS a"), _stated("6", "RENAME TABLE _a_new TO a")
    assert lineages(swap, objects).tables == {}
    assert lineages([*swap, dropped, renamed], objects).tables[A].segments == ((copy, "1", "6"), (A, "6", None))


def test_a_table_that_a_tool_put_aside_is_not_followed() -> None:
    """Its rows came under the name that the copy has now, whatever came under its own name earlier."""
    objects = {name: TableId("shop", None, name.removeprefix("shop.")) for name in (A, OLD)}
    swap, kept = _stated("1", "RENAME TABLE a TO _a_old, _a_new TO a"), _stated("4", "RENAME TABLE _a_old TO c")
    assert not lineages([swap, kept], objects).followed
    assert lineages([swap, _stated("3", "DROP TABLE _a_old"), kept], objects).followed


def test_a_rename_of_a_table_that_may_be_gone_is_not_followed() -> None:
    """With IF EXISTS it may have found none, and then the other name stays with the table that has it."""
    gone = _stated("1", "DROP TABLE a")
    assert not lineages([gone, _stated("2", "ALTER TABLE IF EXISTS a RENAME TO b")], OBJECTS).tables
    assert lineages([gone, _stated("2", "ALTER TABLE IF EXISTS a RENAME TO c")], OBJECTS).tables.keys() == {A, C}
    assert lineages([gone, _stated("2", "ALTER TABLE a RENAME TO b")], OBJECTS).tables.keys() == {A, B}


@pytest.mark.parametrize(
    "pairs",
    [
        ["a>tmp", "b>a", "tmp>b"],
        ["b>c", "a>b"],
        ["a>x", "b>y"],
        ["A>tmp", "tmp>a", "b>c"],
        ["a>t1", "b>t2", "t1>b", "t2>a"],
        ["a>tmp", "tmp>c"],
    ],
    ids=["swap", "chain", "apart", "case", "two_free_names", "passing_through"],
)
def test_parts_of_a_statement_are_followed_once_all_are_there(pairs: list[str]) -> None:
    """In any order and sent again, as the statement as a whole; until then none of them is."""
    parts = _in_parts("1", *pairs)
    whole = _stated("1", "RENAME TABLE " + ", ".join(pair.replace(">", " TO ") for pair in pairs))
    expected = _found(whole)
    assert expected
    for sequence in permutations(parts):
        assert _found(*sequence, *sequence[:1]) == expected
        assert lineages(sequence, OBJECTS).followed == {(row.position, row.statement) for row in parts}
        for landed in range(1, len(parts)):
            assert not lineages(sequence[:landed], OBJECTS).followed


def test_parts_that_no_single_order_fits_are_not_followed() -> None:
    """A name that is left twice, and two names that are exchanged while both have their tables."""
    assert not lineages(_in_parts("1", "a>tmp", "b>a", "tmp>b", "a>c"), OBJECTS).followed
    there = [msgspec.structs.replace(row, name=row.statement[-1]) for row in _in_parts("1", "a>b", "b>a")]
    assert not lineages(there, OBJECTS).followed


def test_names_that_differ_in_case_alone_are_not_followed() -> None:
    """Where both have events, which of them a statement means is not certain; where one has, nothing was renamed."""
    both = OBJECTS | {"shop.A": TableId("shop", None, "A")}
    for statement in ("RENAME TABLE A TO a", "RENAME TABLE a TO c"):
        assert not lineages([_stated("1", statement)], both).followed
    assert lineages([_stated("1", "RENAME TABLE A TO a")], OBJECTS).followed


def test_every_event_belongs_to_one_table_at_most() -> None:
    """Segments of a name do not overlap, whatever renames there were."""
    rows = [
        _stated("1", "RENAME TABLE a TO c"),
        _stated("2", "RENAME TABLE b TO a, c TO b"),
        _stated("3", "RENAME TABLE a TO c"),
    ]
    found = [segment for lineage in lineages(rows, OBJECTS).tables.values() for segment in lineage.segments]
    for name in (A, B, C):
        mine = sorted(each for each in found if each.object == name)
        assert all(one.ends is not None and one.ends <= two.begins for one, two in pairwise(mine))
    assert Segment(B, "", "2") in found
