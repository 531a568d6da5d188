"""What check finds in candidates by itself, whatever the source file declares."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.running import run_all
from tidemark.lake.branches import head
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.pipeline import run_stage
from tidemark.quality import judging, key_counts
from tidemark.sources.model import Source

pytestmark = pytest.mark.spark

TABLES = [Table(f"table_{number}") for number in range(5)]
TOTALS = Table("totals", key=("count", "place"), columns=("count", "place", "rows"))
BAD = {"table_1": "(2L, 'twice')", "table_3": "(NULL, 'none'), (7L, 'unknown')"}
"""By table, the rows that are put into its candidate."""
BAD_VERSIONS = {
    "table_0": "DELETE FROM {} WHERE id = 3 AND is_current",
    "table_4": "UPDATE {} SET _cdc_position = '00' WHERE id = 2 AND is_current",
}
"""By table, what is done to its history."""
ENTRY = {"key": ["id"], "columns": {"id": "long", "name": "string"}}


@pytest.fixture(scope="module")
def candidate(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A cut to be checked: two of its tables have keys that are null or there twice, and rows that nobody wrote.

    Another one has a key whose columns are named as the counts are. Two have histories with a version too few, and
    with one that is another.
    """
    folder = tmp_path_factory.mktemp("candidate")
    tables = {
        "shop.totals": {"key": ["count", "place"]},
        **{f"shop.{name}": {**ENTRY, "history": True} for name in BAD_VERSIONS},
        "shop.*": ENTRY,
    }
    fields = {"source": "doubtful", "format": "debezium_json", "landing": str(folder / "*"), "tables": tables}
    made = Source.model_validate(fields)
    first = [table.insert(n, n, "a", "b") for table in TABLES for n in range(1, 5)]
    deliver(folder, "0", map(message, [*first, TOTALS.insert(1, 1, 2, "a")]))
    run_all(made)
    deliver(
        folder, "1", map(message, [*(table.update(9, 2, "c", "d") for table in TABLES), TOTALS.update(2, 1, 2, "b")])
    )
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, made, None, None)
    for name, values in BAD.items():
        branch = lake.spark_name((made.source, name), "candidate_2")
        spark.sql(f"INSERT INTO {branch} (id, name) VALUES {values}")  # noqa: S608  the test's own
    for name, statement in BAD_VERSIONS.items():
        spark.sql(statement.format(lake.spark_name((made.source, f"{name}__history"), "candidate_2")))
    ledger = Ledger(lake, made.source)
    rows = ledger.tables(equals("cut", 2))
    snapshots = {row.object: head(lake.load(row.identifier), "candidate_2") for row in rows}
    moved = [msgspec.structs.replace(row, snapshot=snapshots[row.object]) for row in rows]
    ledger.replace(TableRow, moved, equals("cut", 2))
    return made


@pytest.mark.parametrize(
    ("small", "most"),
    [
        pytest.param(True, 0, id="read here"),
        pytest.param(False, 100, marks=pytest.mark.prove, id="written keys are sought"),
        pytest.param(False, 0, id="all keys are counted"),
    ],
)
def test_each_table_is_told_what_is_wrong_with_it(
    candidate: Source,
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    small: bool,  # noqa: FBT001
    most: int,
) -> None:
    """Keys that are null or there twice, and rows that the ledger does not know, are found in the table they are in.

    A key may have any name, also those that counting rows gives to columns of its own.
    """
    monkeypatch.setattr(key_counts, "is_small", lambda _: small)
    monkeypatch.setattr(key_counts, "_BROADCAST", most)
    report = run_stage("check", candidate, None, None)
    problems = sorted(problem for problem in report.problems if "version" not in problem)
    assert [
        re.sub(r"\(table\) failed: (\S+);.*", r"\1", problem) for problem in report.problems if "version" in problem
    ] == [
        "doubtful.table_0: rows beyond the current versions 1",
        "doubtful.table_0: rows unlike their current version 1",
        "doubtful.table_4: rows unlike their current version 1",
    ]
    found = [
        (name, kind)
        for name in BAD
        for kind in ("null", "duplicate", "beyond")
        for p in problems
        if name in p and kind in p
    ]
    assert found == [("table_1", "duplicate"), ("table_1", "beyond"), ("table_3", "null"), ("table_3", "beyond")]
    assert len(problems) == len(found)
    remarks = [re.sub(r"position \S+, message (\d+ of )\S+/", r"message \1", remark) for remark in report.remarks]
    assert [remark for remark in remarks if "versions" not in remark] == [
        "doubtful.table_1: duplicate keys: id=2. The first is at message 2 of 1.json",
        "doubtful.table_1: rows without a position, which no event brought: id=2",
        "doubtful.table_3: null keys: the first is at no position: another writer's row",
        "doubtful.table_3: rows without a position, which no event brought: id=null; id=7",
    ]
    assert [remark for remark in remarks if "versions" in remark] == [
        "doubtful.table_0: rows and current versions that are not the same: id=3. The first is at message 3 of 0.json",
        "doubtful.table_4: rows and current versions that are not the same: id=2. The first is at position 00",
    ]
    rows = Ledger(lake, candidate.source).tables(equals("cut", 2))
    assert [row.verdict for row in rows if row.object == "shop.totals"] == ["passed"]
    table = lake.load((candidate.source, "totals"))
    (row,) = table.scan(snapshot_id=head(table, "candidate_2")).to_arrow().to_pylist()
    assert (row["count"], row["place"], row["rows"]) == (1, 2, "b")


def test_small_tables_and_histories_are_judged_without_spark(
    source: Callable[..., Source], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where deletes are soft: a row that is marked has no current version."""
    t = Table("t")
    made = source("debezium_json", tables={"shop.t": {**ENTRY, "history": True, "deletes": "soft"}})
    changes = [t.insert(1, 1, "a", "b"), t.insert(2, 2, "a", "b"), t.update(3, 1, "c", "b"), t.delete(4, 2, "a", "b")]
    deliver(Path(made.landing).parent, "0", map(message, changes))
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, made)
    monkeypatch.setattr(judging, "session_for", lambda _: pytest.fail("Spark was opened"))
    report = run_stage("check", made)
    assert (report.problems, report.remarks) == ((), ())
