"""Each kind of schema change does to a table what the source file says of it, for the source and for one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import LongType
from pyspark.sql import SparkSession

from support import plans
from support.debezium_log import Log
from support.histories import deliver
from support.rounds import PROVING
from support.running import run_all
from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.ddl.names import Renaming
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.quality.schema_drift import SCHEMA_DRIFT
from tidemark.quality.unknown_members import UNKNOWN_MEMBERS
from tidemark.quality.unknown_messages import UNKNOWN_MESSAGES
from tidemark.queries.explain import explain
from tidemark.queries.status import status_of
from tidemark.queries.typed_changes import typed_changes
from tidemark.sources.files import validate
from tidemark.sources.model import Source
from tidemark.sources.schema_policy import SchemaPolicies
from tidemark.stages import StageReport
from tidemark.tables.planner import plan
from tidemark.tables.schema_policies import name_taken
from tidemark.tables.stored_names import NEW_PREFIX

NAME = "policies"
_PROVED = {"retyped", "kept"}
"""Tables of ``make prove``. In ``make test``, ``no_type`` has another word for a type, and ``keeping`` and ``no_drop``
have the parts of ``kept``."""
POLICIES: dict[str, Any] = {
    "narrow": {"add": "ignore"},
    "keeping": {"drop": "keep", "rename": "keep"},
    "kept": {"drop": "keep"},
    "no_drop": {"drop": "strict"},
    "no_type": {"type": "strict"},
    "retyped": {"type": "keep"},
    "all": "evolve",
    "none": "strict",
    "reused": {"drop": "keep"},
}
POLICIES = {name: policy for name, policy in POLICIES.items() if PROVING or name not in _PROVED}
BEFORE = {"id": 1, "a": "a1", "b": "b1"}
CHANGES = ["RENAME COLUMN a TO c", "DROP COLUMN b", "ADD COLUMN d int DEFAULT 7"]
AFTER = {"id": 2, "c": "c2", "d": 8}
ROWS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "narrow": ("id c", [(1, "a1"), (2, "c2")]),
    "keeping": ("id c d a b", [(1, None, 7, "****", "b1"), (2, "****", 8, None, None)]),
    "kept": ("id c d b", [(1, "a1", 7, "b1"), (2, "c2", 8, None)]),
    "no_drop": ("id a b", [(1, "a1", "b1")]),
    "no_type": ("id c d", [(1, "a1", 7), (2, "c2", 8)]),
    "retyped": ("id c d", [(1, "a1", 7), (2, "c2", 8)]),
    "all": ("id c d", [(1, "a1", 7), (2, "c2", 8)]),
    "none": ("id a b", [(1, "a1", "b1")]),
    "reused": ("id a b", [(1, "a1", "b1")]),
}


def _source(landing: Path, *, named: Sequence[str] = ()) -> Source:
    tables = {f"shop.{name}": {"key": ["id"], "schema": policy} for name, policy in POLICIES.items()}
    tables["shop.keeping"]["mask"] = {"a": "redact"}
    tables |= {f"shop.{name}": {"key": ["id"]} for name in named}
    fields = {"source": NAME, "format": "debezium_json", "landing": str(landing / "*"), "schema": {"table": "hold"}}
    return Source.model_validate({**fields, "tables": {**tables, "shop.*": {"key": ["id"]}}})


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the dumps of the source lie."""
    return tmp_path_factory.mktemp(NAME)


@pytest.fixture(scope="module")
def reports(spark: SparkSession, landing: Path) -> list[dict[str, StageReport]]:
    """Rows, then the same changes of all tables, and rows after them; and a table that nobody named."""
    source = _source(landing)
    logs = [Log(name) for name in POLICIES]
    deliver(landing, "1", [*(log.put(1, **BEFORE) for log in logs), Log("found").put(1, id=1, a="x")])
    first = run_all(source)
    messages = [log.ddl(10 + place, text) for log in logs for place, text in enumerate(CHANGES)]
    messages += [log.put(20, **AFTER) for log in logs]
    messages += [Log("reused").ddl(15, "ADD COLUMN b int DEFAULT 3"), Log("found").put(20, id=2, a="y")]
    unknown = Log("all").put(21, **AFTER).replace(b'"op": "c"', b'"op": "q"')
    flagged = Log("all").put(22, **AFTER).replace(b'"op": "c"', b'"op": "c", "isPart": false')
    deliver(landing, "2", [*messages, unknown, flagged])
    return [first, run_all(source)]


