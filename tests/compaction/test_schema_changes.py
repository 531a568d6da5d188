"""The schema of a published table follows the source's, whatever order, runs and moments its changes come in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.debezium_log import Log, Message
from support.histories import deliver
from support.rounds import crash_windows
from support.running import die_at, run_all
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.sources.files import validate
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables.schemas import COMMITTED_AT, POSITION

pytestmark = pytest.mark.spark


class Case(NamedTuple):
    """What is delivered of one table, run by run, and the table that it must lead to."""

    name: str
    runs: list[list[Message]]
    columns: str
    rows: list[tuple[Any, ...]]


def case(name: str, columns: str, rows: list[tuple[Any, ...]], *runs: Any) -> Case:
    """A case whose runs are functions of the table's log."""
    log = Log(name)
    return Case(name, [run(log) for run in runs], columns, rows)


def _migrated(copy: str, old: str) -> Any:
    """A tool changes a copy of the table, fills it, and gives it the table's name: the steps by the table's log."""

    def steps(t: Log) -> list[Message]:
        made = Log(copy.format(t.table))
        return [
            made.statement(10, f"CREATE TABLE {{}} LIKE {t.table}"),
            made.ddl(11, "ADD COLUMN n int NOT NULL DEFAULT 5, DROP COLUMN a"),
            made.put(12, id=1, n=5),
            t.put(13, id=2, a="y"),
            made.put(14, id=2, n=5),
            t.statement(20, f"RENAME TABLE {t.table} TO {old.format(t.table)}, {copy.format(t.table)} TO {t.table}"),
            t.put(21, id=3, n=7),
        ]

    return steps


