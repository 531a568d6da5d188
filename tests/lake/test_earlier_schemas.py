"""Which columns a table had at an earlier snapshot, and what shows when ``main`` goes back to it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType

from tidemark.lake import pending_schema
from tidemark.lake.branches import BRINGS, branch_from_main, fast_forward, head, put_back
from tidemark.lake.earlier_schemas import has_other_names, names_with, schema_with
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, candidate_branch, cut_tag
from tidemark.lake.properties import shown as shown_property
from tidemark.queries import sql


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


@pytest.mark.parametrize("rebuilt", [False, True], ids=["then_a_cut", "then_a_rebuild"])
def test_a_cut_is_read_under_the_names_that_it_published(lake: Lake, *, rebuilt: bool) -> None:
    """The second cut drops ``a`` and gives its name to ``b``. No cut after it changes what it shows."""
    texts = pa.schema([pa.field(name, pa.string()) for name in ("id", "a", "b")])
    table = lake.ensure(Identifier("earlier", f"shown_{rebuilt}"), texts, {})
    snapshots = []
    today: list[dict[str, str | None]] = [{}, {"a": None, "b": "a"}, {"a": "c"}]
    for number, changed in enumerate(today, start=1):
        branch = candidate_branch(number)
        branch_from_main(table, branch)
        table = pending_schema.plan_pending(table.refresh(), number, changed, {})
        row = {"id": str(number), "a": "kept"} if number == 3 else {"id": str(number), "a": "old", "b": "kept"}
        table.append(
            pa.Table.from_pylist([row], schema=table.schema().as_arrow()),
            snapshot_properties={BRINGS: "{}"} if rebuilt and number == 3 else {},
            branch=branch,
        )
        snapshots.append(head(table.refresh(), branch))
        fast_forward(
            table, branch, cut_tag(number), [] if rebuilt and number == 3 else pending_schema.changes(table, number)
        )
    shown = [{"id": "id", "a": "a", "b": "b"}, {"id": "id", "b": "a"}, {"id": "id", "a": "a" if rebuilt else "c"}]
    assert [names_with(table, snapshot) for snapshot in snapshots] == shown
    rows = sql.streamed(table, None).read_all().sort_by("id").to_pylist()
    assert [*rows[0]] == ["id", "a" if rebuilt else "c"]
    seen = sql.streamed(table, snapshots[1]).read_all().sort_by("id").to_pylist()
    assert seen == [{"id": "1", "a": "kept"}, {"id": "2", "a": "kept"}]
    seen = sql.streamed(table, snapshots[0]).read_all().to_pylist()
    assert seen == [{"id": "1", "a": "old", "b": "kept"}]
    assert shown_property(table.properties).keys() == {snapshots[1]} | ({snapshots[2]} if not rebuilt else set())
