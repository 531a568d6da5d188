"""Branches, markers and settings of the lake, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from sqlalchemy.exc import IntegrityError

from tidemark.errors import PublishConflictError
from tidemark.lake.branches import branch_from_main, drop_branch, fast_forward, head, marker
from tidemark.lake.commits import commit_files
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.properties import TABLE_PROPERTIES
from tidemark.tables.targets import name_problem
from tidemark.text import quoted

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32())])


@pytest.fixture
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """A new, empty table of the test's own."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)[:60]
    return lake.ensure(("lake_tests", name), SCHEMA, TABLE_PROPERTIES, partition_by=["part"])


def rows(*ids: int) -> pa.Table:
    """Rows for a table."""
    return pa.table({"id": list(ids), "part": [1] * len(ids)}, schema=SCHEMA)


def test_table_is_made_once_with_its_partitioning(lake: Lake, table: Table) -> None:
    """A second ensure is nothing; main exists from the start, and the partitioning is as asked."""
    again = lake.ensure(table.name(), SCHEMA, TABLE_PROPERTIES, partition_by=["part"])
    assert again.metadata == table.metadata
    assert [field.name for field in again.spec().fields] == ["part"]
    assert head(again)


def test_a_namespace_that_another_process_makes_at_this_moment_is_no_error(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both saw that it is not there; any other error stays one."""
    lake.catalog.create_namespace("lake_tests_raced")
    exists, answers = lake.catalog.namespace_exists, [False]
    monkeypatch.setattr(lake.catalog, "namespace_exists", lambda name: answers.pop() if answers else exists(name))
    lake.make_namespace("lake_tests_raced")
    assert answers == []
    monkeypatch.setattr(lake.catalog, "namespace_exists", lambda _name: False)
    with pytest.raises(IntegrityError):
        lake.make_namespace("lake_tests_raced")


def test_fast_forward_moves_main_once(table: Table) -> None:
    """What is on the branch is on main afterwards, with tag and marker, by one commit; the branch is gone."""
    table = branch_from_main(table, "candidate_1")
    table.append(rows(1, 2), branch="candidate_1", snapshot_properties={"tidemark.batch": "7"})
    assert table.scan().to_arrow().num_rows == 0
    assert marker(table, "batch") is None
    before, built = len(table.metadata.metadata_log), head(table, "candidate_1")
    fast_forward(table, "candidate_1", "cut_1")
    assert table.refresh().scan().to_arrow().num_rows == 2
    assert marker(table, "batch") == "7"
    assert len(table.metadata.metadata_log) == before + 1
    assert {name: ref.snapshot_id for name, ref in table.refs().items()} == {"main": built, "cut_1": built}


def test_a_candidate_that_stands_on_main_is_tagged(table: Table) -> None:
    """A cut that changes no row of a table moves nothing, and readers find its tag."""
    table.append(rows(1))
    table = branch_from_main(table, "candidate_1")
    stands = head(table)
    fast_forward(table, "candidate_1", "cut_1")
    assert {name: ref.snapshot_id for name, ref in table.refresh().refs().items()} == {"main": stands, "cut_1": stands}


def test_marker_is_found_behind_later_commits(table: Table) -> None:
    """A commit without a marker, as maintenance makes, does not hide the one before it."""
    table.append(rows(1), snapshot_properties={"tidemark.batch": "3"})
    table.append(rows(2))
    assert marker(table, "batch") == "3"


def test_main_that_moved_refuses_the_candidate(table: Table) -> None:
    """A candidate of an older main is not published over what came in between."""
    table = branch_from_main(table, "candidate_1")
    table.append(rows(1), branch="candidate_1")
    table.append(rows(2))
    with pytest.raises(PublishConflictError, match="run compact again"):
        fast_forward(table.refresh(), "candidate_1")
    assert table.refresh().scan().to_arrow().column("id").to_pylist() == [2]


def test_stale_view_of_main_cannot_publish(lake: Lake, table: Table) -> None:
    """The compare-and-set is made in the catalog: a zombie with an old view of the table is refused."""
    table = branch_from_main(table, "candidate_1")
    table.append(rows(1), branch="candidate_1")
    zombie = lake.load(table.name())
    lake.load(table.name()).append(rows(9))
    with pytest.raises(PublishConflictError):
        fast_forward(zombie, "candidate_1")


def test_a_file_that_another_adds_meanwhile_stays_and_is_no_conflict(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables of a source that are rebuilt at once each take their messages out of one quarantine."""
    table.append(rows(1))
    commits: list[str] = []

    def raced(*args: Any, **more: Any) -> None:
        if not commits:
            lake.load(table.name()).append(pa.table({"id": [9], "part": [2]}, schema=SCHEMA))
        commits.append("begun")
        commit_files(*args, **more)

    monkeypatch.setattr("tidemark.lake.lake.commit_files", raced)
    lake.append_files(table, [], {}, instead_of=equals("part", 1))
    assert table.refresh().scan().to_arrow().column("id").to_pylist() == [9]
    assert len(commits) == 2


def test_half_built_candidate_is_dropped(table: Table) -> None:
    """A new branch of the same name starts from main again."""
    table = branch_from_main(table, "candidate_1")
    table.append(rows(1), branch="candidate_1")
    table = branch_from_main(table.refresh(), "candidate_1")
    assert head(table, "candidate_1") == head(table)


def test_branch_that_stands_on_main_is_left_alone(table: Table) -> None:
    """A run that begins again makes no commit for what is so already."""
    table.append(rows(1))
    branch_from_main(table, "candidate_1")
    before = table.metadata_location
    branch_from_main(table, "candidate_1")
    assert table.metadata_location == before


def test_moves_leave_no_metadata_behind_but_what_the_table_keeps(lake: Lake) -> None:
    """As commits of data do: each table would else grow by a file for every branch and tag."""
    kept = {"write.metadata.previous-versions-max": "2"}
    table = lake.ensure(("lake_tests", "much_moved"), SCHEMA, {**TABLE_PROPERTIES, **kept})
    table.append(rows(1))
    for number in range(4):
        branch_from_main(table, f"candidate_{number}")
        drop_branch(table, f"candidate_{number}")
    log = {entry.metadata_file for entry in table.metadata.metadata_log}
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    assert {path.name for path in folder.glob("*.metadata.json")} == {
        location.rpartition("/")[2] for location in {*log, table.metadata_location}
    }


def test_moves_of_a_copy_delete_no_metadata_that_it_shares(lake: Lake) -> None:
    """The copies of a dry run name files of the real table in their log, and say that they are not theirs."""
    kept = {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "false"}
    table = lake.ensure(("lake_tests", "much_moved_copy"), SCHEMA, {**TABLE_PROPERTIES, **kept})
    table.append(rows(1))
    folder = Path(table.location().removeprefix("file://")) / "metadata"
    before = set(folder.glob("*.metadata.json"))
    for number in range(4):
        branch_from_main(table, f"candidate_{number}")
    assert len(table.metadata.metadata_log) == 2
    assert before <= set(folder.glob("*.metadata.json"))


def test_a_branch_may_be_dropped_twice(table: Table) -> None:
    """What a crash left half done is finished by doing all of it again."""
    table = branch_from_main(table, "candidate_1")
    for _ in range(2):
        drop_branch(table.refresh(), "candidate_1")
    assert "candidate_1" not in table.refresh().refs()


@pytest.mark.parametrize("name", ["orders", "Ärger", "order-lines", "a b", "_x", "t$1"])
def test_plain_names_may_name_tables(name: str) -> None:
    """What sources really call their tables."""
    assert name_problem(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "a/b",
        "a.b",
        "a`b",
        'a"b',
        "x" * 128,
        "1a",
        "a\nb",
        "history",
        "Files",
        "branch_x",
        "orders__changes",
    ],
)
def test_hostile_and_reserved_names_are_refused(name: str) -> None:
    """A name from a message never becomes a path, a branch or a metadata table."""
    assert name_problem(name)