CASES = [
    case(
        "migrated_by_gh_ost",
        "id n",
        [(1, 5), (2, 5), (3, 7)],
        lambda t: [t.put(1, id=1, a="x")],
        _migrated("_{}_gho", "_{}_del"),
    ),
    case(
        "migrated_by_pt_osc_and_late",
        "id n",
        [(1, 5), (2, 5), (3, 7), (4, 5)],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: _migrated("_{}_new", "_{}_old")(t)[5:],
        lambda t: [*_migrated("_{}_new", "_{}_old")(t)[:5], t.put(5, id=4, a="late")],
    ),
    case(
        "a_copy_given_up",
        "id a",
        [(1, "x"), (2, "y")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [*_migrated("_{}_gho", "_{}_del")(t)[:4]],
        lambda t: [Log(f"_{t.table}_gho").statement(15, "DROP TABLE IF EXISTS {}")],
    ),
    case(
        "rename_in_one_run",
        "id b",
        [(1, "z"), (2, "y")],
        lambda t: [
            t.put(1, id=1, a="x"),
            t.put(2, id=2, a="y"),
            t.statement(3, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.put(4, id=1, b="z"),
        ],
    ),
    case(
        "rename_over_runs",
        "id b",
        [(1, "z"), (2, "y"), (3, "n")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(3, "ALTER TABLE {} CHANGE a b text"), t.put(4, id=1, b="z")],
        lambda t: [t.put(5, id=3, b="n")],
    ),
    case(
        "rename_alone_in_its_run",
        "id b",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.statement(3, "ALTER TABLE {} RENAME COLUMN a TO b")],
    ),
    case(
        "late_event_under_the_old_name",
        "id b",
        [(1, "z"), (2, "late"), (3, "too late")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b"), t.put(11, id=1, b="z")],
        lambda t: [t.put(3, id=2, a="late"), t.put(4, id=1, a="late"), t.put(5, id=3, a="too late")],
    ),
    case(
        "renamed_and_added_again",
        "id a b",
        [(1, None, "x"), (2, "new", "z")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.statement(11, "ALTER TABLE {} ADD COLUMN a text AFTER id"),
            t.put(12, id=2, a="new", b="z"),
        ],
    ),
    case(
        "two_names_swapped",
        "id b a",
        [(1, "a1", "b1"), (2, "a2", "b2")],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b, RENAME COLUMN b TO a"),
            t.put(12, id=2, a="b2", b="a2"),
        ],
    ),
    case(
        "dropped",
        "id b",
        [(1, "b1"), (2, "b2"), (3, "b3")],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.put(2, id=2, a="a2", b="b2"),
            t.statement(10, "ALTER TABLE {} DROP COLUMN a"),
            t.put(12, id=3, b="b3"),
        ],
    ),
    case(
        "dropped_and_added_again_with_another_type",
        "id b a",
        [(1, "b1", None), (2, "b2", 7), (3, "b3", None)],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} DROP a"),
            t.statement(11, "ALTER TABLE {} ADD a int"),
            t.put(12, id=2, b="b2", a=7),
        ],
        lambda t: [t.put(3, id=3, a="late", b="b3")],
    ),
    case(
        "added_with_a_default",
        "id a n",
        [(1, "x", 5), (2, "y", 7), (3, "z", 5), (4, "late", 5), (5, "w", None)],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [
            t.put(3, id=3, a="z"),
            t.statement(10, "ALTER TABLE {} ADD COLUMN n int DEFAULT 5"),
            t.put(12, id=2, a="y", n=7),
            t.put(13, id=5, a="w", n=None),
        ],
        lambda t: [t.put(4, id=4, a="late")],
    ),
    case(
        "added_with_a_default_and_no_row_since",
        "id a d",
        [(1, "x", Decimal("1.50"))],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.statement(10, "ALTER TABLE {} ADD COLUMN d decimal(8,2) NOT NULL DEFAULT '1.50'")],
    ),
    case(
        "added_with_constants_of_every_kind",
        "id yes no hex score code bits tag raw word",
        [
            (1, 1, 0, 16, Decimal("1.50"), "abc", 10, "vip", "x", "new"),
            (2, 0, 1, 3, Decimal("2.25"), "xyz", 5, "old", "y", "old"),
        ],
        lambda t: [t.put(1, id=1)],
        lambda t: [
            t.statement(
                10,
                "ALTER TABLE {} ADD yes BOOLEAN NOT NULL DEFAULT TRUE, ADD no BOOL DEFAULT FALSE, ADD hex INT DEFAULT "
                "0x10, ADD score DECIMAL(6,2) DEFAULT 1.5, ADD code CHAR(3) DEFAULT 'abc', ADD bits BIT(4) DEFAULT "
                "b'1010', ADD tag VARCHAR(9) DEFAULT _utf8mb4'vip', ADD raw VARCHAR(9) DEFAULT 0x78, ADD word "
                "ENUM('new','old') NOT NULL",
            ),
            t.put(11, id=2, yes=0, no=1, hex=3, score=2.25, code="xyz", bits=5, tag="old", raw="y", word="old"),
        ],
    ),
    case(
        "widened_by_ddl",
        "id n",
        [(1, 50_000_000_000)],
        lambda t: [t.put(1, id=1, n=5)],
        lambda t: [t.statement(10, "ALTER TABLE {} MODIFY n bigint"), t.put(11, id=1, n=50_000_000_000)],
    ),
    case(
        "table_dropped",
        "id a",
        [(2, "after"), (3, "after")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "DROP TABLE {}"), t.put(12, id=2, a="after")],
        lambda t: [t.put(3, id=1, a="late"), t.put(13, id=3, a="after")],
    ),
    case(
        "truncated_by_ddl_alone",
        "id a",
        [],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "TRUNCATE TABLE {}")],
    ),
    case(
        "partial_images_over_a_rename",
        "id b c",
        [(1, "b3", "c4"), (2, "late", "c2"), (3, "b1", "c5")],
        lambda t: [t.put(1, id=1, a="a1", c="c1"), t.put(2, id=2, a="a2", c="c2"), t.put(2, id=3, a="b1", c="c1")],
        lambda t: [
            t.put(20, {"id": 1}, id=1, a=..., c="c4"),
            t.put(20, {"id": 2}, id=2, a=..., c="c2"),
            t.put(20, {"id": 3}, id=3, a=..., c="c5"),
        ],
        lambda t: [
            t.statement(30, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.put(31, {"id": 1}, id=1, b="b3", c=...),
            t.put(10, id=2, a="late", c="late"),
        ],
    ),
    case(
        "key_renamed",
        "number a",
        [(1, "z"), (2, "y"), (3, "n")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.statement(10, "ALTER TABLE {} RENAME COLUMN id TO number"), t.put(12, number=1, a="z")],
        lambda t: [t.put(3, id=2, a="y"), t.put(13, number=3, a="n"), t.delete(14, number=9, a="")],
    ),
    case(
        "null_first",
        "id n d b",
        [(1, None, None, None), (2, 5, Decimal("1.500000000000000000"), True), (3, 7, None, None)],
        lambda t: [t.put(1, id=1, n=None, d=None, b=None)],
        lambda t: [t.put(2, id=2, n=5, d=1.5, b=True), t.put(3, id=3, n=None)],
        lambda t: [t.put(4, id=3, n=7)],
    ),
    case(
        "null_for_long",
        "id n m",
        [(1, None, None), (2, None, None), (3, 7, None)],
        lambda t: [t.put(1, id=1, n=None, m=None)],
        lambda t: [t.put(2, id=2, n=None, m=None)],
        lambda t: [t.put(4, id=3, n=7, m=None)],
    ),
    case(
        "null_first_in_parts",
        "id n c",
        [(1, None, "y"), (2, 6, "w")],
        lambda t: [t.put(10, {"id": 1}, id=1, n=..., c="x"), t.put(11, id=2, n=None, c="v")],
        lambda t: [t.put(20, {"id": 1}, id=1, n=None, c=...), t.put(21, {"id": 1}, id=1, n=..., c="y")],
        lambda t: [t.put(15, {"id": 1}, id=1, n=5, c=...), t.put(30, id=2, n=6, c="w")],
    ),
    case(
        "null_first_and_renamed",
        "id m c",
        [(1, None, "y"), (2, 6, "w")],
        lambda t: [t.put(10, {"id": 1}, id=1, n=..., c="x"), t.put(11, id=2, n=None, c="v")],
        lambda t: [t.put(20, {"id": 1}, id=1, n=None, c=...), t.put(21, {"id": 1}, id=1, n=..., c="y")],
        lambda t: [
            t.statement(25, "ALTER TABLE {} RENAME COLUMN n TO m"),
            t.put(15, {"id": 1}, id=1, n=5, c=...),
            t.put(30, id=2, m=6, c="w"),
        ],
    ),
    case(
        "null_first_and_retyped",
        "id n",
        [(1, None), (2, None), (3, Decimal("1.50"))],
        lambda t: [t.put(1, id=1, n=None)],
        lambda t: [t.statement(10, "ALTER TABLE {} MODIFY n decimal(8,2)"), t.put(12, id=2, n=None)],
        lambda t: [t.put(13, id=3, n=1.5)],
    ),
    case(
        "whole_numbers_declared_decimal",
        "id n",
        [(1, Decimal("5.00")), (2, Decimal("1.50")), (3, Decimal("7.00"))],
        lambda t: [t.put(1, id=1, n=5)],
        lambda t: [t.statement(10, "ALTER TABLE {} MODIFY n decimal(8,2)"), t.put(12, id=2, n=1.5)],
        lambda t: [t.put(2, id=3, n=7)],
    ),
    case(
        "added_alone",
        "id a d",
        [(1, "x", None), (2, "y", Decimal("1.50"))],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.statement(10, "ALTER TABLE {} ADD COLUMN d decimal(8,2)")],
        lambda t: [t.put(11, id=2, a="y", d=1.5)],
    ),
    case(
        "told_of_another_table",
        "id a",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [
            t.statement(10, "ALTER TABLE crm.{} DROP COLUMN a"),
            t.statement(11, "ALTER TABLE other DROP COLUMN a"),
        ],
    ),
    case(
        "what_changes_nothing",
        "id a",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [
            t.statement(10, "ALTER TABLE {} ADD INDEX i (a), COMMENT 'drop a'"),
            t.statement(11, "CREATE INDEX drop_a ON {} (a)"),
        ],
    ),
]
_RUNS = 3


