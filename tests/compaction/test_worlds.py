"""Loads, new logs, renames and keys that change, all in one history: in any delivery the tables are the source's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, cut
from support.histories import deliver
from support.renames import Rows
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes
from support.worlds import RESTARTED_AT, World
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger.contradiction_rows import BEFORE_IMAGES
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import STAGES, StageReport

pytestmark = [pytest.mark.spark, pytest.mark.more]

_RUNS, _STEPS = how_many(usually=(2, 32), proving=(3, 60))
_DELIVERIES = ("one_run", "in_order", "in_disorder", "backwards") if PROVING else ("in_disorder",)

_IN_ORDER = ("shop.one_run_", "shop.in_order_")
"""Beginnings of the names of tables whose events come in the order of their log."""

_MOVED = Log("moved_a")
_ASIDE = [
    [_MOVED.put(1, id=1, v="a"), _MOVED.put(2, id=2, v=...)],
    [_MOVED.delete(2, id=1), _MOVED.statement(3, "RENAME TABLE moved_a TO moved_b")],
]
"""By run: a row moves to another key. Its value is known once its DELETE comes, and its table has another name then."""


@pytest.mark.parametrize("seed", how_many(usually=(5,), proving=tuple(range(12))))
def test_any_delivery_gives_the_tables_of_the_source(
    spark: SparkSession, lake: Lake, tmp_path: Path, seed: int
) -> None:
    """In the end nothing is held or set aside, and a name that no table has any more has no rows.

    Delivered in order, no before image is reported to differ from the row before.
    """
    worlds = {delivery: World(f"{delivery}_", seed, steps=_STEPS) for delivery in _DELIVERIES}
    name = f"worlds_{seed}"
    tables = {"shop.*": {"key": ["id"], "columns": {"id": "long", "v": "string"}}}
    fields = {"source": name, "format": "debezium_json", "landing": str(tmp_path / "*"), "tables": tables}
    source = Source.model_validate({**fields, "max_deletes": 1, "log_restarts": [RESTARTED_AT]})
    runs = [cut(world.log, delivery, _RUNS) for delivery, world in worlds.items()]
    for run, aside in enumerate([*_ASIDE, *[[]] * _RUNS][:_RUNS]):
        deliver(tmp_path, f"run-{run}", [*(message for each in runs for message in each[run]), *aside])
        reports = [_run(stage, source) for stage in STAGES]
    assert [report.problems for report in reports] == [()] * len(STAGES)
    expected = {table: world.tables.get(table, {}) for world in worlds.values() for table in world.names}
    expected |= {"moved_a": {}, "moved_b": {2: "a"}}
    assert {table: _rows(lake, name, table) for table in expected} == expected
    assert lake.load(("quarantine", name)).scan().to_arrow().num_rows == 0
    contradicted = {row.object for row in Ledger(lake, name).contradictions() if row.kind == BEFORE_IMAGES}
    assert {table for table in contradicted if table.startswith(_IN_ORDER)} == set()
    assert_ledger_closes(lake, name)


def _run(stage: str, source: Source) -> StageReport:
    """Run a stage. A cut is held while statements are there that it cannot follow yet."""
    try:
        return run_stage(stage, source)
    except ExpectationError as error:
        return StageReport(stage=stage, source=source.source, summary={}, problems=(str(error),))


def _rows(lake: Lake, source: str, name: str) -> Rows:
    table = lake.find((source, name))
    rows = [] if table is None else table.scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found
