"""A restore over a rebuild, a rebuild after another writer, and histories that are made again."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from support.cut_by_cut import CutByCut
from support.debezium_log import Log
from support.feeds import Rows, published, replayed
from tidemark.lake.branches import ancestry
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.pipeline import run_stage
from tidemark.stages import REBUILD

pytestmark = pytest.mark.spark
NAME = "back"
TRACKING: dict[str, Any] = {"history": {"ignore": ["seen"]}}
ENTRIES: dict[str, dict[str, Any]] = {
    "typed": {},
    "flagged": {"deletes": "soft"},
    "filled": {"deletes": "soft"},
    "people": TRACKING,
    "part": {**TRACKING, "where": "id < 100"},
    "renamed": {},
    "fed": {"feed": True},
    "fed_by_others": {"feed": True},
}
CHANGED = {**ENTRIES, "flagged": {"deletes": "hard"}, "people": {**TRACKING, "exclude": ["ssn"]}}
WHAT_OTHERS_DO = (
    "DELETE FROM {lake}.back.fed WHERE id = 2",
    "INSERT INTO {lake}.back.fed (id, a) VALUES (99, 'theirs')",
    "DELETE FROM {lake}.back.fed_by_others__feed WHERE id = 2",
)


class Story(NamedTuple):
    """What was to be seen of the tables after each step, and of the feeds after what others did."""

    seen: CutByCut
    feeds: dict[str, tuple[Rows, Rows]]
    """By table: the rows that its feed leads to, and its rows."""
    added: list[int]
    """Rows that each commit of the second cut added to the history of ``part``, which has ten."""


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Two cuts, with what others and the owner do in between; then the first one is restored, and a run follows."""
    seen = CutByCut(lake, NAME, tmp_path_factory.mktemp("landing"))
    before, after = (seen.source(entries, max_deletes=1) for entries in (ENTRIES, CHANGED))
    logs = {name: Log(name) for name in ENTRIES}
    seen.deliver("one", [
        *(logs["typed"].put(number, id=number, x=10 * number) for number in (1, 2)),
        *(logs["flagged"].put(number, id=number, a="x") for number in (1, 2)), logs["flagged"].delete(3, id=2, a="x"),
        logs["filled"].put(1, id=1, a="x"),
        *(logs["renamed"].put(number, id=number, a="1", b="one") for number in (1, 2)),
        *(logs["people"].put(number, id=number, ssn=f"{number}-45", seen=1) for number in (1, 2)),
        *(logs["part"].put(number, id=number, a="x", seen=1) for number in range(1, 10)),
        *(logs[name].put(number, id=number, a="x") for name in ("fed", "fed_by_others") for number in (1, 2, 3)),
    ])  # fmt: skip
    seen.run("one", before)
    for statement in WHAT_OTHERS_DO:
        spark.sql(statement.format(lake=lake.name))
    seen.deliver("two", [
        logs["typed"].ddl(10, "MODIFY x VARCHAR(10)"), logs["typed"].put(11, id=3, x="a"),
        logs["renamed"].ddl(10, "DROP COLUMN a, RENAME COLUMN b TO a"), logs["renamed"].put(11, id=3, a="three"),
        logs["filled"].ddl(10, "ADD COLUMN n int DEFAULT 5"), logs["filled"].truncate(11),
        logs["people"].put(10, {"id": 1, "ssn": "1-45", "seen": 1}, id=1, ssn="1-46", seen=2),
        logs["part"].put(10, {"id": 1, "a": "x", "seen": 1}, id=1, a="y", seen=2),
        *(logs[name].put(10, id=4, a="x") for name in ("fed", "fed_by_others")),
    ])  # fmt: skip
    for table in ("flagged", "fed", "fed_by_others"):
        run_stage(REBUILD[0], after, table=f"shop.{table}")
    history = lake.load((NAME, "part__history"))
    known = {snapshot.snapshot_id for snapshot in ancestry(history)}
    seen.run("two", after)
    summaries = [each.summary for each in ancestry(history.refresh()) if each.snapshot_id not in known]
    added = [int(summary.additional_properties.get("added-records", 0)) for summary in summaries if summary is not None]
    tables = {name: Identifier(NAME, name) for name in ("fed", "fed_by_others")}
    feeds = {name: (replayed(lake, table), published(lake, table)) for name, table in tables.items()}
    run_stage("restore", after, None, None, cut=1)
    seen.run("restored", after, stages=())
    seen.run("on", after)
    return Story(seen, feeds, added)


def test_each_cut_is_published(story: Story) -> None:
    """Nothing of the story stops a table."""
    assert {
        step: reports["publish"].problems for step, reports in story.seen.reports.items() if reports
    } == dict.fromkeys(("one", "two", "on"), ())


def test_restored_rows_are_those_of_their_cut(story: Story) -> None:
    """Also over a rebuild that gave a column another type, and where columns went or got the names of others.

    The next run leads on to the same rows.
    """
    tables = story.seen.tables
    for name in ("typed", "flagged", "renamed"):
        assert tables["restored"][name] == tables["one"][name] != tables["two"][name]
    for name in (
        "typed",
        "flagged",
        "filled",
        "people",
        "people__history",
        "part",
        "renamed",
        "part__history",
        "fed",
        "fed_by_others",
    ):
        assert tables["on"][name] == tables["two"][name], name


def test_a_row_that_a_truncate_marks_has_the_default_from_before(story: Story) -> None:
    """Both came in one cut. As one event after the other, the row had the value of the new column when it went."""
    assert story.seen.tables["two"]["filled"] == ("id a n _cdc_deleted", [(1, "x", 5, True)])


def test_a_column_that_is_left_out_is_in_no_history(story: Story) -> None:
    """Also in one that is made again, because a column of its versions goes."""
    columns, rows = story.seen.tables["two"]["people__history"]
    assert "ssn" not in columns.split()
    assert rows
    assert not [row for row in rows if "45" in repr(row)]


def test_a_history_of_some_rows_goes_on(story: Story) -> None:
    """It is not written again as long as the source file says the same of its columns."""
    _, rows = story.seen.tables["two"]["part__history"]
    assert len(rows) == 10
    assert 0 < max(story.added) < 5


@pytest.mark.parametrize("name", ["fed", "fed_by_others"])
def test_a_feed_leads_to_the_rows_of_its_table(story: Story, name: str) -> None:
    """Also where another writer changed the table, or the feed, and the table was rebuilt for it."""
    replay, rows = story.feeds[name]
    assert replay == rows
    assert len(rows) == 4