def _source(name: str, landing: Path, **fields: Any) -> Source:
    tables = fields.pop("tables", {"shop.*": {"key": ["id"]}})
    told = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables, **fields}
    return Source.model_validate(told)


def _table(lake: Lake, source: str, table: str) -> tuple[str, list[tuple[Any, ...]]]:
    found = lake.load((source, table)).scan().to_arrow().drop_columns([POSITION, COMMITTED_AT])
    rows = sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)
    return " ".join(found.schema.names), rows


@pytest.fixture(scope="module")
def cases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, StageReport]]:
    """All cases as tables of one source, landed and published in three runs; the runs' reports."""
    landing = tmp_path_factory.mktemp("cases")
    source = _source("schema_cases", landing)
    reports = []
    for run in range(_RUNS):
        deliver(landing, f"run-{run}", [m for case in CASES if run < len(case.runs) for m in case.runs[run]])
        reports.append(run_all(source))
    return reports


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_has_the_columns_and_rows_of_the_source(
    case: Case, cases: list[dict[str, StageReport]], lake: Lake
) -> None:
    """Every case publishes the columns and the rows written beside it."""
    assert _table(lake, "schema_cases", case.name) == (case.columns, sorted(case.rows, key=repr))


def test_no_case_stopped_a_table_and_every_event_is_accounted_for(
    cases: list[dict[str, StageReport]], lake: Lake
) -> None:
    """No run has problems, and the ledger closes."""
    assert [report.problems for run in cases for report in run.values()] == [()] * len(cases) * 5
    for row in Ledger(lake, "schema_cases").read("tables"):
        accounted = sum(row[name] for name in ("applied", "superseded", "duplicate", "held", "quarantined"))
        assert row["events"] == accounted, row
        assert row["quarantined"] == 0, row


