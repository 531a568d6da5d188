"""Tables that are renamed at the source: their rows go with them, in any delivery."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, Message, cut
from support.feeds import published, replayed
from support.histories import deliver
from support.renames import Database, History, Rows, alone, generated, in_parts, renamed, swapped
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes
from tidemark.ddl.history import RENAMED_TO
from tidemark.errors import ConfigurationError, ExpectationError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.queries.explain import explain
from tidemark.queries.status import status_of
from tidemark.queries.typed_changes import typed_changes
from tidemark.sources.model import Source
from tidemark.stages import REBUILD, STAGES, StageReport
from tidemark.stages.erase import run as erase

pytestmark = pytest.mark.spark

_RUNS = how_many(usually=2, proving=3)

_SOURCE = "renames"


class _KeysAlone(Log):
    """A log whose updates have the new row alone, and whose deletes have the key alone."""

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        return super().put(at, None if before is None else {}, **row)

    def delete(self, at: int, **row: Any) -> Message:
        return super().delete(at, id=row["id"])


_IN_PARTS = "in_parts_"
"""Begins the name of a history whose statements come in parts, as Debezium sends them."""


def _done(name: str, one: str, history: History) -> Database:
    done = history(one, _KeysAlone)
    if name.startswith(_IN_PARTS):
        done.log = [part for message in done.log for part in in_parts(message)]
    return done


_HISTORIES: dict[str, History] = {
    "renamed": renamed,
    "alone": alone,
    "swapped": swapped,
    **{f"generated_{seed}": generated(seed) for seed in range(how_many(usually=0, proving=12))},
}
_HISTORIES |= {f"{_IN_PARTS}{name}": _HISTORIES[name] for name in [*_HISTORIES] if name not in {"renamed", "alone"}}
_DELIVERIES = ("one_run", "in_two", "in_order", "in_disorder", "backwards")
_USUALLY = {
    ("renamed", "in_order"),
    ("alone", "in_disorder"),
    ("in_parts_swapped", "in_disorder"),
}
CASES = {
    (name, delivery): _done(name, f"{name}_{delivery}_", history)
    for name, history in _HISTORIES.items()
    for delivery in _DELIVERIES
    if PROVING or (name, delivery) in _USUALLY
}


_ONE, _OTHER, _LAST = Log("filled_a"), Log("filled_b"), Log("filled_c")
_FILLED = [
    _ONE.put(1, id=1, v="a"),
    _OTHER.put(2, id=1, v="b"),
    _ONE.ddl(3, "ADD n int NOT NULL DEFAULT 7"),
    _ONE.statement(4, "RENAME TABLE filled_a TO between, filled_b TO filled_a, between TO filled_b"),
    _ONE.ddl(5, "ADD n int DEFAULT 9"),
    _OTHER.put(6, id=2, v="new", n=8),
    _OTHER.ddl(7, "RENAME TO filled_c, ADD m int NOT NULL DEFAULT TRUE, CHANGE COLUMN n number int"),
    _LAST.put(8, id=3, v="newer", number=6, m=5),
]
"""Tables get columns with constants before, in and after the statements that rename them."""


_ASIDE, _RETIRED = Log("aside"), Log("_aside_old")
_TWICE, _THEN = Log("twice"), Log("then")
_IN_TURN = [
    _ASIDE.put(1, id=1, v="a"),
    _ASIDE.statement(2, "RENAME TABLE {} TO _aside_old"),
    _RETIRED.put(3, None, id=2, v="retired"),
    _ASIDE.put(4, id=3, v="anew"),
    _TWICE.put(1, id=1, v="a"),
    _TWICE.statement(2, "RENAME TABLE IF EXISTS {} TO then"),
    _THEN.put(3, id=2, v="b"),
    _TWICE.statement(4, "RENAME TABLE IF EXISTS {} TO then"),
    _THEN.put(5, id=3, v="c"),
]
"""A table is put aside under a tool's name, and one is renamed by a statement that runs twice."""
_SHARD = Log("part_1")
_FOLDS_OTHERS = {"shop.part_*": {"target": "parts", "key": ["id"]}}
"""An entry that folds tables which no statement names changes nothing for the others."""
_WITHOUT_A_FEED = how_many(
    usually=("filled_a", "filled_b", "filled_c", "between", "aside", "_aside_old", "twice", "then"), proving=()
)
"""Tables of which no test reads the feed."""


