"""Which table a statement means where the names of two tables differ in case alone, without Spark."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tidemark.ddl.history import SchemaHistory, by_statements, histories
from tidemark.ddl.lineages import lineages
from tidemark.ddl.stated_bounds import stated_bounds
from tidemark.ddl.table_renames import TableRenames
from tidemark.events import TableId
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import ContentRow, StatementRow

UPPER, LOWER, OTHER = "shop.Orders", "shop.orders", "shop.items"


def _stated(statement: str, *, position: str = "1", dialect: str = "mysql", **fields: Any) -> StatementRow:
    named = {"database": "shop", "schema": None, "name": None} | fields
    return StatementRow(batch=1, position=position, dialect=dialect, statement=statement, **named)


def _found(*rows: StatementRow, objects: tuple[str, ...] = (UPPER, LOWER, OTHER)) -> dict[str, SchemaHistory]:
    """Return the histories, which do not depend on the order of the tables."""
    first, *others = [by_statements(rows, order) for order in permutations(objects)]
    assert all(other == first for other in others)
    return first


@pytest.mark.parametrize(
    ("statement", "message", "table"),
    [
        ("DROP TABLE orders", LOWER, LOWER),
        ("TRUNCATE TABLE orders", LOWER, LOWER),
        ("ALTER TABLE orders DROP COLUMN note", LOWER, LOWER),
        ("ALTER TABLE orders ADD COLUMN vip int NOT NULL DEFAULT 1", LOWER, LOWER),
        ("ALTER TABLE `Orders` DROP COLUMN note", UPPER, UPPER),
        ("DROP TABLE Orders", None, UPPER),
        ("DROP TABLE shop.orders", None, LOWER),
        ("DROP TABLE orders", UPPER, LOWER),
        ("DROP TABLE ORDERS", UPPER, UPPER),
        ("DROP TABLE ORDERS", LOWER, LOWER),
        ("DROP TABLE ITEMS", None, OTHER),
    ],
)
def test_a_statement_means_the_table_that_it_spells(statement: str, message: str | None, table: str) -> None:
    """Else the table that its message spells; the case does not matter for a table that is alone of its name."""
    row = _stated(statement, name=message and message.rpartition(".")[2])
    (found,) = _found(row).items()
    assert (found[0], found[1].notes) == (table, ())


@pytest.mark.parametrize(
    ("statement", "dialect", "table"),
    [
        ("DROP TABLE orders", "oracle", "shop.ORDERS"),
        ('DROP TABLE "orders"', "oracle", LOWER),
        ("TRUNCATE Orders", "postgres", LOWER),
        ('TRUNCATE "Orders"', "postgres", UPPER),
    ],
)
def test_a_name_without_quotation_marks_is_spelled_as_the_database_spells_it(
    statement: str, dialect: str, table: str
) -> None:
    """Oracle takes it in capitals, PostgreSQL in small letters."""
    assert list(_found(_stated(statement, dialect=dialect), objects=("shop.ORDERS", UPPER, LOWER))) == [table]


@pytest.mark.parametrize("fields", [{}, {"name": "ORDERS"}, {"database": None}])
def test_a_statement_that_may_mean_several_tables_is_followed_by_none(fields: dict[str, str | None]) -> None:
    """Each of them has a note of it. The table of another statement is followed."""
    found = _found(_stated("ALTER TABLE ORDERS DROP note, FROBNICATE", **fields), _stated("DROP TABLE items"))
    assert found.keys() == {UPPER, LOWER, OTHER}
    assert found[UPPER] == found[LOWER]
    assert found[UPPER] == SchemaHistory(notes=found[UPPER].notes)
    unsure, unparsed = (note.text for note in found[UPPER].notes)
    assert unsure.startswith("DDL not followed, it may mean shop.Orders or shop.orders: ")
    assert unparsed.startswith("DDL not followed, ")
    assert found[OTHER].emptyings


def test_a_message_without_a_table_leaves_the_spelling_of_the_statement() -> None:
    """The name alone finds the table, in its own case if there are two."""
    assert list(_found(_stated("DROP TABLE orders", database=None))) == [LOWER]
    assert list(_found(_stated("DROP TABLE ORDERS", database=None), objects=(LOWER, OTHER))) == [LOWER]


@pytest.mark.parametrize("statement", ["DROP TABLE orders", "ALTER TABLE ORDERS DROP COLUMN note", "TRUNCATE Orders"])
def test_a_message_without_table_and_database_may_mean_tables_of_several(statement: str) -> None:
    """Each of them has a note: none is changed, and none is left out unseen."""
    found = _found(_stated(statement, database=None), objects=(LOWER, "crm.orders", OTHER))
    assert found.keys() == {LOWER, "crm.orders"}
    for history in found.values():
        assert history == SchemaHistory(notes=history.notes)
        assert history.notes[0].text.startswith("DDL not followed, it may mean crm.orders or shop.orders: ")


def test_a_message_without_a_table_means_a_table_of_its_database() -> None:
    """A table of the same name in another database is another table."""
    assert list(_found(_stated("TRUNCATE orders"), objects=(LOWER, "crm.orders"))) == [LOWER]
    assert not _found(_stated("TRUNCATE orders", database="attic"), objects=(LOWER, OTHER))
    assert list(_found(_stated("TRUNCATE shop.orders", database="attic"), objects=(LOWER, OTHER))) == [LOWER]
    in_schema = _stated("TRUNCATE orders", database="app", dialect="postgres")
    assert list(_found(in_schema, objects=("app.public.orders", "crm.public.orders"))) == ["app.public.orders"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("TRUNCATE TABLE orders", {"name": "orders"}),
        ("DROP TABLE items, orders", {"name": "items"}),
        ("ALTER TABLE orders DROP COLUMN note", {"name": "ORDERS"}),
        ("TRUNCATE orders", {"dialect": "postgres"}),
        ('TRUNCATE TABLE "orders"', {"dialect": "oracle"}),
        ("TRUNCATE TABLE orders", {"dialect": "oracle", "database": None}),
    ],
)
def test_a_table_that_nothing_spells_is_not_changed(statement: str, message: dict[str, str]) -> None:
    """The statement may be about another table, which has no events yet: the known one has a note."""
    found = _found(_stated(statement, **message), objects=(UPPER, OTHER))
    assert found[UPPER] == SchemaHistory(notes=found[UPPER].notes)
    (note,) = found.pop(UPPER).notes
    assert note.text.startswith("DDL not followed, it may mean shop.Orders or ")
    assert found.keys() <= {OTHER}


@pytest.mark.parametrize(("dialect", "known"), [("mysql", LOWER), ("tsql", UPPER)])
def test_the_case_does_not_matter_where_the_server_passes_over_it(dialect: str, known: str) -> None:
    """MySQL with names in small letters writes statements as they were sent; SQL Server has no two such tables."""
    row = _stated("TRUNCATE TABLE OrDeRs", name="OrDeRs", dialect=dialect)
    assert _found(row, objects=(known, OTHER))[known].emptyings


def test_a_table_that_the_message_spells_is_changed() -> None:
    """Servers with names in small letters keep the statement as it was written."""
    for dialect in ("mysql", "postgres", "oracle"):
        quote = "`" if dialect == "mysql" else '"'
        row = _stated(f"TRUNCATE TABLE {quote}ORDERS{quote}", name="orders", dialect=dialect)
        assert list(_found(row, objects=(LOWER, OTHER))) == [LOWER]
        assert _found(row, objects=(LOWER, OTHER))[LOWER].emptyings


def test_a_rename_of_a_table_that_nothing_spells_is_in_doubt() -> None:
    """It is not followed, so the known table keeps its rows, and the cut is held."""
    row = _stated("RENAME TABLE orders TO gone", name="orders")
    upper, other = (TableId("shop", None, name.removeprefix("shop.")) for name in (UPPER, OTHER))
    for statement in (
        row,
        _stated("RENAME TABLE items TO orders", name="orders"),
        _stated("ALTER TABLE orders RENAME TO gone", dialect="postgres"),
    ):
        assert not lineages([statement], {UPPER: upper, OTHER: other}).followed
        assert UPPER in TableRenames([statement], (UPPER, OTHER)).by_table()
        assert TableRenames([statement], (UPPER, OTHER)).by_table().keys() <= {UPPER, OTHER}
    assert not stated_bounds([_stated("ALTER TABLE orders ADD a varchar(9)", name="orders")], (UPPER,))
    assert lineages([_stated("RENAME TABLE orders TO gone", name="gone")], {UPPER: upper}).followed


def test_a_column_that_may_have_another_name_is_masked_under_both() -> None:
    """A statement that may mean the table connects names of columns where a value must not be shown."""
    row = _stated("ALTER TABLE orders RENAME COLUMN mail TO address", name="orders")
    assert not by_statements([row], (UPPER,))[UPPER].renamings
    (renaming,) = by_statements([row], (UPPER,), unsure=True)[UPPER].renamings
    assert (renaming.old, renaming.new) == ("mail", "address")


def test_copies_of_both_tables_change_their_own() -> None:
    """A tool names its copy as the table, in the table's case; the copies may be there at one time."""
    rows = [
        _stated("ALTER TABLE _orders_gho DROP COLUMN a", position="1"),
        _stated("ALTER TABLE _Orders_gho DROP COLUMN b", position="2"),
        _stated("RENAME TABLE Orders TO _Orders_del, _Orders_gho TO Orders", position="3"),
        _stated("RENAME TABLE orders TO _orders_del, _orders_gho TO orders", position="4"),
    ]
    found = {name: [(each.position, each.old) for each in its.renamings] for name, its in _found(*rows).items()}
    assert found == {UPPER: [("3", "b")], LOWER: [("4", "a")]}
    unsure = _found(rows[0], _stated("RENAME TABLE _orders_gho TO ORDERS", position="5"))
    assert all(len(its.notes) == 1 and not its.renamings for its in unsure.values())


