"""Which check reports which kind of wrong row: the code is replaced by a version that is wrong in one table each.

Nothing else is reported, and nothing about the table where nothing is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from support.histories import canal, deliver
from support.rounds import how_many
from tidemark.compaction import merging
from tidemark.errors import LedgerError
from tidemark.folding.key_bounds import KeyBounds
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.quality.value_bounds import VALUE_BOUNDS
from tidemark.sources.model import Source
from tidemark.stages import STAGES
from tidemark.tables.plan import Plan

pytestmark = [pytest.mark.spark, pytest.mark.more]

_TYPES = {"id": "int", "name": "varchar(9)", "size": "tinyint unsigned"}
_UNEVEN = how_many(usually=("kept",), proving=("kept", "twice"))
"""Tables whose ledger does not close, as soon as the code is wrong."""
_TABLES = ("right", "stale", "signed", *_UNEVEN)


def _message(table: str, at: int, kind: str, *row: Any, old: dict[str, Any] | None = None) -> bytes:
    flat = json.loads(canal(table, kind, _TYPES, row, old=old))
    return json.dumps({**flat, "es": 1767225600000 + 1000 * at}).encode()


_upsert = merging.upsert


def _wrong(*tables: str) -> Callable[..., None]:
    """Return the writing of rows, wrong in some tables."""

    def upsert(ready: DataFrame, plan: Plan, branch: str, bounds: KeyBounds, *, by_cell: bool) -> None:
        wrong = plan.found.name if plan.found.name in tables else ""
        if wrong == "stale":  # an older value wins
            ready = ready.withColumn("c1", F.lit("old"))
        if wrong == "signed":  # a number without a sign is read with one
            ready = ready.withColumn("c2", F.lit(-56))
        if wrong == "kept":  # a delete does nothing
            ready = ready.where(~F.col("deleted"))
        _upsert(ready, plan, branch, bounds, by_cell=by_cell)
        if wrong == "twice":  # a row is added where one was to be replaced
            merging.append(ready.where(~F.col("deleted")), plan, branch)

    return upsert


def _told(lake: Lake, source: str, cut: int) -> dict[str, set[str]]:
    """Return by table the checks of a cut that did not pass."""
    found: dict[str, set[str]] = {name: set() for name in _TABLES}
    for row in Ledger(lake, source).checks():
        if row.cut == cut and not row.success:
            found[row.target.partition(".")[2]].add(row.name)
    return found


def test_each_kind_of_wrong_row_has_a_check_that_tells_it(
    source: Callable[..., Source], spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value beyond its type at once, another by the row's next event; rows that are lost or doubled by counts."""
    tables = {f"shop.{name}": {"key": ["id"]} for name in _TABLES}
    shop = source("canal_json", tables=tables, invariants={"volume": "off"}, max_deletes=1)
    folder = Path(shop.landing).parent

    def delivered(cut: int, names: Sequence[str], *changes: tuple[str, tuple[Any, ...], dict[str, Any] | None]) -> None:
        placed_changes = [(10 * cut + place, change) for place, change in enumerate(changes)]
        messages = [
            _message(name, at, kind, *row, old=old) for name in names for at, (kind, row, old) in placed_changes
        ]
        deliver(folder, str(cut), messages)

    def run(*wrong: str) -> list[str]:
        monkeypatch.setattr(merging, "upsert", _wrong(*wrong))
        return [problem for stage in STAGES for problem in run_stage(stage, shop, None, None).problems]

    delivered(1, _TABLES, ("INSERT", (1, "a", 9), None), ("INSERT", (2, "b", 9), None))
    assert run() == []
    delivered(2, ("right", "stale", "signed"), ("UPDATE", (1, "c", 200), {"name": "a", "size": 9}))
    assert run("stale", "signed") == []
    delivered(3, ("right", "stale"), ("UPDATE", (1, "d", 200), {"name": "c"}))
    assert run() == []
    # These tables hold what the first cut brought.
    delivered(4, _UNEVEN, ("UPDATE", (1, "e", 200), {"name": "a", "size": 9}), ("DELETE", (2, "b", 9), None))
    for wrong in _UNEVEN:
        with pytest.raises(LedgerError, match=f"shop.{wrong}: the ledger does not close"):
            run(wrong)
    assert run() == [], "right again, the next run goes on"
    nothing: dict[str, set[str]] = {name: set() for name in _TABLES}
    assert [_told(lake, shop.source, cut) for cut in (1, 2, 3, 4)] == [
        nothing,
        nothing | {"signed": {VALUE_BOUNDS}},
        nothing | {"stale": {"before images that are not the row before"}},
        nothing,
    ]
