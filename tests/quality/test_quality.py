"""Published cuts are judged again on demand, and the ledger keeps what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.answers import differences
from support.histories import Table, deliver, message
from support.reference import Change
from support.running import run_all
from tidemark.cli.app import app
from tidemark.cli.stage_commands import QualityAnswer
from tidemark.errors import ConfigurationError
from tidemark.lake.branches import head, put_back, remove_tags
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.schemas import NAMES
from tidemark.pipeline import run_stage
from tidemark.queries import differences as compared
from tidemark.queries.as_of import AsOf
from tidemark.queries.sql import query
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark

TABLE, QUIET = Table("it ems", columns=("id", "name", "note", "amount")), Table("quiet")
RUNS: list[list[Change]] = [
    [TABLE.insert(1, 1, "a", "b", "5.00"), TABLE.insert(2, 2, "a", "b", "bad"), QUIET.insert(1, 1, "a", "b")],
    [TABLE.insert(3, 3, "a", "b", "-1.00")],
    [TABLE.delete(4, 3)],
]
CHECK = {"type": "expect_column_values_to_be_between", "column": "amount", "min_value": 0}


def _source(landing: Path, *checks: dict[str, object]) -> Source:
    tables = {
        "shop.it ems": {"key": ["id"], "columns": {"amount": "decimal(12, 2)"}, "checks": list(checks)},
        "shop.quiet": {"key": ["id"]},
    }
    fields = {"source": "judged", "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields)


@pytest.fixture(scope="module")
def landing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three cuts, the second of which holds a negative amount that nobody had a check for."""
    landing = tmp_path_factory.mktemp("judged")
    for number, changes in enumerate(RUNS):
        deliver(landing, f"{number}", map(message, changes))
        run_all(_source(landing))
    return landing


def test_a_published_cut_is_judged_by_the_checks_of_today(landing: Path, lake: Lake) -> None:
    """The second cut fails the new check, those around it pass; a quiet table is judged as its last cut left it."""
    before = _everything(lake)
    source = _source(landing, CHECK)
    reports = {cut: run_stage("quality", source, None, None, cut=cut) for cut in (1, 2, 3, None)}
    assert [bool(report.problems) for report in reports.values()] == [False, True, False, False]
    (problem,) = reports[2].problems
    assert problem.startswith("judged.it ems: expect_column_values_to_be_between (amount) failed")
    assert reports[None].summary == {"cut": 3, "tables": 2, "failed": 0, "warned": 0}
    assert reports[3].details["judged.quiet"] == {"cut": 1, "rows": 1, "checks": 3, "failed": 0, "warned": 0}
    assert reports[2].details["judged.it ems"]["failed"] == 1
    assert _everything(lake) == before

    rows = Ledger(lake, "judged").checks()
    before_publishing = {(row.cut, row.target) for row in rows if row.stage == "check" and row.success}
    assert before_publishing == {(1, "judged.it ems"), (1, "judged.quiet"), (2, "judged.it ems"), (3, "judged.it ems")}
    again = [row for row in rows if row.stage == "quality"]
    failed = [(row.cut, row.target, row.name, row.columns, row.observed) for row in again if not row.success]
    assert failed == [
        (2, "judged.it ems", "expect_column_values_to_be_between", ("amount",), "1 of 2 unexpected"),
    ]


def _everything(lake: Lake) -> dict[str, object]:
    ledger = Ledger(lake, "judged")
    tables = {name: sorted(map(str, ledger.read(name))) for name in NAMES if name != "checks"}
    return {**tables, "refs": str(lake.load(("judged", "it ems")).refs())}


@pytest.mark.parametrize(("cut", "wanted"), [(0, "1 to 3"), (9, "1 to 3")])
def test_a_cut_that_is_not_there_is_named(landing: Path, cut: int, wanted: str) -> None:
    """Published cuts only."""
    with pytest.raises(ConfigurationError, match=wanted):
        run_stage("quality", _source(landing), None, None, cut=cut)


def test_broken_keys_and_counts_are_found(landing: Path, lake: Lake) -> None:
    """Rows that got into a table past compact are found on demand, the key's and the ledger's checks by name."""
    table = lake.load(("judged", "quiet"))
    sound = head(table)
    table.append(table.scan().to_arrow())
    _move_tag(lake, head(table.refresh()))
    report = run_stage("quality", _source(landing), None, None, cut=1)
    put_back(table.refresh(), sound, table.schema())
    _move_tag(lake, sound)
    assert [problem.split(" (table)")[0] for problem in report.problems] == [
        "judged.quiet: duplicate keys",
        "judged.quiet: rows beyond the ledger's count",
    ]