def test_quoted_name_keeps_its_backticks() -> None:
    """A backtick is doubled, so that it ends no name."""
    assert quoted("a`b") == "`a``b`"


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        (
            {"type": "sql", "uri": "sqlite:////data/lake.db", "warehouse": "file:///data/w"},
            {"type": "jdbc", "uri": "jdbc:sqlite:/data/lake.db?journal_mode=WAL&busy_timeout=30000"},
        ),
        (
            {"type": "sql", "uri": "postgresql+psycopg://me:secret@db:5433/lake"},
            {"type": "jdbc", "uri": "jdbc:postgresql://db:5433/lake", "jdbc.user": "me", "jdbc.password": "secret"},
        ),
        ({"uri": "https://catalog", "token": "t"}, {"type": "rest", "uri": "https://catalog", "token": "t"}),
    ],
    ids=["sqlite", "postgresql", "rest"],
)
def test_spark_is_told_the_catalog_of_pyiceberg(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], wanted: dict[str, str]
) -> None:
    """One configuration for both; passwords never stand in a URL."""
    monkeypatch.setattr("tidemark.lake.lake.load_catalog", _no_catalog())
    settings = Lake("mine", properties).spark_settings()
    assert settings["spark.sql.catalog.mine"] == "org.apache.iceberg.spark.SparkCatalog"
    assert {key: settings.get(f"spark.sql.catalog.mine.{key}") for key in wanted} == wanted


def _no_catalog() -> Callable[..., SimpleNamespace]:
    """Return what makes a catalog that nothing is asked of."""

    def load(_name: str, **_properties: str) -> SimpleNamespace:
        return SimpleNamespace(commit_table=None)

    return load