@pytest.fixture(scope="module")
def reports_by_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All histories in each delivery, as tables of one source; the reports of its runs."""
    landing = tmp_path_factory.mktemp("renames")
    source = _source(landing)
    runs = [_cut(done.log, delivery) for (_, delivery), done in CASES.items()]
    reports = []
    for run in range(_RUNS):
        filled = [*_FILLED, *_IN_TURN, _SHARD.put(1, id=1, v="s")] if run == 0 else []
        deliver(landing, f"run-{run}", [*(message for each in runs for message in each[run]), *filled])
        reports.append({stage: _run(stage, source) for stage in STAGES})
    return reports


def _cut(log: Sequence[Message], delivery: str) -> Sequence[Sequence[Message]]:
    """Cut a log into runs. Where there are two of them, a rename in order comes after rows that are published."""
    return cut(log, delivery, _RUNS) if PROVING or delivery != "in_order" else (log[:2], log[2:])


def _run(stage: str, source: Source) -> StageReport:
    """Run a stage. A cut is held where it has the rename of a table without any event so far."""
    try:
        return run_stage(stage, source)
    except ExpectationError as error:
        return StageReport(stage=stage, source=source.source, summary={}, problems=(str(error),))


def _source(landing: Path) -> Source:
    entry = {"key": ["id"], "columns": {"id": "long", "v": "string"}}
    apart = {f"shop.{name}": entry for name in _WITHOUT_A_FEED}
    tables = {**apart, **_FOLDS_OTHERS, "shop.*": {**entry, "feed": True}}
    fields = {"source": _SOURCE, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate(fields)


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
    held = {name: rows for done in CASES.values() for name, rows in done.tables.items()}
    return {name: held.get(name, {}) for done in CASES.values() for name in sorted(done.named)} | held


def test_statements_on_columns_go_with_their_table(reports_by_run: list[dict[str, StageReport]], lake: Lake) -> None:
    """Also statements on a table that exchanged names with another, and columns in the statement that renames it."""
    held = {name: lake.load((_SOURCE, name)).scan().to_arrow().to_pylist() for name in ("filled_a", "filled_c")}
    found = {name: sorted([row["id"], row["v"], *_numbers(row)] for row in rows) for name, rows in held.items()}
    assert found["filled_a"] == [[1, "b", 9]]
    assert found["filled_c"] == [[1, "a", 7, 1], [2, "new", 8, 1], [3, "newer", 6, 5]]


def test_a_table_that_is_put_aside_takes_its_rows_with_it(
    reports_by_run: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Whatever name it gets, where no copy takes its place; and a statement that runs twice takes nothing away."""
    tables = {name: lake.load((_SOURCE, name)).scan().to_arrow() for name in ("aside", "_aside_old", "then")}
    found = {name: sorted(rows.column("v").to_pylist()) for name, rows in tables.items()}
    assert found == {"aside": ["anew"], "_aside_old": ["a", "retired"], "then": ["a", "b", "c"]}


def _numbers(row: dict[str, Any]) -> list[Any]:
    return [row[name] for name in ("n", "number", "m") if name in row]


