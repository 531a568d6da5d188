"""Features of compact that meet in one table: bags, histories, soft deletes, DDL, transactions, TRUNCATE, rebuilding.

All cases are tables of one source. Beside the rows written down for each, the ways to the same events have to agree:
run by run, rebuilt from the change log, and in ``make prove`` all at once. ``explain`` has to tell the published rows.
In ``make test`` every second table is rebuilt, so that each feature is: of some kind of table.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import KINDS, START, Log
from support.feature_cases import CASES, Case
from support.feeds import published, replayed
from support.histories import deliver
from support.rounds import PROVING, how_many
from support.running import assert_ledgers_close, run_all
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, history
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.row_life import Outcome
from tidemark.sources.model import Source
from tidemark.stages import REBUILD
from tidemark.tables.schemas import COMMITTED_AT, DELETED, POSITION

pytestmark = [pytest.mark.spark, pytest.mark.more]

SOURCES = how_many(usually=("interplay",), proving=("interplay", "interplay_at_once"))
REBUILT = how_many(usually=CASES[::2], proving=CASES)
_RUNS = max(len(case.runs) for case in CASES)


def _source(name: str, landing: Path) -> Source:
    tables = {f"shop.{kind}_*": {**told, "feed": PROVING} for kind, told in KINDS.items()}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate({**fields, "max_deletes": 1})


Tables = dict[str, list[dict[str, Any]]]


def _everything(lake: Lake, source: str) -> Tables:
    """Rows of all tables of the cases, and of their histories."""
    names = [case.name for case in CASES]
    names += [history(Identifier(source, name)).name for name in names if name.startswith(("hist", "both"))]
    found = {name: lake.load((source, name)).scan().to_arrow().to_pylist() for name in names}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def _unlike_their_feeds(lake: Lake, source: str) -> list[str]:
    """The tables that are not what replaying their feeds gives, where they have feeds."""
    tables = [each for case in CASES if PROVING and lake.find(each := Identifier(source, case.name))]
    return [f"{each} is not what its feed tells" for each in tables if replayed(lake, each) != published(lake, each)]


class Ways(NamedTuple):
    """The ways to the same events, and what was told to be wrong on them."""

    by_runs: Tables
    rebuilt: Tables
    at_once: Tables | None
    """In ``make prove`` only."""
    problems: Sequence[str]

    def all(self) -> dict[str, Tables]:
        """The tables by way."""
        found = {"by_runs": self.by_runs, "rebuilt": self.rebuilt}
        return found if self.at_once is None else {**found, "at_once": self.at_once}


@pytest.fixture(scope="module")
def ways(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Ways:
    """All cases, published run by run, rebuilt, and at once."""
    landing, other = tmp_path_factory.mktemp("interplay"), tmp_path_factory.mktemp("at_once")
    source = _source("interplay", landing)
    reports, unlike = [], list[str]()
    # Only a source that ever sent a marker is waited for to send others.
    deliver(landing, "first", [Log("keyed_renamed").end(1, 0)])
    for run in range(_RUNS):
        deliver(landing, f"run-{run}", [m for case in CASES if run < len(case.runs) for m in case.runs[run]])
        reports += run_all(source).values()
        unlike += _unlike_their_feeds(lake, "interplay")
    by_runs = _everything(lake, "interplay")
    reports += [run_stage(REBUILD[0], source, table=f"shop.{case.name}") for case in REBUILT]
    reports += [run_stage(stage, source) for stage in REBUILD[1:]]
    rebuilt, at_once = _everything(lake, "interplay"), None
    unlike += _unlike_their_feeds(lake, "interplay")
    if "interplay_at_once" in SOURCES:
        deliver(other, "all", [message for case in CASES for run in case.runs for message in run])
        reports += run_all(_source("interplay_at_once", other)).values()
        at_once = _everything(lake, "interplay_at_once")
    return Ways(by_runs, rebuilt, at_once, [*(problem for report in reports for problem in report.problems), *unlike])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_is_what_its_events_lead_to(case: Case, ways: Ways, lake: Lake) -> None:
    """Every case publishes the columns and rows written beside it, whatever the way."""
    own = {POSITION, COMMITTED_AT, DELETED}
    for way, tables in ways.all().items():
        rows = [row for row in tables[case.name] if not row.get(DELETED)]
        assert {name for row in rows for name in row} - own == set(case.columns.split()), way
        told = [tuple(row[name] for name in case.columns.split()) for row in rows]
        assert sorted(told, key=repr) == sorted(case.rows, key=repr), way


@pytest.mark.parametrize("case", REBUILT, ids=lambda case: case.name)
def test_all_ways_agree(case: Case, ways: Ways) -> None:
    """Run by run, rebuilt, at once: the same rows, deleted ones and versions too, at the same positions."""
    for name in (case.name, history(Identifier("", case.name)).name):
        for way, tables in ways.all().items():
            assert tables.get(name) == ways.rebuilt.get(name), (way, name)


def test_no_run_told_of_problems_and_all_ledgers_close(ways: Ways, lake: Lake) -> None:
    """Every event is accounted for, and no table stops."""
    assert ways.problems == []
    assert_ledgers_close(lake, *SOURCES)


@pytest.mark.parametrize("name", ["emptied_by_a_statement", "emptied_by_a_late_statement"])
def test_a_statement_ends_rows_when_the_source_committed_it(name: str, ways: Ways) -> None:
    """Not when it was read, which depends on the delivery."""
    emptied = datetime.fromtimestamp(START / 1000 + 10, UTC)
    told = {kind for kind in KINDS if f"{kind}_{name}" in ways.by_runs}
    for kind in told & {"hist", "both"}:
        versions = ways.by_runs[history(Identifier("", f"{kind}_{name}")).name]
        assert {row["valid_to"] for row in versions if not row["is_current"]} == {emptied}
    marked = [row for kind in told & {"soft", "both"} for row in ways.by_runs[f"{kind}_{name}"] if row[DELETED]]
    assert {row[COMMITTED_AT] for row in marked} == {emptied}


WITH_HISTORY = [case for case in CASES if case.name.startswith(("hist", "both"))]


@pytest.mark.parametrize("case", WITH_HISTORY, ids=lambda case: case.name)
def test_the_current_versions_are_the_published_rows(case: Case, ways: Ways) -> None:
    """Value by value."""
    for way in ways.all().values():
        rows = {row["id"]: row for row in way[case.name] if not row.get(DELETED)}
        versions = {row["id"]: row for row in way[history(Identifier("", case.name)).name] if row["is_current"]}
        assert versions.keys() == rows.keys()
        for id_, row in rows.items():
            assert {name: versions[id_].get(name, False) for name in row} == row


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_explain_tells_the_published_rows(case: Case, ways: Ways, lake: Lake) -> None:
    """The cells that stand are those of the row, deleted or not, and so is its position."""
    for row in ways.rebuilt[case.name]:
        told = {name: row[name] for name in case.columns.split()}
        wanted = (
            {"id": row["id"]} if "id" in row else {name: value for name, value in told.items() if value is not None}
        )
        life = explain(lake, f"interplay.{case.name}", [f"{name}={value}" for name, value in wanted.items()])
        assert row in life.rows.to_pylist()
        standing = [chapter for chapter in life.chapters if chapter.outcome == Outcome.STANDS]
        adding = [chapter for chapter in standing if chapter.step.position == row[POSITION]]
        assert adding == standing[-1:] or case.name.startswith("bag")
        cells = [
            (name, cell)
            for chapter in (adding if case.name.startswith("bag") else standing)
            for name, cell in chapter.cells.items()
            if cell.stands
        ]
        found = {**dict.fromkeys(told), "id": row.get("id"), **{name: cell.new for name, cell in cells}}
        assert {name: _text(found[name]) for name in told} == {name: _text(value) for name, value in told.items()}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
