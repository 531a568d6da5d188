"""The schema of a published table follows the source's, whatever order, runs and moments its changes come in."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from histories import deliver
from running import run_all
from tidemark.lake import Lake
from tidemark.ledger import Ledger
from tidemark.planning import COMMITTED_AT, POSITION
from tidemark.sources import Source
from tidemark.stages import StageReport

pytestmark = pytest.mark.spark

UNAVAILABLE = "__debezium_unavailable_value"
Message = bytes


def _origin(table: str, at: int) -> dict[str, Any]:
    origin = {"connector": "mysql", "snapshot": "false", "db": "shop", "table": table, "ts_ms": 1767225600000}
    return {**origin, "file": "mysql-bin.000003", "pos": at, "row": 0}


class Log:
    """The log of one table at a source: rows by value, DDL by text, each at a place."""

    def __init__(self, table: str) -> None:
        self.table = table

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        """An update (where there is a row before) or an insert; a value ``...`` was not captured."""
        after = {name: UNAVAILABLE if value is ... else value for name, value in row.items()}
        op = "c" if before is None else "u"
        return json.dumps({"op": op, "before": before, "after": after, "source": _origin(self.table, at)}).encode()

    def delete(self, at: int, **row: Any) -> Message:
        """A row went."""
        return json.dumps({"op": "d", "before": row, "after": None, "source": _origin(self.table, at)}).encode()

    def ddl(self, at: int, text: str, table: str | None = None) -> Message:
        """A statement; ``{}`` in it is the table's name."""
        told = {"source": _origin(table or self.table, at), "databaseName": "shop", "ddl": text.format(self.table)}
        return json.dumps({**told, "ts_ms": 1767225600000, "tableChanges": []}).encode()


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


CASES = [
    case(
        "rename_in_one_run",
        "id b",
        [(1, "z"), (2, "y")],
        lambda t: [
            t.put(1, id=1, a="x"),
            t.put(2, id=2, a="y"),
            t.ddl(3, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.put(4, id=1, b="z"),
        ],
    ),
    case(
        "rename_over_runs",
        "id b",
        [(1, "z"), (2, "y"), (3, "n")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.ddl(3, "ALTER TABLE {} CHANGE a b text"), t.put(4, id=1, b="z")],
        lambda t: [t.put(5, id=3, b="n")],
    ),
    case(
        "rename_alone_in_its_run",
        "id b",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.ddl(3, "ALTER TABLE {} RENAME COLUMN a TO b")],
    ),
    case(
        "late_event_under_the_old_name",
        "id b",
        [(1, "z"), (2, "late"), (3, "too late")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.ddl(10, "ALTER TABLE {} RENAME COLUMN a TO b"), t.put(11, id=1, b="z")],
        lambda t: [t.put(3, id=2, a="late"), t.put(4, id=1, a="late"), t.put(5, id=3, a="too late")],
    ),
    case(
        "renamed_and_added_again",
        "id a b",
        [(1, None, "x"), (2, "new", "z")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [
            t.ddl(10, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.ddl(11, "ALTER TABLE {} ADD COLUMN a text AFTER id"),
            t.put(12, id=2, a="new", b="z"),
        ],
    ),
    case(
        "two_names_swapped",
        "id b a",
        [(1, "a1", "b1"), (2, "a2", "b2")],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.ddl(10, "ALTER TABLE {} RENAME COLUMN a TO b, RENAME COLUMN b TO a"),
            t.put(12, id=2, a="b2", b="a2"),
        ],
    ),
    case(
        "dropped",
        "id b",
        [(1, "b1"), (2, "b2"), (3, "b3")],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [t.put(2, id=2, a="a2", b="b2"), t.ddl(10, "ALTER TABLE {} DROP COLUMN a"), t.put(12, id=3, b="b3")],
    ),
    case(
        "dropped_and_added_again_with_another_type",
        "id b a",
        [(1, "b1", None), (2, "b2", 7), (3, "b3", None)],
        lambda t: [t.put(1, id=1, a="a1", b="b1")],
        lambda t: [
            t.ddl(10, "ALTER TABLE {} DROP a"),
            t.ddl(11, "ALTER TABLE {} ADD a int"),
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
            t.ddl(10, "ALTER TABLE {} ADD COLUMN n int DEFAULT 5"),
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
        lambda t: [t.ddl(10, "ALTER TABLE {} ADD COLUMN d decimal(8,2) NOT NULL DEFAULT '1.50'")],
    ),
    case(
        "widened_by_ddl",
        "id n",
        [(1, 50_000_000_000)],
        lambda t: [t.put(1, id=1, n=5)],
        lambda t: [t.ddl(10, "ALTER TABLE {} MODIFY n bigint"), t.put(11, id=1, n=50_000_000_000)],
    ),
    case(
        "table_dropped",
        "id a",
        [(2, "after"), (3, "after")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.ddl(10, "DROP TABLE {}"), t.put(12, id=2, a="after")],
        lambda t: [t.put(3, id=1, a="late"), t.put(13, id=3, a="after")],
    ),
    case(
        "truncated_by_ddl_alone",
        "id a",
        [],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.ddl(10, "TRUNCATE TABLE {}")],
    ),
    case(
        "partial_images_over_a_rename",
        "id b c",
        [(1, "b3", "c4"), (2, "late", "c2"), (3, "b1", "c5")],
        lambda t: [t.put(1, id=1, a="a1", c="c1"), t.put(2, id=2, a="a2", c="c2"), t.put(2, id=3, a="b1", c="c1")],
        lambda t: [t.put(20, id=1, a=..., c="c4"), t.put(20, id=2, a=..., c="c2"), t.put(20, id=3, a=..., c="c5")],
        lambda t: [
            t.ddl(30, "ALTER TABLE {} RENAME COLUMN a TO b"),
            t.put(31, id=1, b="b3", c=...),
            t.put(10, id=2, a="late", c="late"),
        ],
    ),
    case(
        "key_renamed",
        "number a",
        [(1, "z"), (2, "y"), (3, "n")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.ddl(10, "ALTER TABLE {} RENAME COLUMN id TO number"), t.put(12, number=1, a="z")],
        lambda t: [t.put(3, id=2, a="y"), t.put(13, number=3, a="n"), t.delete(14, number=9, a="")],
    ),
    case(
        "told_of_another_table",
        "id a",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.ddl(10, "ALTER TABLE crm.{} DROP COLUMN a"), t.ddl(11, "ALTER TABLE other DROP COLUMN a")],
    ),
    case(
        "what_changes_nothing",
        "id a",
        [(1, "x")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [
            t.ddl(10, "ALTER TABLE {} ADD INDEX i (a), COMMENT 'drop a'"),
            t.ddl(11, "CREATE INDEX drop_a ON {} (a)"),
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