@pytest.fixture
def followed(spark: SparkSession, tmp_path: Path) -> Any:
    """Deliver messages to a source of this test's own and run it: ``followed([...], schema="strict")``; the reports."""
    name = tmp_path.name.removeprefix("test_")  # pytest numbers it
    number = 0

    def run(messages: Sequence[Message], *, stages: Iterable[str] = (), **fields: Any) -> tuple[Source, Any]:
        nonlocal number
        number += 1
        source = _source(name, tmp_path, **fields)
        deliver(tmp_path, f"{number}", messages)
        return source, [run_stage(stage, source, None, None) for stage in stages] if stages else run_all(source)

    return run


def test_the_tables_of_tools_are_not_published(cases: list[dict[str, StageReport]], lake: Lake) -> None:
    """They are known by their names, beside the table that they were made for."""
    published = {name for name in lake.tables("schema_cases") if name.startswith("_")}
    assert published == set()


def test_the_tables_of_tools_are_published_where_the_source_file_says_so(followed: Any, lake: Lake) -> None:
    """As tables of their own; and one beside which there is no such table always is."""
    t, copy, other = Log("t"), Log("_t_gho"), Log("_u_new")
    source, _ = followed([t.put(1, id=1), copy.put(2, id=1), other.put(3, id=1)], migration_tables=True)
    assert set(lake.tables(source.source)) == {"t", "_t_gho", "_u_new"}
    source, _ = followed([t.put(4, id=2), copy.put(5, id=2), Log("_t_new").put(6, id=1)])
    assert set(lake.tables(source.source)) == {"t", "_t_gho", "_u_new"}


def _columns(lake: Lake, source: Source, table: str) -> list[str]:
    return [field.name for field in lake.load((source.source, table)).schema().fields][:-2]


BEFORE = [Log("t").put(1, id=1, a="a1", b="b1", n=1)]
CHANGES = [
    Log("t").statement(10, "ALTER TABLE {} RENAME COLUMN a TO c, DROP COLUMN b"),
    Log("t").statement(11, "ALTER TABLE {} MODIFY n bigint"),
    Log("t").statement(12, "ALTER TABLE {} ADD COLUMN a int DEFAULT 7"),
    Log("t").put(13, id=2, c="c2", n=5_000_000_000, a=8),
]
TYPES = {"tables": {"shop.*": {"key": ["id"]}, "shop.t": {"key": ["id"], "columns": {"id": "int"}}}}


def test_readers_of_main_see_no_rename_and_no_drop_before_they_are_published(followed: Any, lake: Lake) -> None:
    """Between compact and publish ``main`` has its rows and columns; new columns are there, and null."""
    source, _ = followed(BEFORE, **TYPES)
    followed(CHANGES, stages=("land", "normalize", "compact"), **TYPES)
    table = lake.load((source.source, "t"))
    rows = table.scan().to_arrow().drop_columns([POSITION, COMMITTED_AT]).to_pylist()
    assert rows == [{"id": 1, "a": "a1", "b": "b1", "n": 1, "tidemark new a": None}]
    run_stage("check", source, None, None)
    assert _columns(lake, source, "t") == ["id", "a", "b", "n", "tidemark new a"]
    run_stage("publish", source, None, None)
    assert _table(lake, source.source, "t") == ("id c n a", [(1, "a1", 1, 7), (2, "c2", 5_000_000_000, 8)])
    assert [field.field_id for field in lake.load((source.source, "t")).schema().fields][:3] == [1, 2, 4]
    first = table.refs()["cut_1"].snapshot_id
    assert table.scan(snapshot_id=first).to_arrow().column("a").to_pylist() == ["a1"]


CRASHES = {
    "before_the_table_moves": ("tidemark.ledger.cuts.fast_forward", 1),
    "before_its_state_does": ("tidemark.ledger.cuts.fast_forward", 2),
    "after_both": ("tidemark.ledger.cuts.set_state", 2),
}


