"""What several statements do to the columns of a table, one after another, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.ddl.first_additions import first_additions
from tidemark.ddl.history import SchemaHistory, by_statements
from tidemark.ddl.names import ColumnNames
from tidemark.ledger.rows import StatementRow
from tidemark.positions import encode_position

T = "shop.t"


def _stated(at: int, statement: str, **fields: Any) -> StatementRow:
    named = {"database": "shop", "schema": None, "name": "t", "dialect": "mysql", "batch": 1} | fields
    return StatementRow(position=encode_position((1, at)), statement=statement, **named)


def _history(*rows: StatementRow) -> SchemaHistory:
    """What they did, however often they are delivered."""
    again = [StatementRow(**{name: getattr(row, name) for name in row.__struct_fields__}) for row in rows]
    assert by_statements([*rows, *again], {T}) == by_statements(rows, {T})
    return by_statements(rows, {T})[T]


def _today(history: SchemaHistory, *columns: str) -> dict[str, str | None]:
    names = ColumnNames(history.renamings, columns)
    return {name: names.today(name, 0) for name in columns}


def _filled(history: SchemaHistory) -> dict[str, str | None]:
    """What rows from before have in the columns that were added, by the names of today."""
    names = ColumnNames(history.renamings, {each.name.lower() for each in history.additions})
    additions = first_additions(history.additions, names)
    return {name.lower(): added.default and added.default.text for name, added in additions}


def _in_a_copy(*clauses: str) -> list[StatementRow]:
    changes = [_stated(at, f"ALTER TABLE lhmn_t {clause}", name="lhmn_t") for at, clause in enumerate(clauses, 1)]
    return [*changes, _stated(50, "RENAME TABLE t TO lhma_2026_01_31_00_00_00_000_t, lhmn_t TO t")]


def _in_a_text(*clauses: str) -> list[StatementRow]:
    return [_stated(50, "; ".join(f"ALTER TABLE t {clause}" for clause in clauses))]


@pytest.mark.parametrize("written", [_in_a_copy, _in_a_text], ids=["in_a_copy", "in_a_text"])
def test_statements_at_one_place_come_one_after_another(written: Any) -> None:
    """Those of a copy that takes the table's name at once, and those of one text: each has the names from before it."""
    turned = _history(*written("CHANGE a tmp INT", "CHANGE b a INT", "CHANGE tmp b INT"))
    assert _today(turned, "a", "b") == {"a": "b", "b": "a"}
    chained = _history(*written("RENAME COLUMN a TO b", "RENAME COLUMN b TO c"))
    assert _today(chained, "a", "b", "c") == {"a": "c", "b": "c", "c": "c"}
    clauses = _history(*written("RENAME COLUMN a TO b, RENAME COLUMN b TO a"))
    assert _today(clauses, "a", "b") == {"a": "b", "b": "a"}
    renamed = _history(*written("ADD x INT DEFAULT 5", "CHANGE x y INT"))
    assert _filled(renamed) == {"y": "5"}
    anew = _history(*written("ADD x INT", "DROP COLUMN x", "ADD x VARCHAR(9) DEFAULT 'q'"))
    assert _filled(anew) == {"x": "q"}


@pytest.mark.parametrize("first", ["ADD COLUMN x INT", "ADD x DATETIME DEFAULT CURRENT_TIMESTAMP"])
def test_the_statement_that_added_a_column_filled_it(first: str) -> None:
    """One that adds it again, with IF NOT EXISTS and a constant, did nothing; both are logged."""
    again = _stated(20, "ALTER TABLE t ADD COLUMN IF NOT EXISTS X INT DEFAULT 5")
    assert _filled(_history(_stated(10, f"ALTER TABLE t {first}"), again)) == {"x": None}
    assert _filled(_history(again)) == {"x": "5"}
    dropped = _stated(15, "ALTER TABLE t DROP COLUMN x")
    assert _filled(_history(_stated(10, f"ALTER TABLE t {first}"), dropped, again)) == {"x": "5"}
    retyped = _stated(5, "ALTER TABLE t MODIFY x INT")
    assert _filled(_history(retyped, again)) == {"x": "5"}


def test_the_case_of_a_name_matters_where_it_was_written_in_several() -> None:
    """Other columns of the table are found in whatever case."""
    history = _history(
        _stated(10, "ALTER TABLE t CHANGE Name name VARCHAR(20)"),
        _stated(20, "ALTER TABLE t RENAME COLUMN EMAIL TO mail"),
    )
    assert _today(history, "Name", "name", "email", "mail") == {
        "Name": "name",
        "name": "name",
        "email": "mail",
        "mail": "mail",
    }
