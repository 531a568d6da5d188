"""Which statements the ledger keeps."""

from __future__ import annotations

import pytest

from tidemark.events import SchemaChange, TableId
from tidemark.normalization.logged_statements import logged_statement


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("alter table t drop a", True),
        ("/*!50003DROP TABLE t */", True),
        ("SET STATEMENT a=1 FOR TRUNCATE t", True),
        ("RECOVER TABLE t", True),
        ("FLASHBACK TABLE t", True),
        ("CREATE TABLE t (dropped int)", False),
        ("CREATE INDEX recover ON t (a)", False),
    ],
)
def test_statements_that_may_change_what_is_there_are_kept(statement: str, *, kept: bool) -> None:
    """Also those that bring back a table, and those in executable comments."""
    event = SchemaChange(table=TableId("s", None, "t"), position=(1, 2), statement=statement)
    assert (logged_statement(event, 0) is not None) is kept