def _published(lake: Lake, table: str) -> tuple[str, list[tuple[Any, ...]]]:
    rows = lake.load((NAME, table)).scan().to_arrow().drop_columns(["_cdc_position", "_cdc_committed_at"])
    return " ".join(rows.column_names), sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


@pytest.mark.spark
@pytest.mark.more
@pytest.mark.parametrize("table", POLICIES)
def test_each_kind_of_change_has_its_own_effect(table: str, reports: list[dict[str, StageReport]], lake: Lake) -> None:
    """A column that is new, dropped or renamed: followed, left out, kept, or the reason why the table stops.

    A column that is masked stays so under its new name, also if it is kept under the one from before.
    """
    assert _published(lake, table) == ROWS[table]


@pytest.mark.spark
def test_a_table_that_stops_names_the_changes_that_are_not_allowed(reports: list[dict[str, StageReport]]) -> None:
    """And no others."""
    problems = {text.partition(":")[0]: text for text in reports[1]["compact"].problems}
    assert problems.keys() == {"shop.no_drop", "shop.none", "shop.reused"}
    allowing = "To allow it, run once with `schema: evolve`"
    assert f"`schema: strict`: 'b' is gone. {allowing}" in problems["shop.no_drop"]
    assert "'a' is called 'c', 'b' is gone, 'd' is new. To" in problems["shop.none"]
    assert "column 'b' is kept (`schema: {drop: keep}`)" in problems["shop.reused"]


@pytest.mark.spark
@pytest.mark.parametrize("table", ["narrow", "keeping", pytest.param("kept", marks=pytest.mark.prove), "all"])
def test_the_events_of_a_row_have_the_names_that_the_table_has(
    table: str, reports: list[dict[str, StageReport]], lake: Lake
) -> None:
    """What is kept keeps its name in ``explain`` and ``__changes`` too, and what is renamed has its new one."""
    names, rows = ROWS[table]
    first = dict(zip(names.split(), rows[0], strict=True)) | {"id": 1}
    (inserted,) = explain(lake, f"{NAME}.{table}", ["id=1"]).chapters
    assert {name: str(cell.new) for name, cell in inserted.cells.items()} == {
        name: str(value) for name, value in first.items() if name != "id"
    }
    (change,) = typed_changes(lake, (NAME, table)).where("after.id = 1").collect()
    assert change["after"].asDict() == first | ({"d": None} if "d" in first else {})


DRIFT = {
    "narrow": ["a renamed to c", "b dropped"],
    "keeping": ["c added as string", "d added as int"],
    "kept": ["d added as int", "a renamed to c"],
    "no_type": ["d added as int", "a renamed to c", "b dropped"],
    "retyped": ["d added as int", "a renamed to c", "b dropped"],
    "all": ["d added as int", "a renamed to c", "b dropped"],
}


@pytest.mark.spark
@pytest.mark.more
def test_check_tells_what_changed_and_what_is_unknown(reports: list[dict[str, StageReport]], lake: Lake) -> None:
    """Columns by table, and where a message with an unknown operation or member is; all warn. Not in a first cut."""
    rows = Ledger(lake, NAME).checks()
    found = {row.target.partition(".")[2]: sorted(row.columns) for row in rows if row.name == SCHEMA_DRIFT}
    assert {table: columns for table, columns in found.items() if table != "found"} == {
        table: sorted(columns) for table, columns in DRIFT.items() if table in POLICIES
    }
    assert not any(SCHEMA_DRIFT in remark for remark in reports[0]["check"].remarks)
    remarks = reports[1]["check"].remarks
    assert f"{NAME}.narrow: {SCHEMA_DRIFT} (a renamed to c, b dropped) warns: 2; expected 0" in remarks
    assert f"{NAME}: {UNKNOWN_MESSAGES} (table) warns: 1; expected 0" in remarks
    place = [text for text in remarks if f"1 {UNKNOWN_MESSAGES}. One is message " in text]
    assert len(place) == 1
    assert "/2" in place[0]
    assert f"{NAME}: {UNKNOWN_MEMBERS} (table) warns: 1; expected 0" in remarks
    assert any(" does not know the member isPart of message " in text for text in remarks)
    assert reports[1]["check"].problems == ()


