"""Which tables a TRUNCATE empties, and whether its message agrees."""

from __future__ import annotations

import time

import pytest

from tidemark.errors import MalformedMessageError
from tidemark.events import TableId
from tidemark.formats._truncations import empties, is_blank, truncation_in

MINE = TableId("shop", None, "orders")
WITH_SCHEMA = TableId("shop", "sales", "orders")


@pytest.mark.parametrize(
    ("dialect", "statement", "tables"),
    [
        ("mysql", "TRUNCATE t", [("t",)]), ("mysql", "-- a\n/* b */# c\n; truncate table t;", [("t",)]),
        ("mysql", "SET STATEMENT a=1 FOR TRUNCATE TABLE t", [("t",)]),
        ("mysql", "truncate`a``b`/**/./* x */`c.d`", [("a`b", "c.d")]), ("mysql", "TRUNCATE TABLE t#x", [("t",)]),
        ("mysql", "TRUNCATE T; DROP TABLE u", [("T",)]), ("mysql", "TRUNCATE TABLE t WAIT 5", [("t",)]),
        ("mysql", "TRUNCATE only", [("only",)]),
        ("postgres", 'TRUNCATE ONLY "S"."T" *, U RESTART IDENTITY CASCADE', [("S", "T"), ("u",)]),
        ("oracle", "truncate table s.t drop storage", [("S", "T")]),
        ("tsql", "TRUNCATE TABLE [d].[s].[a]]b]", [("d", "s", "a]b")]), ("tsql", "TRUNCATE TABLE #t", [("#t",)]),
        ("", "TRUNCATE TABLE S.t IMMEDIATE", [("S", "t")]),
    ],
)  # fmt: skip
def test_a_truncate_names_its_tables(dialect: str, statement: str, tables: list[tuple[str, ...]]) -> None:
    """In any quoting, behind comments and settings, in the spelling of the source's catalog."""
    found = truncation_in(statement, dialect)
    assert found is not None
    assert list(found.tables) == tables


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "TRUNCATED",
        "ALTER TABLE t TRUNCATE PARTITION p",
        "SET STATEMENT a='FOR TRUNCATE t' FOR SELECT 1",
        "/* TRUNCATE t",
    ],
)
def test_other_statements_empty_nothing(statement: str) -> None:
    """The word counts at the beginning only."""
    assert truncation_in(statement, "mysql") is None
    assert not empties(MINE, statement, "mysql", says_so=False)


@pytest.mark.parametrize(
    "statement",
    ["TRUNCATE", "TRUNCATE TABLE", "TRUNCATE TABLE t PARTITION (p)", "TRUNCATE a.b.c.d", "TRUNCATE a,,b", "TRUNCATE a.",
     "TRUNCATE CLUSTER c", "TRUNCATE TABLE t WITH (PARTITIONS (2))", "TRUNCATE `t", "TRUNCATE 'orders'"],
)  # fmt: skip
@pytest.mark.parametrize("says_so", [True, False])
def test_a_truncate_whose_tables_are_not_certain_is_refused(statement: str, *, says_so: bool) -> None:
    """A part of a table is not the whole of it."""
    with pytest.raises(MalformedMessageError, match="not certain"):
        empties(MINE, statement, "mysql", says_so=says_so)


@pytest.mark.parametrize("statement", ["", " ;", "/* nightly */ -- x", "/*!50001 */"])
def test_a_text_without_a_statement_says_nothing(statement: str) -> None:
    """Then the operation of the message alone says that the table was emptied."""
    assert is_blank(statement)
    assert empties(MINE, statement, "mysql", says_so=True)
    assert not empties(MINE, statement, "mysql", says_so=False)


@pytest.mark.parametrize(
    ("table", "dialect", "statement"),
    [
        (MINE, "mysql", "TRUNCATE orders"), (MINE, "mysql", "truncate table `shop` . `orders` -- x"),
        (MINE, "mysql", "TRUNCATE SHOP.Orders"), (MINE, "mysql", "/*!50001 TRUNCATE TABLE orders */;"),
        (MINE, "mysql", "/*M!100100 TRUNCATE */ orders"), (MINE, "mysql", "TRUNCATE TABLE items, orders"),
        (TableId(None, None, "orders"), "mysql", "TRUNCATE shop.orders"),
        (MINE, "postgres", "TRUNCATE public.orders"), (WITH_SCHEMA, "postgres", 'TRUNCATE "sales".Orders CASCADE'),
        (WITH_SCHEMA, "tsql", "TRUNCATE TABLE [shop].[sales].[ORDERS]"),
        (TableId("orcl", "SALES", "ORDERS"), "oracle", "truncate table sales.orders reuse storage"),
        (MINE, "", 'TRUNCATE TABLE "ORDERS"'),
    ],
)  # fmt: skip
def test_a_truncate_of_its_own_table_empties_it(table: TableId, dialect: str, statement: str) -> None:
    """The message completes the name, what it lacks is not contradicted, and the case does not matter."""
    assert empties(table, statement, dialect, says_so=True)


@pytest.mark.parametrize(
    ("table", "dialect", "statement"),
    [
        (MINE, "mysql", "TRUNCATE TABLE other.orders"), (MINE, "mysql", "TRUNCATE items"),
        (MINE, "mysql", "TRUNCATE other.items, items"), (WITH_SCHEMA, "postgres", "TRUNCATE public.orders"),
        (WITH_SCHEMA, "tsql", "TRUNCATE TABLE other.sales.orders"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("says_so", [True, False])
def test_a_truncate_of_another_table_is_refused(table: TableId, dialect: str, statement: str, *, says_so: bool) -> None:
    """Which of the two was emptied is not known."""
    with pytest.raises(MalformedMessageError, match=f"in a message of {table}: which one was emptied"):
        empties(table, statement, dialect, says_so=says_so)


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE orders TRUNCATE PARTITION p0", "DELETE FROM orders", "eg: truncate orders"]
)
def test_a_message_that_contradicts_its_statement_is_refused(statement: str) -> None:
    """The operation says TRUNCATE, and the statement does not."""
    with pytest.raises(MalformedMessageError, match="the statement another one"):
        empties(MINE, statement, "mysql", says_so=True)


@pytest.mark.parametrize(
    "piece",
    ["/**/", "/*!1", "/*T![", "a,", "a.", "`", "``", '""', "[]]", "--\n", "# ", " ", ";", "*", "/*", "TRUNCATE "],
)
def test_hostile_texts_cost_little(piece: str) -> None:
    """The text is read once, whatever it repeats."""
    started = time.process_time()
    for begins in ("", "TRUNCATE ", "TRUNCATE a", "TRUNCATE `"):
        for says_so in (True, False):
            try:
                empties(MINE, begins + piece * (65_536 // len(piece)) + "x", "mysql", says_so=says_so)
            except MalformedMessageError:
                continue
    assert time.process_time() - started < 2