def _move_tag(lake: Lake, snapshot: int) -> None:
    table = lake.load(("judged", "quiet"))
    remove_tags(table, ["cut_1"])
    table.refresh().manage_snapshots().create_tag(snapshot, "cut_1").commit()


def test_the_command_prints_what_was_found(landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed check ends it with 1; --json is one object a table."""
    check = "{type: expect_column_values_to_be_between, column: amount, min_value: 0}"
    (tmp_path / "judged.yaml").write_text(
        f"source: judged\nformat: debezium_json\nlanding: {landing}/*\n"
        f"tables:\n  shop.it ems: {{key: [id], checks: [{check}]}}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path))
    done = CliRunner().invoke(app, ["quality", "judged", "--cut", "2", "--json"])
    assert done.exit_code == 1, done.output
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [*differences(entries[0], QualityAnswer)] == []
    assert [(entry["table"], entry["failed"]) for entry in entries] == [("judged.it ems", 1), ("judged.quiet", 0)]


class Renamed(NamedTuple):
    """Two cuts of a source, the second one with another target for one table, and what it changed when it waited."""

    landing: Path
    waiting: dict[str, dict[str, int]]

    def source(self, target: str, **late: object) -> Source:
        """The source file with a target for ``people``, and more of the table ``late``."""
        tables = {"shop.late": {"key": ["id"], **late}, "shop.people": {"key": ["id"], "target": target}}
        fields = {"source": "judged_names", "format": "debezium_json", "landing": str(self.landing / "*")}
        return Source.model_validate({**fields, "tables": {**tables, "shop.*": {"key": ["id"]}}})


_TARGETS = ("judged_before.{table}", "judged_now.{table}")


@pytest.fixture(scope="module")
def renamed(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Renamed:
    """``late`` has no value of ``note`` in the first cut, and ``others`` has nothing new in the second one."""
    found = Renamed(tmp_path_factory.mktemp("judged_names"), {})
    late, people, others = Table("late"), Table("people"), Table("others")
    first = [late.insert(1, 1, "a", None), people.insert(1, 1, "a", "b"), others.insert(1, 1, "a", "b")]
    deliver(found.landing, "1", map(message, first))
    run_all(found.source(_TARGETS[0]))
    deliver(found.landing, "2", map(message, [late.insert(2, 2, "a", "b"), people.insert(2, 2, "a", "b")]))
    source = found.source(_TARGETS[1])
    for stage in ("land", "normalize", "compact", "check"):
        run_stage(stage, source)
    found.waiting.update(compared.differences(lake, "judged_names"))
    run_stage("publish", source)
    return found


def test_a_cut_is_judged_under_the_names_that_it_published(renamed: Renamed, lake: Lake) -> None:
    """The type of ``note`` is known from the second cut on, which writes it under a name of its own before publish."""
    assert renamed.waiting["judged_names.late"] == {"added": 1, "removed": 0, "changed": 0}
    assert "judged_names.others" not in renamed.waiting
    rows = query(lake, "SELECT id, note FROM judged_names.late ORDER BY id", AsOf(cuts=("2",))).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, None), (2, "b")]
    check = {"type": "expect_column_values_to_not_be_null", "column": "note"}
    asked = renamed.source(_TARGETS[1], checks=[check])
    (problem,) = run_stage("quality", asked, None, None, cut=2).problems
    assert "not_be_null (note) failed: 1 of 2 unexpected" in problem


def test_a_former_table_that_was_dropped_is_not_judged(renamed: Renamed, lake: Lake) -> None:
    """Its owner dropped it, as the documents say: the other tables are judged, and an earlier cut names it."""
    source = renamed.source(_TARGETS[1])
    now = {"judged_now.people", "judged_names.others", "judged_names.late"}
    assert run_stage("quality", source).details.keys() == now
    lake.catalog.drop_table(("judged_before", "people"))
    report = run_stage("quality", source)
    assert (report.details.keys(), report.remarks) == (now, ())
    earlier = run_stage("quality", source, None, None, cut=1)
    assert earlier.details.keys() == {"judged_names.others", "judged_names.late"}
    assert earlier.remarks == ("judged_before.people: not judged, as it was dropped since",)


def test_a_source_without_cuts_has_nothing_to_judge(lake: Lake, spark: SparkSession) -> None:
    """No cut, no verdict."""
    source = Source.model_validate({"source": "judged_never", "format": "canal_json", "landing": "/nowhere/*"})
    assert run_stage("quality", source, None, None).summary == {"tables": 0}
