"""The ledger as tables: its files, without Spark."""

from __future__ import annotations

from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import RebuildRow


def test_a_ledger_table_is_gathered_for_the_source_that_crowds_it(lake: Lake) -> None:
    """Rows of other sources, however many their files, are no reason to rewrite; nor is it an error to have none."""
    many, few = Ledger(lake, "of_many_cuts"), Ledger(lake, "of_no_cut")
    for number in range(5):
        many.replace(RebuildRow, [RebuildRow(object=f"shop.t{number}", asked="now")])

    def files(source: str) -> int:
        where = equals("source", source)
        return len(list(lake.load(("ledger", "rebuilds")).scan(row_filter=where).plan_files()))

    few.rewrite("rebuilds", 5)
    assert files("of_many_cuts") == 5
    many.rewrite("rebuilds", 6)
    assert files("of_many_cuts") == 5
    requests = many.rebuild_requests()
    many.rewrite("rebuilds", 5)
    assert files("of_many_cuts") == 1
    assert many.rebuild_requests() == requests
