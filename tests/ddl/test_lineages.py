"""Which events belong to a table that was renamed, as statements tell, without Spark."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest

from tidemark.ddl.lineages import Segment, lineages
from tidemark.events import TableId
from tidemark.ledger.rows import StatementRow

OBJECTS = {f"shop.{name}": TableId("shop", None, name) for name in ("a", "b")}


def _stated(position: str, statement: str, *, batch: int = 1) -> StatementRow:
    return StatementRow(
        batch=batch, database="shop", schema=None, name=None, position=position, dialect="mysql", statement=statement
    )


def _found(*rows: StatementRow) -> dict[str, list[tuple[str, str, str | None]]]:
    tables = lineages(rows, OBJECTS).tables
    assert all(str(lineage.table) == name for name, lineage in tables.items())
    return {name: [tuple(segment) for segment in lineage.segments] for name, lineage in tables.items()}


A, B, C = "shop.a", "shop.b", "shop.c"


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
    ],
    ids=["none", "renamed", "altered", "over_another", "swap", "there_and_back", "chain", "unknown", "tool", "column"],
)
def test_a_table_keeps_the_events_of_the_names_it_had(
    statements: list[str], tables: dict[str, list[tuple[str, str, str | None]]]
) -> None:
    """Each up to the statement that gave it the next one; a table of which no event is known is followed nowhere."""
    rows = [_stated(str(place), text) for place, text in enumerate(statements, start=1)]
    for told in permutations(rows):
        assert _found(*told, *told) == tables


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
