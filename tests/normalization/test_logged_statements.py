"""Which statements the ledger keeps."""

from __future__ import annotations

import pytest

from tidemark.events import SchemaChange, TableId
from tidemark.ledger.rows import StatementRow
from tidemark.normalization.logged_statements import logged_statement


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("alter table t drop a", True),
        ("/*!50003DROP TABLE t */", True),
        ("SET STATEMENT a=1 FOR TRUNCATE t", True),
        ("RECOVER TABLE t", True),
        ("FLASHBACK TABLE t", True),
        ("FLASHBACK CLUSTER TO TIMESTAMP '2026-01-31 00:00:00'", True),
        ("EXEC sp_rename 'dbo.t.a', 'b', 'COLUMN'", True),
        ("TIMECAPSULE TABLE t TO CSN 5", True),
        ("CREATE TABLE t (dropped int)", False),
        ("CREATE INDEX recover ON t (a)", False),
        ("CREATE TABLE `s`.`_t_new` (\n  `id` int", True),
        ("create /* gh-ost */ table `s`.`_t_gho` like `s`.`t`", True),
        ("CREATE TABLE IF NOT EXISTS __osc_new_t(id int)", True),
        ("CREATE TABLE _t_old (id int)", False),
        ("CREATE TABLE t (_t_new int)", False),
        ("CREATE INDEX i ON _t_new (a)", False),
    ],
)
def test_statements_that_may_change_what_is_there_are_kept(statement: str, *, kept: bool) -> None:
    """Also those that bring back a table or create a tool's copy, and those in executable comments."""
    event = SchemaChange(table=TableId("s", None, "t"), position=(1, 2), statement=statement)
    assert (logged_statement(event, 0) is not None) is kept


def test_the_database_of_a_statement_without_a_table_is_kept() -> None:
    """A name in the text is one of that database."""
    logged = logged_statement(SchemaChange(table=None, database="s", position=(1, 2), statement="drop table t"), 0)
    assert logged is not None
    row = StatementRow.of(3, logged)
    assert (row.database, row.schema, row.name) == ("s", None, None)