@pytest.mark.spark
def test_a_new_table_waits_until_it_is_named(reports: list[dict[str, StageReport]], landing: Path, lake: Lake) -> None:
    """The run says so, and ends well; once the source file names the table, the next run publishes all its rows."""
    sentence = "shop.found: it is new at the source, and the source file says `schema: {table: hold}`"
    for report in reports:
        assert any(sentence in remark for remark in report["compact"].remarks)
    tables = {row["object"]: row for row in status_of(lake, NAME)["tables"].values()}
    assert (tables["shop.found"]["state"], tables["shop.found"]["held"]) == ("waiting", 2)
    assert "found" not in lake.tables(NAME)
    cut = status_of(lake, NAME)["cut"]["number"]
    deliver(landing, "3", [Log("all").put(30, **AFTER)])
    again = run_all(_source(landing, named=["found"]))
    assert not any(SCHEMA_DRIFT in remark for remark in again["check"].remarks)  # it was reported before
    assert not any("found" in text for text in (*again["compact"].problems, *again["compact"].remarks))
    assert _published(lake, "found") == ("id a", [(1, "x"), (2, "y")])
    assert status_of(lake, NAME)["cut"]["number"] == cut + 1


def test_what_an_entry_does_not_say_the_source_says() -> None:
    """Kind by kind; one word in an entry, or in the source, stands for all kinds of change of columns."""
    each = SchemaPolicies.model_validate
    for of_source, of_table, holds in [
        ({"add": "strict", "table": "hold"}, {"add": "evolve"}, each({"table": "hold"})),
        ({"add": "strict", "table": "hold"}, None, each({"add": "strict", "table": "hold"})),
        ({"add": "strict"}, "evolve", each({})),
        ("strict", {"drop": "keep"}, each({"add": "strict", "drop": "keep", "rename": "strict", "type": "strict"})),
        ("ignore", None, each({"add": "ignore", "drop": "keep", "rename": "keep", "type": "keep"})),
    ]:
        table = {} if of_table is None else {"schema": of_table}
        fields = {"source": "erp", "format": "canal_json", "landing": "x", "schema": of_source}
        assert Source.model_validate({**fields, "tables": {"shop.*": table}}).policies_for("shop.t") == holds


def test_a_kept_column_gives_its_name_to_no_other() -> None:
    """Neither to an added one nor to a renamed one; in the order of the log, and whatever the case of letters."""
    dropped, added = Renaming("2", 1, "b", None), Addition("3", 1, "B", "int", None, retyped=False)
    other = Renaming("3", 1, "c", "b")
    keeps, leaves_out = SchemaPolicies.model_validate({"drop": "keep"}), {"drop": "keep", "add": "ignore"}
    for renamings, additions, policies, taken in [
        ([dropped], [added], keeps, True),
        ([dropped, other], [], keeps, True),
        ([dropped], [added._replace(position="1")], keeps, False),
        ([dropped], [added._replace(retyped=True)], keeps, False),
        ([dropped], [added], SchemaPolicies(), False),
        ([dropped], [added], SchemaPolicies.model_validate(leaves_out), False),
    ]:
        assert bool(name_taken(SchemaHistory(tuple(renamings), tuple(additions)), policies)) is taken


def test_the_first_value_of_a_column_stops_no_strict_table(lake: Lake) -> None:
    """Nor where a cut that was not published had begun the column."""
    source = plans.source({"key": ["id"]}, schema="strict")
    table = plans.published(lake, {"id": "long", "n": "string"}, (1, None), void=["n"])
    for begun in (False, True):
        if begun:
            with table.update_schema() as update:
                update.add_column(f"{NEW_PREFIX}n", LongType())
        made = plan(source, plans.found(plans.shape(id="long", n="long"), table=table), table)
        assert (made.begun, made.today) == ({"n": "n"}, {"n": None, f"{NEW_PREFIX}n": "n"})


@pytest.mark.parametrize(
    ("said", "where", "allowed"),
    [
        ("schema: {add: keep}", "schema.add", "evolve, ignore, strict"),
        ("schema: {drop: ignore}", "schema.drop", "evolve, keep, strict"),
        ("schema: {table: strict}", "schema.table", "evolve, hold"),
        ("schema: {columns: keep}", "schema.columns", "add, drop, rename, table, type"),
        ("schema: 3", "schema", "evolve, ignore, strict"),
        ("retention: {log_days: 3}", "retention.log_days", "changelog_days, quarantine_days, raw_days"),
        ("tables: {shop.t: {schema: {type: hold}}}", "tables.shop.t.schema.type", "evolve, keep, strict"),
    ],
)
def test_what_may_be_said_is_named(said: str, where: str, allowed: str, tmp_path: Path) -> None:
    """The source file's mistake, with its place and the words that are allowed there."""
    file = tmp_path / "erp.yaml"
    file.write_text(f"source: erp\nformat: canal_json\nlanding: x/*\n{said}\n")
    problems = list(map(str, validate([file])[1]))
    assert len(problems) == 1, problems
    assert f"{where}:" in problems[0]
    assert allowed in problems[0]
