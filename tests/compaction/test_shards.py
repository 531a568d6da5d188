"""Tables that are folded into one: each shard is what its own events lead to, whatever happens in the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log
from support.feature_cases import CASES, Case
from support.histories import deliver
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.stages import REBUILD
from tidemark.tables.schemas import DELETED

pytestmark = pytest.mark.spark

SHARDS = [case for case in CASES if case.name.startswith("both_") and "differ_in_case" not in case.name]
"""Cases with a history and soft deletes: all of them are folded into one table, and each keeps its own DDL."""


class Ways(NamedTuple):
    """The rows of all shards, by the way that they came, and what was told to be wrong."""

    by_runs: list[dict[str, Any]]
    rebuilt: list[dict[str, Any]]
    versions: list[dict[str, Any]]
    problems: Sequence[str]


def _source(name: str, landing: Path, tables: dict[str, Any]) -> Source:
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate({**fields, "max_deletes": 1})


def _rows(lake: Lake, *name: str) -> list[dict[str, Any]]:
    return sorted(lake.load(name).scan().to_arrow().to_pylist(), key=repr)


@pytest.fixture(scope="module")
def ways(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Ways:
    """All shards, published run by run and rebuilt."""
    landing = tmp_path_factory.mktemp("folded")
    told = {"target": "both", "add": {"shard": "$1"}, "key": ["shard", "id"], "history": True, "deletes": "soft"}
    source = _source("folded", landing, {r"shop\.both_(\w+)": told})
    reports = []
    deliver(landing, "first", [Log("both_renamed").end(1, 0)])
    for run in range(max(len(case.runs) for case in SHARDS)):
        deliver(landing, f"run-{run}", [m for case in SHARDS if run < len(case.runs) for m in case.runs[run]])
        reports += run_all(source).values()
    by_runs = _rows(lake, "folded", "both")
    reports += [run_stage(stage, source) for stage in REBUILD]
    problems = [problem for report in reports for problem in report.problems]
    return Ways(by_runs, _rows(lake, "folded", "both"), _rows(lake, "folded", "both__history"), problems)


@pytest.mark.parametrize("case", SHARDS, ids=lambda case: case.name)
def test_a_shard_is_what_its_events_lead_to(case: Case, ways: Ways) -> None:
    """Renames, drops, defaults, TRUNCATEs, late events and transactions of one shard touch its own rows alone."""
    mine = [row for row in ways.by_runs if row[SHARD_COLUMN] == f"shop.{case.name}" and not row[DELETED]]
    columns = case.columns.split()
    assert sorted((tuple(row[name] for name in columns) for row in mine), key=repr) == sorted(case.rows, key=repr)
    assert {row["shard"] for row in mine} == {case.name.removeprefix("both_")}
    others = {name for row in mine for name, value in row.items() if value is not None and not name.startswith("_cdc_")}
    assert others <= {"shard", *columns}


def test_runs_and_a_rebuild_agree(ways: Ways, lake: Lake) -> None:
    """At the same positions, deleted rows too; every event is accounted for, and no table stops."""
    assert ways.problems == []
    assert ways.by_runs == ways.rebuilt
    assert_ledger_closes(lake, "folded")


def test_the_current_versions_are_the_published_rows(ways: Ways) -> None:
    """In every shard."""
    current = [row for row in ways.versions if row["is_current"]]
    alive = [{**row} for row in ways.rebuilt if not row.pop(DELETED)]
    assert sorted(({name: row[name] for name in alive[0]} for row in current), key=repr) == sorted(alive, key=repr)