def test_one_text_renames_one_of_both_tables() -> None:
    """What stands before it in the text, and is of the other table, stays of the other one."""
    found = _found(_stated("ALTER TABLE orders DROP COLUMN a; ALTER TABLE Orders RENAME TO items"))
    assert [each.old for each in found[LOWER].renamings] == ["a"]
    assert OTHER not in found


def test_renames_and_bounds_are_of_the_same_table() -> None:
    """A rename that may be of several tables is in doubt for all of them, and none of them has bounds."""
    added, renamed = _stated("ALTER TABLE orders ADD a varchar(9)"), _stated("ALTER TABLE Orders RENAME TO gone")
    unsure = [_stated("ALTER TABLE ORDERS ADD b int"), _stated("RENAME TABLE ORDERS TO gone")]
    for objects in permutations((UPPER, LOWER, OTHER)):
        assert list(stated_bounds([added, renamed], objects)) == [LOWER]
        assert list(TableRenames([added, renamed], objects).by_table()) == [UPPER]
        assert TableRenames(unsure[1:], objects).by_table().keys() == {UPPER, LOWER}
        assert not stated_bounds([added, unsure[0]], objects)


def test_a_table_that_nobody_asks_for_keeps_its_statements(lake: Lake) -> None:
    """What a statement means depends on all tables that have events, and not on those that are asked for."""
    ledger = Ledger(lake, "case_alone")
    contents = [
        ContentRow(
            batch=1, object=name, database="shop", schema=None, name=name[5:], operation="INSERT", shape=None,
            partial=False, key=None, half=False, events=1,
        )
        for name in (UPPER, LOWER)
    ]  # fmt: skip
    ledger.replace(ContentRow, contents)
    ledger.replace(StatementRow, [_stated("DROP TABLE orders")])
    assert not histories(ledger, [UPPER])
    assert histories(ledger, [LOWER])[LOWER].emptyings
