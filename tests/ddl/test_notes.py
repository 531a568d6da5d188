"""Statements that are not followed get a note at each table that they may concern."""

from __future__ import annotations

import pytest

from tidemark.ddl.history import by_statements
from tidemark.ledger.rows import StatementRow

TABLES = ("shop.orders", "shop.items", "stock.parts")


@pytest.mark.parametrize(
    ("name", "statement", "noted"),
    [
        ("orders", "FROBNICATE TABLE x", {"shop.orders"}),
        ("unknown", "FROBNICATE TABLE orders", set()),
        (None, "BEGIN NOT ATOMIC DROP TABLE `Orders`; DROP TABLE items; END", {"shop.orders", "shop.items"}),
        (None, "DROP USER shop CASCADE", {"shop.orders", "shop.items"}),
        (None, "DROP OWNED BY x", set(TABLES)),
        (None, "DROP DATABASE IF EXISTS shop", {"shop.orders", "shop.items"}),
        (None, "DROP DATABASE orders", set()),
        (None, "CREATE USER x", set()),
    ],
)
def test_a_statement_that_is_not_followed_is_noted(name: str | None, statement: str, noted: set[str]) -> None:
    """At the table of its message; without one at those that it names, else those of a schema it names, else all."""
    row = StatementRow(
        batch=1, database=name and "shop", schema=None, name=name, position="1", dialect="mysql", statement=statement
    )
    found = by_statements([row], TABLES)
    assert {each for each, history in found.items() if history.notes} == noted
