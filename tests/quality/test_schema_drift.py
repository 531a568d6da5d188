"""Columns that change, of tables that a cut builds anew: the candidate has its schema, and the table has it not yet."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from tidemark.lake import copies
from tidemark.lake.branches import branch_from_main, fast_forward, head
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, candidate_branch
from tidemark.ledger.rows import TableRow
from tidemark.quality.schema_drift import changes

BEFORE = {"id": pa.int64(), "name": pa.string(), "size": pa.int32(), "code": pa.int64(), "_cdc_position": pa.string()}
CUT = 2


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BEFORE, []),
        (BEFORE | {"code": pa.string()}, ["code is now string"]),
        (BEFORE | {"size": pa.int64()}, ["size widened from int to long"]),
        (BEFORE | {"note": pa.string()}, ["note added as string"]),
        ({name: kind for name, kind in BEFORE.items() if name != "name"}, ["name dropped"]),
        (BEFORE | {"_cdc_deleted": pa.bool_()}, []),
    ],
    ids=["same", "type", "wider", "added", "dropped", "own"],
)
def test_a_table_built_anew_shows_what_changed(
    lake: Lake, request: pytest.FixtureRequest, after: dict[str, pa.DataType], expected: list[str]
) -> None:
    """A column of another type has a new id there, so its name says which column it was."""
    target, branch = Identifier("drifting", request.node.callspec.id), candidate_branch(CUT)
    _append(lake, target, BEFORE, candidate_branch(1))
    fast_forward(lake.load(target), candidate_branch(1))
    with copies.emptied(lake) as beside:
        _append(beside, target, after, branch)
        beside.adopt(branch)
    table = lake.load(target)
    assert table.schema().as_arrow().names == list(BEFORE)
    assert _changes(table) == expected


def test_a_name_that_a_cut_gave_is_not_reported_as_a_change_of_a_later_rebuild(lake: Lake) -> None:
    """The newest snapshot was written before its column got that name, which readers see."""
    target, branch = Identifier("drifting", "renamed"), candidate_branch(CUT)
    _append(lake, target, BEFORE, candidate_branch(1))
    fast_forward(lake.load(target), candidate_branch(1))
    with lake.load(target).update_schema() as update:
        update.rename_column("name", "called")
        update.delete_column("code")
    after = {"id": pa.int64(), "called": pa.string(), "size": pa.int32(), "_cdc_position": pa.string()}
    with copies.emptied(lake) as beside:
        _append(beside, target, after, branch)
        beside.adopt(branch)
    assert _changes(lake.load(target)) == []


def _changes(table: Table) -> list[str]:
    base, candidate = head(table), head(table, candidate_branch(CUT))
    row = TableRow(cut=CUT, object="a", state="candidate", batch=CUT, base=base, snapshot=candidate)
    return list(changes(table, row))


def _append(lake: Lake, target: Identifier, columns: dict[str, pa.DataType], branch: str) -> None:
    """Add no row to a branch of a table: it gets a snapshot with its schema."""
    schema = pa.schema(list(columns.items()))
    branch_from_main(lake.ensure(target, schema, {}), branch).append(schema.empty_table(), branch=branch)
