"""Renames of tables in formats that carry statements, beside Debezium: rows go with their table, in any delivery."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import cut
from support.histories import deliver
from support.renames import Blob, Canal, Database, Dts, Rows, Written, alone, chained, generated, swapped
from support.running import assert_ledger_closes
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import STAGES

pytestmark = [pytest.mark.spark, pytest.mark.prove]
"""``make test`` has Debezium, in ``test_renamed_tables.py`` and ``test_worlds.py``."""

FORMATS: dict[str, Written] = {"canal_json": Canal, "dts_avro": Dts, "datahub_blob": Blob}
_HISTORIES = {
    "alone": alone,
    "chained": chained,
    "swapped": swapped,
    **{f"generated_{seed}": generated(seed) for seed in range(8)},
}
_DELIVERIES = ("in_two", "in_disorder", "backwards")
_RUNS = 2
Histories = dict[tuple[str, str], Database]


def _histories(written: Written) -> Histories:
    return {
        (name, delivery): history(f"{name}_{delivery}_", written)
        for name, history in _HISTORIES.items()
        for delivery in _DELIVERIES
    }


@pytest.mark.parametrize("name", FORMATS)
def test_rows_go_with_their_table(name: str, spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Two runs whose statements come before and after the rows around them; a rename known too early may be held."""
    tables = {"shop.*": {"key": ["id"], "columns": {"id": "long", "v": "string"}}}
    fields = {"source": f"renames_{name}", "format": name, "landing": str(tmp_path / "*"), "tables": tables}
    source, histories = Source.model_validate(fields), _histories(FORMATS[name])
    runs = [cut(done.log, delivery, _RUNS) for (_, delivery), done in histories.items()]
    for run in range(_RUNS):
        deliver(tmp_path, f"run-{run}", [message for each in runs for message in each[run]])
        _run(source, last=run == _RUNS - 1)
    assert _published(lake, source, histories) == _expected(histories)
    assert_ledger_closes(lake, source.source)


def _run(source: Source, *, last: bool) -> None:
    for stage in STAGES:
        try:
            report = run_stage(stage, source)
        except ExpectationError:
            assert not last
        else:
            assert not (last and report.problems)


def _expected(histories: Histories) -> dict[str, Rows]:
    """By name; a name that no table has any more has no rows."""
    return {name: done.tables.get(name, {}) for done in histories.values() for name in done.named}


def _published(lake: Lake, source: Source, histories: Histories) -> dict[str, Rows]:
    found = {}
    for name in _expected(histories):
        table = lake.find((source.source, name))
        rows = [] if table is None else table.scan().to_arrow().to_pylist()
        found[name] = {row["id"]: row["v"] for row in rows}
        assert len(found[name]) == len(rows)
    return found