@pytest.mark.parametrize("point", crash_windows(CRASHES, usually={"before_its_state_does"}))
def test_a_publish_that_was_killed_is_finished_with_its_schema(
    point: str, followed: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the table moves with its schema, before its state does, or after both: the next run does it."""
    source, _ = followed(BEFORE, **TYPES)
    followed(CHANGES, stages=("land", "normalize", "compact", "check"), **TYPES)
    with monkeypatch.context() as patched:
        die_at(patched, *CRASHES[point])
        with pytest.raises(SystemExit):
            run_stage("publish", source, None, None)
    run_all(source)
    assert _table(lake, source.source, "t") == ("id c n a", [(1, "a1", 1, 7), (2, "c2", 5_000_000_000, 8)])


def test_a_cut_that_was_not_published_is_built_again_with_the_same_schema(followed: Any, lake: Lake) -> None:
    """Compact twice, with more events between: columns that the first try added are used by the second."""
    source, _ = followed(BEFORE, **TYPES)
    followed(CHANGES, stages=("land", "normalize", "compact"), **TYPES)
    followed([Log("t").put(14, id=3, c="c3", n=3, a=9)], **TYPES)
    rows = [(1, "a1", 1, 7), (2, "c2", 5_000_000_000, 8), (3, "c3", 3, 9)]
    assert _table(lake, source.source, "t") == ("id c n a", rows)


def test_types_seen_by_a_cut_that_was_not_published_bind_none_after_it(followed: Any, lake: Lake) -> None:
    """Values of a first cut, of a new column and of one that was null so far tell more with those that follow."""
    t, u = Log("t"), Log("u")
    first = [t.put(1, id=1, n=1), u.put(1, id=1, n=None)]
    source, _ = followed(first, stages=("land", "normalize", "compact"))
    followed([t.put(2, id=2, n=1.5), u.put(2, id=2, n=None)])
    half = Decimal("1.5").quantize(Decimal(10) ** -18)
    assert _table(lake, source.source, "t")[1] == [(1, Decimal(1)), (2, half)]
    followed([u.put(3, id=3, n=1, m=1)], stages=("land", "normalize", "compact"))
    followed([u.put(4, id=4, n=1.5, m=1.5)])
    rows = [(1, None, None), (2, None, None), (3, Decimal(1), Decimal(1)), (4, half, half)]
    assert _table(lake, source.source, "u") == ("id n m", rows)


def test_a_column_that_a_rebuild_found_values_for_is_void_no_more(
    followed: Any, lake: Lake, spark: SparkSession
) -> None:
    """A table that somebody else wrote into is stopped: what is in it stays."""
    t, u = Log("t"), Log("u")
    source, _ = followed([t.put(1, id=1, n=None), u.put(1, id=1, n=None)])
    first = followed([t.put(2, id=2, n="x")], stages=("land", "normalize"))[0]
    for stage in ("rebuild", "compact", "check", "publish"):
        run_stage(stage, first)
    spark.sql(f"UPDATE {lake.spark_name((source.source, 'u'))} SET n = 'mine'")  # noqa: S608  names of this test
    followed([t.put(3, id=3, n="y"), u.put(3, id=3, n=5)])
    assert _table(lake, source.source, "t")[1] == [(1, None), (2, "x"), (3, "y")]
    assert _table(lake, source.source, "u")[1] == [(1, "mine")]


def test_a_table_that_is_not_there_any_more_is_published_whole(followed: Any, lake: Lake) -> None:
    """It was dropped, or the source file names it otherwise: what was published under the old name stays there."""
    tables = {"shop.*": {"key": ["id"]}, "shop.h": {"key": ["id"], "history": True}, "shop.bag": {"key": []}}
    logs = [Log(name) for name in ("h", "bag", "other")]
    source, _ = followed([log.put(1, id=1, n=1) for log in logs], tables=tables)
    lake.catalog.drop_table((source.source, "h"))
    _, reports = followed([log.put(2, id=2, n=2) for log in logs[:2]], tables=tables)
    assert [report.problems for report in reports.values()] == [()] * 5
    for name in ("h", "bag", "h__history"):
        rows = lake.load((source.source, name)).scan(selected_fields=("n",)).to_arrow().column("n").to_pylist()
        assert sorted(rows) == [1, 2], name
    followed([log.put(3, id=3, n=3) for log in logs], tables=tables, target="{source}.the_{table}")
    for name in ("the_h", "the_bag", "the_h__history"):
        rows = lake.load((source.source, name)).scan(selected_fields=("n",)).to_arrow().column("n").to_pylist()
        assert sorted(rows) == [1, 2, 3], name
    assert _table(lake, source.source, "the_other")[1] == [(1, 1), (3, 3)]
    assert _table(lake, source.source, "h")[1] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("policy", ["strict", "ignore"])
def test_the_first_value_of_a_column_changes_no_schema_at_the_source(policy: str, followed: Any, lake: Lake) -> None:
    """Whatever becomes of changes there, a column that was null so far gets the type of its values."""
    t = Log("t")
    source, _ = followed([t.put(1, id=1, n=None)], schema=policy)
    followed([t.put(2, id=2, n=5)], schema=policy)
    assert _table(lake, source.source, "t") == ("id n", [(1, None), (2, 5)])


def test_a_table_of_which_only_a_truncate_came_waits_and_is_no_problem(followed: Any, lake: Lake) -> None:
    """There is nothing to publish, nor a reason for a cut; rows that come later meet the TRUNCATE at its place."""
    from tidemark.queries.status import status_of

    t = Log("t")
    source, first = followed([t.truncate(5), Log("u").put(1, id=1)])
    assert [report.problems for report in first.values()] == [()] * 5
    run_all(source)
    status = status_of(lake, source.source)
    assert status["cut"]["number"] == 1, status
    told = {table["object"]: (table["state"], table["held"]) for table in status["tables"].values()}
    assert told == {"shop.t": ("waiting", 1), "shop.u": ("published", 0)}
    run_stage("rebuild", source)
    run_all(source)
    _, later = followed([t.put(4, id=1, n=1), t.put(6, id=2, n=2)])
    assert [report.problems for report in later.values()] == [()] * 5
    assert _table(lake, source.source, "t")[1] == [(2, 2)]
    run_all(source)
    assert status_of(lake, source.source)["cut"]["number"] == 3
    assert Ledger(lake, source.source).rebuild_requests() == {}


def test_a_column_that_was_null_so_far_begins_in_histories_and_bags_too(followed: Any, lake: Lake) -> None:
    """Late events and removed rows meet the null of before."""
    tables = {"shop.h": {"key": ["id"], "history": True, "deletes": "soft"}, "shop.bag": {"key": []}}
    h, bag = Log("h"), Log("bag")
    source, _ = followed([h.put(1, id=1, n=None), bag.put(1, id=1, n=None), bag.put(2, id=1, n=None)], tables=tables)
    again = [h.put(5, {"id": 1, "n": None}, id=1, n=5), bag.put(5, id=2, n=7), bag.delete(6, id=1, n=None)]
    followed(again, tables=tables)
    followed([h.put(3, {"id": 1, "n": None}, id=1, n=4), h.delete(7, id=1, n=5)], tables=tables)
    assert _table(lake, source.source, "bag") == ("id n", [(1, None), (2, 7)])
    assert _table(lake, source.source, "h") == ("id n _cdc_deleted", [(1, 5, True)])
    versions = lake.load((source.source, "h__history")).scan(selected_fields=("n", POSITION)).to_arrow().to_pylist()
    assert [row["n"] for row in sorted(versions, key=lambda row: str(row[POSITION]))] == [None, 4, 5]


def test_a_number_that_outgrows_a_guessed_type_is_taken_as_if_it_had_been_there_at_first(
    followed: Any, lake: Lake
) -> None:
    """The table is folded anew with the type of all its numbers; text among them stays where it is."""
    tables = {"shop.*": {"key": ["id"]}, "shop.h": {"key": ["id"], "history": True}, "shop.bag": {"key": []}}
    t, h, bag = Log("t"), Log("h"), Log("bag")
    source, _ = followed([log.put(1, id=1, n=10) for log in (t, h, bag)], tables=tables)
    _, reports = followed([log.put(2, id=2, n=10.5) for log in (h, bag)] + [t.put(2, id=2, n=11)], tables=tables)
    assert [report.problems for report in reports.values()] == [()] * 5
    half = Decimal("10.5").quantize(Decimal(10) ** -18)
    for name in ("h", "bag", "h__history"):
        rows = lake.load((source.source, name)).scan(selected_fields=("n",)).to_arrow().column("n").to_pylist()
        assert sorted(rows) == [Decimal(10), half], name
    assert _table(lake, source.source, "t")[1] == [(1, 10), (2, 11)]
    followed([h.put(3, id=3, n=10**19), h.put(3, id=4, n="abc"), t.put(3, id=3, n="abc")], tables=tables)
    assert _table(lake, source.source, "h")[1] == [(1, Decimal(10)), (2, half), (3, Decimal(10**19))]
    followed([t.put(4, id=4, n=10.5), t.put(5, id=5, n=12)], tables=tables)
    assert _table(lake, source.source, "t")[1] == [(1, Decimal(10)), (2, Decimal(11)), (4, half), (5, Decimal(12))]
    quarantined = lake.load(("quarantine", source.source)).scan().to_arrow()
    detail = "column 'n': \"abc\" is no decimal(38, 18) written as plain: not a number"
    assert quarantined.column("detail").to_pylist() == [f"{detail}; `columns: {{n: string}}` keeps it as text"] * 2
    accounted = ("applied", "superseded", "duplicate", "held", "quarantined")
    for row in Ledger(lake, source.source).read("tables"):
        assert row["events"] == sum(row[name] for name in accounted), row


def test_a_table_that_is_built_anew_by_itself_makes_no_text_of_its_numbers(followed: Any, lake: Lake) -> None:
    """Values set aside for a type that readers know stay so, whatever it is built anew for; asked to, it makes text."""
    t = Log("t")
    source, _ = followed([t.put(1, id=1, n=10, m=1, b=True), t.put(2, id=2, n=11, m=2, b=False)])
    followed([t.put(3, id=3, n="abc", m=3, b=True), t.put(4, id=4, n=12, m=4, b="maybe")])
    followed([t.put(5, id=5, n=13, m=5.5, b=True), t.put(6, id=6, n=14.5, m=6, b=None)])
    types = {field.name: str(field.field_type) for field in lake.load((source.source, "t")).schema().fields}
    assert (types["n"], types["m"], types["b"]) == ("decimal(38, 18)", "decimal(38, 18)", "boolean")
    names, rows = _table(lake, source.source, "t")
    whole = [(row[0], row[names.split().index("n")]) for row in rows]
    assert whole == [(1, 10), (2, 11), (5, 13), (6, Decimal("14.5").quantize(Decimal(10) ** -18))]
    run_stage("rebuild", source)
    run_all(source)
    assert len(_table(lake, source.source, "t")[1]) == 6
    types = {field.name: str(field.field_type) for field in lake.load((source.source, "t")).schema().fields}
    assert (types["n"], types["b"]) == ("string", "string")


def test_a_number_that_becomes_text_is_followed_and_a_strict_source_stops_that_table(followed: Any, lake: Lake) -> None:
    """Text holds the digits of the numbers. With ``schema: strict`` the table stays, and no other does."""
    t, u = Log("t"), Log("u")
    source, _ = followed([t.put(1, id=1, n=1), t.put(2, id=2, n=7), u.put(1, id=1, n=1)])
    messages = [t.statement(10, "ALTER TABLE {} MODIFY n varchar(9)"), t.put(11, id=1, n="x"), u.put(11, id=1, n=2)]
    _, reports = followed(messages, schema="strict")
    (problem,) = reports["publish"].problems
    assert "'n' changed from long to string" in problem
    assert f"`tidemark rebuild {source.source} shop.t`" in problem
    assert _table(lake, source.source, "t")[1] == [(1, 1), (2, 7)]
    assert _table(lake, source.source, "u")[1] == [(1, 2)]
    _, reports = followed([t.put(12, id=3, n="03"), t.put(5, id=4, n=4)])
    assert reports["publish"].problems == ()
    assert _table(lake, source.source, "t")[1] == [(1, "x"), (2, "7"), (3, "03"), (4, "4")]


def test_ddl_that_comes_after_newer_rows_is_followed_from_the_change_log(followed: Any, lake: Lake) -> None:
    """Rows of a column were published that a drop or a rename, told late, speaks of: only the log tells which is whose.

    What comes out is what one run of all would have published.
    """
    t, u = Log("t"), Log("u")
    first = [t.put(1, id=1, a="x"), t.put(20, id=2, a="y"), u.put(1, id=1, a="x"), u.put(20, id=2, a="y", b="b")]
    later = [
        t.statement(10, "ALTER TABLE {} DROP COLUMN a"),
        t.put(21, id=3, a="z"),
        u.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b, ADD COLUMN a text"),
        u.put(21, id=3, a="z", b="c"),
    ]
    source, _ = followed(first)
    _, reports = followed(later)
    assert [report.problems for report in reports.values()] == [()] * 5
    in_two = {name: _table(lake, source.source, name) for name in ("t", "u")}
    assert in_two["t"][1] == [(1, None), (2, "y"), (3, "z")]
    for name in ("t", "u"):
        lake.catalog.drop_table((source.source, name))
    run_stage("rebuild", source)
    run_all(source)
    assert {name: _table(lake, source.source, name) for name in ("t", "u")} == in_two
    assert sorted(in_two["u"][0].split()) == ["a", "b", "id"]


def test_a_strict_source_stops_a_table_whose_ddl_came_late(followed: Any, lake: Lake) -> None:
    """Nothing is built anew that was to be allowed first."""
    t = Log("t")
    source, _ = followed([t.put(1, id=1, a="x"), t.put(20, id=2, a="y")], schema="strict")
    _, reports = followed([t.statement(10, "ALTER TABLE {} DROP COLUMN a"), t.put(21, id=3, a="z")], schema="strict")
    assert [problem for problem in reports["compact"].problems if "'a' was dropped by DDL that came after" in problem]
    assert _table(lake, source.source, "t")[1] == [(1, "x"), (2, "y")]


def test_a_strict_source_sets_a_number_aside_that_outgrows_a_guess(followed: Any, lake: Lake) -> None:
    """No type changes that nobody allowed; a rebuild that is asked for takes the number in."""
    t = Log("t")
    source, _ = followed([t.put(1, id=1, n=10)], schema="strict")
    followed([t.put(2, id=2, n=10.5)], schema="strict")
    assert _table(lake, source.source, "t")[1] == [(1, 10)]
    assert lake.load(("quarantine", source.source)).scan().to_arrow().num_rows == 1
    run_stage("rebuild", source)
    run_all(source)
    assert [row[0] for row in _table(lake, source.source, "t")[1]] == [1, 2]


def test_a_rename_told_late_is_followed_where_it_is_plain(followed: Any, lake: Lake) -> None:
    """Newer rows came before the rename, in columns that were null for them: the column moves."""
    t = Log("t")
    source, _ = followed([t.put(1, id=1, a="x", k=1), t.put(20, id=2, k=2)])
    followed([t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO b"), t.put(21, id=3, k=3, b="z")])
    assert _table(lake, source.source, "t") == ("id b k", [(1, "x", 1), (2, None, 2), (3, "z", 3)])


def test_a_strict_source_stops_a_table_until_the_change_is_allowed(followed: Any, lake: Lake) -> None:
    """The reason names every change and how to allow it; a run with ``schema: evolve`` does."""
    source, _ = followed(BEFORE, schema="strict", **TYPES)
    _, reports = followed(CHANGES, schema="strict", **TYPES)
    [problem] = reports["compact"].problems
    assert "'a' is called 'c'" in problem
    assert "'b' is gone" in problem
    assert "`schema: evolve`" in problem
    assert _table(lake, source.source, "t") == ("id a b n", [(1, "a1", "b1", 1)])
    followed([], **TYPES)
    followed([Log("t").put(14, id=3, c="c3", n=3, a=9)], schema="strict", **TYPES)
    assert _table(lake, source.source, "t")[1][2] == (3, "c3", 3, 9)


def test_an_ignoring_source_keeps_its_columns(followed: Any, lake: Lake) -> None:
    """Columns that the table does not have are left out, renames and drops are not followed; types still widen."""
    source, _ = followed(BEFORE, schema="ignore", **TYPES)
    followed([Log("t").statement(10, "ALTER TABLE {} RENAME COLUMN b TO c"), CHANGES[3]], schema="ignore", **TYPES)
    assert _table(lake, source.source, "t") == ("id a b n", [(1, "a1", "b1", 1), (2, "8", None, 5_000_000_000)])


def test_ddl_that_is_not_understood_is_told_and_holds_nothing_back(followed: Any, lake: Lake) -> None:
    """A statement that may matter is in the report and in the status; publishing goes on."""
    from tidemark.queries.status import status_of

    t = Log("t")
    source, _ = followed([t.put(1, id=1, a="x")])
    _, reports = followed([t.statement(10, "ALTER TABLE {} TRUNCATE PARTITION p0"), t.put(11, id=1, a="y")])
    assert reports["publish"].problems == ()
    assert "TRUNCATE PARTITION p0" in str(reports["compact"].details["shop.t"]["ddl"])
    assert "TRUNCATE PARTITION p0" in status_of(lake, source.source)["ddl_not_followed"]["shop.t"][0]
    followed([t.statement(12, "ALTER TABLE {} ADD n int DEFAULT 5, ADD u varchar(36) DEFAULT (UUID())")])
    [_, note] = status_of(lake, source.source)["ddl_not_followed"]["shop.t"]
    assert note.startswith("DDL followed in part, column 'u' was added and the value of '( UUID ( ) )' is not known")
    assert "rows from before the statement keep null in it" in note
    assert "ADD n int DEFAULT ..." in note


def test_the_change_log_shows_old_events_under_the_names_of_today(
    followed: Any, lake: Lake, spark: SparkSession
) -> None:
    """``__changes`` reads each image with the names that were valid at its position."""
    from tidemark.queries.typed_changes import typed_changes

    source, _ = followed([*BEFORE, *CHANGES], **TYPES)
    rows = typed_changes(lake, (source.source, "t")).orderBy("position").select("after.*").collect()
    assert [row.asDict() for row in rows] == [
        {"id": 1, "c": "a1", "n": 1, "a": None},
        {"id": 2, "c": "c2", "n": 5_000_000_000, "a": 8},
    ]


def test_an_unknown_policy_is_named_with_what_is_allowed(tmp_path: Path) -> None:
    """The source file's mistake, with the place of it."""
    file = tmp_path / "erp.yaml"
    file.write_text("source: erp\nformat: canal_json\nlanding: x/*\nschema: strikt\n")
    [problem] = validate([file])
    assert "unknown value 'strikt'" in str(problem)
    assert "strict" in str(problem)
