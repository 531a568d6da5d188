"""The newest row of each table, out of the rows of all cuts; and a ledger that is read once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.rows import CutRow, RebuildRow, TableRow

SOURCE = "newest"
ROWS = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["x", "y", None]),
        st.sampled_from(["published", "stopped"]),
    ),
    max_size=12,
    unique_by=lambda row: row[:2],
)


@pytest.mark.parametrize("kind", [Ledger, ReadOnce])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, published=st.sets(st.integers(1, 4)))
def test_the_newest_row_of_each_table_is_found(
    lake: Lake, kind: type[Ledger], rows: list[tuple[int, str, str | None, str]], published: set[int]
) -> None:
    """Of each table the row of its newest cut, whatever was written when: of all cuts, or of those published."""
    ledger = Ledger(lake, SOURCE)
    written = [
        TableRow(cut=cut, object=name, target=target and f"{SOURCE}.{target}", state=state, batch=cut)
        for cut, name, target, state in rows
    ]
    ledger.forget(TableRow)
    ledger.replace(TableRow, written)
    states = {number: "published" if number in published else "failed" for number in range(1, 5)}
    ledger.replace(CutRow, [CutRow(cut=cut, state=state, batch=cut) for cut, state in states.items()], above("cut", 0))
    asked = kind(lake, SOURCE)
    in_order = sorted(written, key=lambda row: row.cut)
    assert {name: row.cut for name, row in asked.published_tables().items()} == {
        row.object: row.cut for row in in_order if row.cut in published
    }
    assert asked.targets() == {row.object: row.identifier for row in in_order if row.target}
    ever = {(row.target, row.object) for row in written if row.target and row.state == "published"}
    if all(row.target for row in written if row.state == "published"):
        assert cuts.ever_published(asked).keys() == ever
        for cut in published:
            shown = {row.target: row.cut for row in in_order if row.state == "published" and row.cut <= cut}
            assert {target: row.cut for target, row in cuts.shown_by(asked, cut).items()} == shown


def test_a_ledger_that_is_read_once_knows_what_it_wrote(lake: Lake) -> None:
    """What another one writes meanwhile it does not see: that would be of another run."""
    once, other = ReadOnce(lake, "once"), Ledger(lake, "once")
    other.request_rebuild(["a"])
    assert once.rebuild_requests().keys() == {"a"}
    other.request_rebuild(["b"])
    assert once.rebuild_requests().keys() == {"a"}
    once.answered({"a": once.rebuild_requests()["a"]})
    assert once.rebuild_requests().keys() == {"b"}
    once.replace(RebuildRow, [RebuildRow(object="c", asked="now")], equals("object", "c"))
    assert once.rebuild_requests().keys() == {"b", "c"}
