"""Which checks that keep rows back need the rows to be judged again, without Spark."""

from __future__ import annotations

import pytest
from pyiceberg.table import Table

from support.plans import found, published, renamed, shape, source
from tidemark.ddl.changes import Fill
from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.errors import RebuildNeededError
from tidemark.lake.branches import MARKER
from tidemark.lake.commits import commit_files
from tidemark.lake.lake import Lake
from tidemark.tables import row_checks
from tidemark.tables.planner import plan
from tidemark.tables.row_checks import RowCheck

_NOT_NULL = {"type": "expect_column_values_to_not_be_null", "column": "n", "on_fail": "quarantine"}
_CHECKED = source({"checks": [_NOT_NULL]})
_ROW = shape(id="long", n="int", m="int")


def _judged(lake: Lake) -> tuple[Table, tuple[RowCheck, ...]]:
    """A published table whose rows the check judged, and the check as its plan has it."""
    checks = plan(_CHECKED, found(_ROW), None).row_checks
    table = published(lake, {"id": "long", "n": "int", "m": "int"}, (2, 5, 6))
    commit_files(table, [], summary={MARKER + row_checks.MARK: row_checks.as_text(checks)})
    return lake.load(table.name()), checks


def test_a_constant_that_comes_late_has_the_rows_judged_again(lake: Lake) -> None:
    """A row that was kept back for its null has the constant now, and it is in no file of the table."""
    table, first = _judged(lake)
    for name, batch, is_renewed in (("n", 2, True), ("n", 1, False), ("m", 2, False)):
        history = SchemaHistory(additions=(Addition("20", batch, name, "int", Fill("0"), retyped=False),))
        known = found(_ROW, table=table, history=history)
        if is_renewed:
            with pytest.raises(RebuildNeededError, match="checks that keep rows back changed, or columns of them did"):
                plan(_CHECKED, known, table)
        else:
            assert plan(_CHECKED, known, table).row_checks == first
        assert plan(_CHECKED, known, table, anew=True).row_checks == first


@pytest.mark.parametrize(
    ("history", "goes_on"),
    [
        (renamed(("20", "n", None)), False),
        (renamed(("20", "n", "k")), False),
        (renamed(("20", "m", "k")), True),
        (renamed(("5", "n", "k"), batch=1), True),
    ],
    ids=["dropped", "renamed", "another", "renamed_long_ago"],
)
def test_a_name_that_another_column_gets_has_the_rows_judged_again(
    lake: Lake, history: SchemaHistory, *, goes_on: bool
) -> None:
    """A row was kept back for a value of the column that had the name of the check."""
    table, first = _judged(lake)
    known = found(_ROW, table=table, history=history)
    if goes_on:
        assert plan(_CHECKED, known, table).row_checks == first
        return
    with pytest.raises(RebuildNeededError, match="or columns of them did"):
        plan(_CHECKED, known, table)
    assert plan(_CHECKED, known, table, anew=True).row_checks == first
