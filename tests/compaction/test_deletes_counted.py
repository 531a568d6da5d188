"""What a cut deletes, as its readers see it: of tables with soft deletes, without a key, and built again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.histories import COLUMNS, Table, deliver, message, position
from support.reference import Change
from support.rounds import PROVING
from support.running import run_all
from tidemark.events import Operation
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import REBUILD

pytestmark = pytest.mark.spark
SOFT, PARTS, CLEARED = Table("soft"), Table("parts"), Table("cleared")
BAG, SHRUNK = Table("bag", key=()), Table("shrunk", key=())


def _changed(at: int, number: int) -> Change:
    before, after = ({"id": number, "name": name, "note": "b"} for name in ("a", "c"))
    return Change("bag", Operation.UPDATE, position(at, Operation.UPDATE), (), before, after)


def _deleted(lake: Lake, source: Source) -> dict[str, int]:
    """Rows that the newest cut deletes, by table."""
    ledger = Ledger(lake, source.source)
    newest = max(row["cut"] for row in ledger.read("tables"))
    return {row["object"].partition(".")[2]: row["deleted"] for row in ledger.read("tables") if row["cut"] == newest}


@pytest.mark.more
def test_rows_that_readers_lose(source: Callable[..., Source], spark: SparkSession, lake: Lake) -> None:
    """Marked rows are lost to those who leave them out; a row of a bag that changed is not lost."""
    keyed = {"key": ["id"], "columns": COLUMNS, "deletes": "soft"}
    tables = {"shop.bag": {"key": [], "columns": COLUMNS}, "shop.shrunk": {"key": [], "columns": COLUMNS}}
    fields = {"tables": {**tables, "shop.*": keyed}, "max_deletes": 1}
    shop = source("debezium_json", **fields)
    landing = Path(shop.landing).parent
    everything = [
        table.insert(number, number, "a", "b")
        for table in (SOFT, PARTS, CLEARED, BAG, SHRUNK)
        for number in range(1, 6)
    ]
    deliver(landing, "a", map(message, everything))
    run_all(shop)
    deliver(landing, "b", map(message, [
        *(SOFT.delete(20 + number, number, "a", "b") for number in (1, 2, 3)),
        SOFT.delete(24, 99, "never", "seen"),
        SOFT.delete(25, 4, "a", "b"), SOFT.insert(26, 4, "again", "b"),
        SOFT.update(27, 15, "a", "b", was=(5,)),
        PARTS.update(20, 1, "c", ...), PARTS.delete(21, 2, "a", "b"),
        CLEARED.truncate(20), CLEARED.insert(21, 1, "a", "b"),
        *(_changed(20 + number, number) for number in range(1, 6)),
        SHRUNK.delete(20, 1, "a", "b"), SHRUNK.delete(21, 2, "a", "b"), SHRUNK.insert(22, 7, "a", "b"),
    ]))  # fmt: skip
    run_all(shop)
    assert _deleted(lake, shop) == {"soft": 3, "parts": 1, "cleared": 5, "bag": 0, "shrunk": 1}
    if not PROVING:
        return
    deliver(landing, "c", map(message, [
        SOFT.delete(30, 1, "a", "b"), CLEARED.truncate(30), BAG.truncate(30), BAG.insert(31, 1, "a", "b"),
    ]))  # fmt: skip
    run_all(shop)
    assert _deleted(lake, shop) == {"soft": 0, "cleared": 1, "bag": 4}


def test_rows_that_a_rebuild_loses(source: Callable[..., Source], spark: SparkSession, lake: Lake) -> None:
    """Built again with soft deletes and a shorter key, a table has as many rows as before, and fewer that are alive."""
    table = Table("lines", key=("id", "line"), columns=("id", "line", "name"))
    settings = {"key": ["id", "line"], "columns": COLUMNS}
    shop = source("debezium_json", tables={"shop.*": settings}, max_deletes=1)
    rows = [(1, 1), (1, 2), (2, 1), (2, 2)]
    changes = [table.insert(number, *row, "a") for number, row in enumerate(rows, 1)]
    changes += [table.delete(9 + number, 2, number, "a") for number in (1, 2)]
    deliver(Path(shop.landing).parent, "a", map(message, changes))
    run_all(shop)
    other = Source.model_validate(
        {**shop.model_dump(by_alias=True), "tables": {"shop.*": {**settings, "key": ["id"], "deletes": "soft"}}}
    )
    for stage in REBUILD:
        run_stage(stage, other)
    assert lake.load((shop.source, "lines")).scan().to_arrow().num_rows == 2
    assert _deleted(lake, shop) == {"lines": 1}
