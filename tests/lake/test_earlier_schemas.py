"""Which columns a table had at an earlier snapshot, and what shows when ``main`` goes back to it."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.types import StringType

from tidemark.lake.branches import head, put_back
from tidemark.lake.earlier_schemas import has_other_names, schema_with
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier


def _append(table: Table, **cells: str) -> int:
    """Add a row as a cut does: under the names from before the cut. Return the snapshot."""
    schema = table.refresh().schema().as_arrow()
    table.append(pa.Table.from_pylist([cells], schema=schema))
    return head(table.refresh())


def test_a_snapshot_has_the_names_that_its_cut_published(lake: Lake) -> None:
    """Three cuts; the second drops ``a`` and gives its name to ``b``, the third adds a column."""
    texts = pa.schema([pa.field(name, pa.string()) for name in ("id", "a", "b")])
    table = lake.ensure(Identifier("earlier", "names"), texts, {})
    first = _append(table, id="1", a="old", b="kept")
    assert not has_other_names(table, first)
    second = _append(table, id="2", b="kept")
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("a")
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.rename_column("b", "a")
    table.refresh()
    assert [has_other_names(table, snapshot) for snapshot in (first, second)] == [True, False]
    with table.update_schema() as change:
        change.add_column("c", StringType())
    third = _append(table, id="3", a="kept", c="new")
    assert [has_other_names(table, snapshot) for snapshot in (first, second, third)] == [True, False, False]
    assert schema_with(table, second).column_names == ["id", "a", "c"]
    put_back(table, second, schema_with(table, second))
    assert {row["a"] for row in table.refresh().scan().to_arrow().to_pylist()} == {"kept"}
    put_back(table, first, schema_with(table, first))
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": "1", "a": "old", "b": "kept"}]
