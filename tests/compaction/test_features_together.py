"""Features of compact that meet in one table: bags, histories, soft deletes, DDL, transactions, TRUNCATE, rebuilding.

All cases are tables of one source. Beside the rows written down for each, the ways to the same events have to agree:
run by run, rebuilt from the change log, and in ``make prove`` all at once. ``explain`` has to show the published rows.
In ``make test`` cases share tables, as far as each can have rows and columns of its own there.
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
from support.rounds import PROVING, how_many, in_two_runs
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
TABLES = sorted({case.seat.table for case in CASES})
REBUILT = how_many(
    usually=["both_shared"],
    proving=TABLES,
)
WITH_HISTORY = [table for table in TABLES if table.startswith(("hist", "both"))]
DELIVERED = [in_two_runs(case.runs, last=case.name.startswith("bag")) for case in CASES]
"""Messages by run. In ``make test`` the first two runs are one, of tables without a key the last two."""
_RUNS = max(map(len, DELIVERED))


def _source(name: str, landing: Path) -> Source:
    tables = {f"shop.{kind}_*": {**settings, "feed": PROVING} for kind, settings in KINDS.items()}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate({**fields, "max_deletes": 1})


Tables = dict[str, list[dict[str, Any]]]


def _everything(lake: Lake, source: str) -> Tables:
    """Rows of all tables of the cases, and of their histories."""
    names = TABLES + [history(Identifier(source, name)).name for name in WITH_HISTORY]
    found = {name: lake.load((source, name)).scan().to_arrow().to_pylist() for name in names}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def _unlike_their_feeds(lake: Lake, source: str) -> list[str]:
    """The tables that are not what replaying their feeds gives, where they have feeds."""
    tables = [each for name in TABLES if PROVING and lake.find(each := Identifier(source, name))]
    return [f"{each} is not what its feed tells" for each in tables if replayed(lake, each) != published(lake, each)]


class Ways(NamedTuple):
    """The tables by each way to the same events, and the problems that were reported on these ways."""

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
        deliver(landing, f"run-{run}", [m for runs in DELIVERED if run < len(runs) for m in runs[run]])
        reports += run_all(source).values()
        unlike += _unlike_their_feeds(lake, "interplay")
    by_runs = _everything(lake, "interplay")
    reports += [run_stage(REBUILD[0], source, table=f"shop.{table}") for table in REBUILT]
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
    columns = {name for other in CASES if other.seat.table == case.seat.table for name in other.columns}
    for way, tables in ways.all().items():
        rows = [row for row in tables[case.seat.table] if not row.get(DELETED)]
        assert {name for row in rows for name in row} - own == columns, way
        assert sorted(map(case.values, case.own(rows)), key=repr) == sorted(case.rows, key=repr), way


@pytest.mark.parametrize("table", REBUILT)
def test_all_ways_agree(table: str, ways: Ways) -> None:
    """Run by run, rebuilt, at once: the same rows, deleted ones and versions too.

    Built again, they are at the same positions. A dump that has all of it at once is another file, and positions hold
    the place in the dump.
    """
    for name in (table, history(Identifier("", table)).name):
        assert ways.by_runs.get(name) == ways.rebuilt.get(name), name
        if ways.at_once is not None:
            assert _elsewhere(ways.at_once.get(name)) == _elsewhere(ways.rebuilt.get(name)), name


def _elsewhere(rows: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The same rows without their positions."""
    kept = [{name: value for name, value in row.items() if name != POSITION} for row in rows or ()]
    return None if rows is None else sorted(kept, key=repr)


def test_no_run_told_of_problems_and_all_ledgers_close(ways: Ways, lake: Lake) -> None:
    """Every event is accounted for, and no table stops."""
    assert ways.problems == []
    assert_ledgers_close(lake, *SOURCES)


@pytest.mark.parametrize(
    "name", [pytest.param("emptied_by_a_statement", marks=pytest.mark.prove), "emptied_by_a_late_statement"]
)
def test_a_statement_ends_rows_when_the_source_committed_it(name: str, ways: Ways) -> None:
    """Not when it was read, which depends on the delivery."""
    emptied = datetime.fromtimestamp(START / 1000 + 10, UTC)
    kinds = {kind for kind in KINDS if f"{kind}_{name}" in ways.by_runs}
    assert kinds & {"hist", "soft", "both"}
    for kind in kinds & {"hist", "both"}:
        versions = ways.by_runs[history(Identifier("", f"{kind}_{name}")).name]
        assert {row["valid_to"] for row in versions if not row["is_current"]} == {emptied}
    for kind in kinds & {"soft", "both"}:
        marked = [row for row in ways.by_runs[f"{kind}_{name}"] if row[DELETED]]
        assert {row[COMMITTED_AT] for row in marked} == {emptied}


@pytest.mark.parametrize("table", WITH_HISTORY)
def test_the_current_versions_are_the_published_rows(table: str, ways: Ways) -> None:
    """Value by value."""
    for way in ways.all().values():
        rows = {row["id"]: row for row in way[table] if not row.get(DELETED)}
        versions = {row["id"]: row for row in way[history(Identifier("", table)).name] if row["is_current"]}
        assert versions.keys() == rows.keys()
        for id_, row in rows.items():
            assert {name: versions[id_].get(name, False) for name in row} == row


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_explain_tells_the_published_rows(case: Case, ways: Ways, lake: Lake) -> None:
    """The cells that stand are the cells of the row, deleted or not, and the position is the row's."""
    table, is_bag = case.seat.table, case.name.startswith("bag")
    for row in case.own(ways.rebuilt[table]):
        values = {name: row[name] for name in case.columns}
        wanted = {name: value for name, value in values.items() if value is not None and (name == "id" or is_bag)}
        life = explain(lake, f"interplay.{table}", [f"{name}={value}" for name, value in wanted.items()])
        assert row in life.rows.to_pylist()
        standing = [chapter for chapter in life.chapters if chapter.outcome == Outcome.STANDS]
        adding = [chapter for chapter in standing if chapter.step.position == row[POSITION]]
        assert adding == standing[-1:] or is_bag
        cells = [
            (name, cell)
            for chapter in (adding if is_bag else standing)
            for name, cell in chapter.cells.items()
            if cell.stands
        ]
        found = {**dict.fromkeys(values), "id": row.get("id"), **{name: cell.new for name, cell in cells}}
        assert {name: _text(found[name]) for name in values} == {name: _text(value) for name, value in values.items()}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
