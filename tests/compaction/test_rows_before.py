"""How many rows a table has before a cut, without Spark: by the ledger, or counted if ``main`` stands elsewhere."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest

from support.hand_built import SCHEMA, TABLES, Source
from support.running import die_at
from tidemark.compaction import rows_before
from tidemark.compaction.run import Cut, Run, Standing
from tidemark.errors import PublishConflictError
from tidemark.lake.branches import head
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import candidate_branch
from tidemark.ledger import cuts, restoring
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.sources.model import Source as SourceFile

BY_LEDGER = 100
"""The ledger of these tests says a hundred rows more than there are, so that a test sees which of the two was taken."""


@pytest.fixture
def shop(lake: Lake) -> Source:
    """Return a source of this test's own."""
    return Source(lake)


def _build(shop: Source, number: int) -> CutRow:
    """Build a cut as compact does: its rows have the snapshots."""
    cut = shop.build(number)
    rows = [
        msgspec.structs.replace(
            row,
            rows_after=(row.rows_after or 0) + BY_LEDGER,
            snapshot=head(shop.lake.load(row.identifier), candidate_branch(number)),
        )
        for row in cuts.tables_of(shop.ledger, number)
    ]
    shop.ledger.replace(TableRow, rows, equals("cut", number))
    return cut


def _publish(shop: Source, *numbers: int) -> None:
    for number in numbers:
        cuts.publish(shop.lake, shop.ledger, _build(shop, number))


def _stay(shop: Source, number: int) -> None:
    """Publish a cut in which all events of each table wait."""
    rows = [
        msgspec.structs.replace(row, cut=number, state=TableState.UNMOVED, snapshot=None)
        for row in shop.ledger.published_tables().values()
    ]
    shop.ledger.replace(TableRow, rows, equals("cut", number))
    cut = CutRow(cut=number, state=CutState.CHECKED, batch=number)
    shop.ledger.replace(CutRow, [cut], equals("cut", number))
    cuts.publish(shop.lake, shop.ledger, cut)


def _rows_before(shop: Source) -> list[int]:
    """Return how many rows the next cut finds in each table."""
    run = Run(
        session=cast(Any, None),
        lake=shop.lake,
        source=SourceFile.model_validate({"source": shop.name, "format": "canal_json", "landing": "landing/*"}),
        cut=Cut(number=9, batch=9),
        standing=Standing(batch=8),
        published=shop.ledger.published_tables(),
        requests={},
    )
    return [rows_before.rows_before(run, name, shop.target(name)) for name in TABLES]


def test_the_ledger_says_it_where_main_stands_on_what_it_counted(shop: Source) -> None:
    """Also if the newest cuts left the table where it was, or others rewrote its files; a new table has no row."""
    assert _rows_before(shop) == [0, 0]
    _publish(shop, 1)
    assert _rows_before(shop) == [BY_LEDGER + 1, BY_LEDGER + 1]
    _stay(shop, 2)
    assert _rows_before(shop) == [BY_LEDGER + 1, BY_LEDGER + 1]
    shop.lake.load(shop.target("one")).append(pa.table({"id": []}, SCHEMA))  # as a rewrite of its files does
    assert _rows_before(shop) == [BY_LEDGER + 1, BY_LEDGER + 1]


@pytest.mark.parametrize("published", [[], [1], [1, 2]], ids=["nothing", "a_cut", "cuts"])
def test_a_table_that_a_lost_cut_moved_is_counted(
    shop: Source, published: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next cut goes on from its rows; the other table is as the ledger says."""
    _publish(shop, *published)
    if published == [1, 2]:
        _stay(shop, 3)
    cut = _build(shop, 4)
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.ledger.cuts.fast_forward", 3)
        with pytest.raises(SystemExit):
            cuts.publish(shop.lake, shop.ledger, cut)
    two = shop.lake.load(shop.target("two"))
    two.append(two.scan().to_arrow())
    with pytest.raises(PublishConflictError, match=r"main of .*two moved since"):
        cuts.publish(shop.lake, shop.ledger, cut)
    by_ledger = BY_LEDGER + len(published) if published else 0
    assert _rows_before(shop) == [len(published) + 1, by_ledger]


def test_a_table_that_a_killed_restore_left_is_counted(shop: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """One table went back to what the ledger counted, and the other still shows a later cut."""
    _publish(shop, 1, 2, 3)
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.ledger.restoring.put_back", 3)
        with pytest.raises(SystemExit):
            restoring.restore(shop.lake, shop.ledger, 1)
    assert _rows_before(shop) == [BY_LEDGER + 1, 3]
