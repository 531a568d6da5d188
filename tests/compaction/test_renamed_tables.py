"""Tables that are renamed at the source: their rows go with them, in any delivery."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, Message, cut
from support.feeds import published, replayed
from support.histories import deliver
from support.renames import History, Rows, alone, generated, renamed, swapped
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes
from tidemark.errors import ConfigurationError, ExpectationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.model import Source
from tidemark.stages import REBUILD, STAGES, StageReport
from tidemark.stages.erase import run as erase

pytestmark = pytest.mark.spark

_RUNS = 3

_SOURCE = "renames"


class _KeysAlone(Log):
    """A log of which updates tell the new row alone, and deletes the key."""

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        return super().put(at, None if before is None else {}, **row)

    def delete(self, at: int, **row: Any) -> Message:
        return super().delete(at, id=row["id"])


_HISTORIES: dict[str, History] = {
    "renamed": renamed,
    "alone": alone,
    "swapped": swapped,
    **{f"generated_{seed}": generated(seed) for seed in range(how_many(usually=1, proving=12))},
}
_DELIVERIES = ("one_run", "in_two", "in_order", "in_disorder", "backwards")
_USUALLY = {
    ("renamed", "in_order"),
    ("renamed", "in_disorder"),
    ("alone", "in_disorder"),
    ("swapped", "in_order"),
    ("generated_0", "in_disorder"),
}
CASES = {
    (name, delivery): history(f"{name}_{delivery}_", _KeysAlone)
    for name, history in _HISTORIES.items()
    for delivery in _DELIVERIES
    if PROVING or (name, delivery) in _USUALLY
}


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All histories in each delivery, as tables of one source; the reports of its runs."""
    landing = tmp_path_factory.mktemp("renames")
    source = _source(landing)
    runs = [cut(done.log, delivery, _RUNS) for (_, delivery), done in CASES.items()]
    reports = []
    for run in range(_RUNS):
        deliver(landing, f"run-{run}", [message for each in runs for message in each[run]])
        reports.append({stage: _run(stage, source) for stage in STAGES})
    return reports


def _run(stage: str, source: Source) -> StageReport:
    """Run a stage. A cut is held where it has the rename of a table of which no event has come yet."""
    try:
        return run_stage(stage, source)
    except ExpectationError as error:
        return StageReport(stage=stage, source=source.source, summary={}, problems=(str(error),))


def _source(landing: Path) -> Source:
    tables = {"shop.*": {"key": ["id"], "columns": {"id": "long", "v": "string"}, "feed": True}}
    told = {"source": _SOURCE, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(told)


def _published(lake: Lake) -> dict[str, Rows]:
    """The rows of every table that any event or statement named."""
    found = {}
    for name in _expected():
        table = lake.find((_SOURCE, name))
        rows = [] if table is None else table.scan().to_arrow().to_pylist()
        found[name] = {row["id"]: row["v"] for row in rows}
        assert len(found[name]) == len(rows)
    return found


def _expected() -> dict[str, Rows]:
    """What each of them has at the source in the end; a name that no table has any more has no rows."""
    names = ((done, json.loads(message)["source"]["table"]) for done in CASES.values() for message in done.log)
    held = {name: rows for done in CASES.values() for name, rows in done.tables.items()}
    return {name: held.get(name, {}) for _, name in names} | held


@pytest.mark.more
def test_each_table_has_the_rows_of_its_own_whatever_the_delivery(
    told: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Rows go with their table, and nothing is held in the end."""
    found = _published(lake)
    assert {name: found[name] for name, rows in _expected().items() if found[name] != rows} == {}
    assert [report.problems for report in told[-1].values()] == [()] * len(STAGES)


@pytest.mark.more
def test_every_event_is_accounted_for(told: list[dict[str, StageReport]], lake: Lake) -> None:
    """The ledger closes in every run, and nothing went to quarantine."""
    assert_ledger_closes(lake, _SOURCE)
    assert {row["quarantined"] for row in Ledger(lake, _SOURCE).read("tables")} == {0}


@pytest.mark.more
def test_a_rebuild_gives_the_same_rows(told: list[dict[str, StageReport]], lake: Lake) -> None:
    """From the whole change log, every table as it was."""
    source = _source(Path("nowhere"))
    for stage in REBUILD:
        assert run_stage(stage, source).problems == ()
    assert _published(lake) == _expected()


@pytest.mark.more
def test_feeds_lead_to_the_rows(told: list[dict[str, StageReport]], lake: Lake) -> None:
    """Whoever follows a name sees the rows that come to it and go from it."""
    fed = [table for name in _expected() if lake.find(table := Identifier(_SOURCE, name)) is not None]
    assert {str(table): replayed(lake, table) for table in fed} == {str(table): published(lake, table) for table in fed}


def test_an_erasure_from_a_renamed_table_is_refused(
    told: list[dict[str, StageReport]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that came under its other names would stay."""
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "s" * 64)
    with pytest.raises(ConfigurationError, match="got another key or another name at the source"):
        erase(_source(Path("nowhere")), f"{_SOURCE}.swapped_in_order_b", ["id=9"])