@pytest.mark.more
def test_each_table_has_the_rows_of_its_own_whatever_the_delivery(
    reports_by_run: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Rows go with their table, and nothing is held in the end."""
    found = _published(lake)
    assert {name: found[name] for name, rows in _expected().items() if found[name] != rows} == {}
    assert [report.problems for report in reports_by_run[-1].values()] == [()] * len(STAGES)


@pytest.mark.more
def test_what_was_followed_is_not_told_as_a_statement_that_was_not(
    reports_by_run: list[dict[str, StageReport]], lake: Lake
) -> None:
    """The status of the source names no rename that was followed as soon as it landed.

    Of renames that land after later ones, a check may have reported one before they were all known.
    """
    found = status_of(lake, _SOURCE)["ddl_not_followed"]
    whole = [texts for name, texts in found.items() if _IN_PARTS not in name and "_backwards_" not in name]
    assert [text for texts in whole for text in texts if text.startswith(RENAMED_TO)] == []


def test_every_event_is_accounted_for(reports_by_run: list[dict[str, StageReport]], lake: Lake) -> None:
    """The ledger closes in every run, and nothing went to quarantine."""
    assert_ledger_closes(lake, _SOURCE)
    assert {row["quarantined"] for row in Ledger(lake, _SOURCE).read("tables")} == {0}


@pytest.mark.prove
def test_a_rebuild_gives_the_same_rows(reports_by_run: list[dict[str, StageReport]], lake: Lake) -> None:
    """From the whole change log, every table as it was."""
    source = _source(Path("nowhere"))
    for stage in REBUILD:
        assert run_stage(stage, source).problems == ()
    assert _published(lake) == _expected()


@pytest.mark.more
def test_feeds_lead_to_the_rows(reports_by_run: list[dict[str, StageReport]], lake: Lake) -> None:
    """Whoever follows a name sees the rows that come to it and go from it."""
    fed = [table for name in _expected() if lake.find(table := Identifier(_SOURCE, name)) is not None]
    assert {str(table): replayed(lake, table) for table in fed} == {str(table): published(lake, table) for table in fed}


def test_rows_are_explained_under_all_names_of_their_table(
    reports_by_run: list[dict[str, StageReport]], lake: Lake
) -> None:
    """What stands of the events is the published row, and ``__changes`` has the events that lead to all rows."""
    wrong = {}
    shown = {str(row.identifier) for row in Ledger(lake, _SOURCE).published_tables().values()}
    for name, rows in _expected().items():
        identifier = Identifier(_SOURCE, name)
        if str(identifier) not in shown:
            continue
        replayed_rows: Rows = {}
        for event in sorted(typed_changes(lake, identifier).collect(), key=lambda event: event["position"]):
            if event["after"] is None:
                replayed_rows.pop(event["before"]["id"], None)
            else:
                replayed_rows[event["after"]["id"]] = event["after"]["v"]
        lives = {}
        for number in rows:
            cells = [chapter.cells["v"] for chapter in explain(lake, str(identifier), [f"id={number}"]).chapters]
            lives[number] = [cell.new for cell in cells if cell.stands]
        if (replayed_rows, lives) != (rows, {number: [value] for number, value in rows.items()}):
            wrong[name] = (replayed_rows, lives)
    assert wrong == {}
    chapters = explain(lake, f"{_SOURCE}.renamed_in_order_b", ["id=2"]).chapters
    assert [chapter.step.operation for chapter in chapters] == ["INSERT", "DELETE"]


@pytest.mark.prove
def test_a_row_is_erased_under_all_names_of_its_table(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its events under each name, its feed under the old name, and old snapshots of both; another table's row stays."""
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "s" * 64)
    name = "renames_erased"
    source = _source(tmp_path).model_copy(update={"source": name, "max_deletes": 1})
    logs = [(renamed("r_", _KeysAlone).log, 2), (alone("o_", _KeysAlone).log, 1), (swapped("s_", _KeysAlone).log, 6)]
    for run in range(2):
        deliver(tmp_path, f"run-{run}", [each for log, at in logs for each in (log[at:] if run else log[:at])])
        assert [problem for stage in STAGES for problem in run_stage(stage, source).problems] == []
    rows: dict[str, Rows] = {"r_a": {}, "r_b": {3: "z"}, "o_a": {1: "another"}, "o_b": {}}
    for table, key in (("r_b", "id=1"), ("o_b", "id=1"), ("o_a", "id=7")):
        report = erase(source, f"{name}.{table}", [key])
        assert (report.summary["nothing_found"], report.problems) == (1, ())
        if table == "r_b":
            certificate = json.loads(Path(str(report.summary["certificate"])).read_text())
            assert certificate["names"] == ["shop.r_a", "shop.r_b"]
            assert {f"{name}.r_a", f"{name}.r_a__feed", f"{name}.r_b", f"{name}.r_b__feed"} < set(certificate["places"])
    found = {table: lake.load((name, table)).scan().to_arrow().to_pylist() for table in rows}
    assert {table: {row["id"]: row["v"] for row in table_rows} for table, table_rows in found.items()} == rows
    assert {row["id"] for row in lake.load((name, "r_a__feed")).scan().to_arrow().to_pylist()} == {2}
    assert {row["id"] for row in lake.load((name, "o_a__feed")).scan().to_arrow().to_pylist()} == {1}
    for table in rows:
        assert replayed(lake, Identifier(name, table)) == published(lake, Identifier(name, table))
        assert len(lake.load((name, table)).metadata.snapshots) == 1
    assert all(row.counts.closes for row in Ledger(lake, name).tables())
    with pytest.raises(ConfigurationError, match="two tables had its name in turn"):
        erase(source, f"{name}.s_b", ["id=9"])
