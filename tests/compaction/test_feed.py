"""Feeds: replaying the changes from nothing gives the published table after every cut, whatever made the cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyiceberg.table.snapshots import Operation
from pyspark.sql import DataFrame, SparkSession

from support.debezium_log import Log, Message
from support.feeds import changes, published, replayed
from support.histories import deliver
from support.options import SECRET_VARIABLE, the_secret
from support.rounds import PROVING, crash_windows, how_many
from support.running import assert_ledgers_close, die_at, run_all
from tidemark.lake.branches import ancestry
from tidemark.lake.feeds import fed
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, feed
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.queries.as_of import AsOf
from tidemark.queries.sql import query
from tidemark.sources.model import Source
from tidemark.stages import REBUILD
from tidemark.tables.feeds import CHANGE_ORDINAL, CHANGE_TYPE, CUT
from tidemark.tables.schemas import POSITION

pytestmark = pytest.mark.spark


class Case(NamedTuple):
    """A table, what the source file says of it, and what is delivered run by run."""

    name: str
    promised: Mapping[str, Any]
    runs: Sequence[Callable[[Log], list[Message]]]


KEYED: Mapping[str, Any] = {"key": ["id"]}
CASES = [
    Case("keyed", KEYED, [
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y"), t.put(3, id=3, a="z")],
        lambda t: [t.put(10, {"id": 1, "a": "x"}, id=1, a="w"), t.delete(11, id=2, a="y"), t.put(12, id=4, a="v"),
                   t.put(13, id=5, a="q"), t.delete(14, id=5, a="q"), t.put(3, id=3, a="z")],
        lambda t: [t.put(5, {"id": 1, "a": "x"}, id=1, a="late"), t.put(20, {"id": 3, "a": "z"}, id=6, a="z")],
    ]),
    Case("bag", {"key": []}, [
        lambda t: [t.put(1, a="x"), t.put(2, a="x"), t.put(3, a=None)],
        lambda t: [t.delete(10, a="x"), t.put(11, {"a": None}, a="y"), t.put(12, a="z")],
        lambda t: [t.put(4, a="z"), t.delete(5, a="z")],
    ]),
    Case("soft", {**KEYED, "deletes": "soft"}, [
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.delete(10, id=1, a="x"), t.put(11, {"id": 2, "a": "y"}, id=2, a="w")],
        lambda t: [t.truncate(20), t.put(21, id=3, a="z")],
    ]),
    Case("renamed", KEYED, [
        lambda t: [t.put(1, id=1, a="x", b=1), t.put(2, id=2, a="y", b=2)],
        lambda t: [t.ddl(10, "RENAME COLUMN a TO c, DROP COLUMN b, ADD COLUMN n int DEFAULT 5"),
                   t.put(11, {"id": 1, "c": "x", "n": 5}, id=1, c="z", n=6)],
        lambda t: [t.put(12, id=3, c="q", n=None)],
    ]),
    Case("truncated", KEYED, [
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [t.truncate(10), t.put(11, id=2, a="z")],
        lambda t: [t.truncate(20)],
    ]),
    Case("partial", KEYED, [
        lambda t: [t.put(1, id=1, a="x", b=1), t.put(2, id=2, a="y", b=2)],
        lambda t: [t.put(10, {"id": 1}, id=1, a=..., b=3)],
        lambda t: [t.put(9, {"id": 1}, id=1, a="late")],
    ]),
    Case("masked", {**KEYED, "mask": {"a": "hmac"}, "exclude": ["b"], "rename": {"c": "called"}}, [
        lambda t: [t.put(1, id=1, a="x", b=1, c=1), t.put(2, id=2, a="y", b=2, c=2)],
        lambda t: [t.put(10, {"id": 1, "a": "x", "b": 1, "c": 1}, id=1, a="w", b=3, c=3)],
        lambda t: [t.delete(11, id=2, a="y", b=2, c=2)],
    ]),
    Case("odd", {"key": ["Id"]}, [
        lambda t: [t.put(1, **{"Id": 1, "id": 2, "a b": "x", "a.b": "y", "c0": 1, "side": 2})],
        lambda t: [t.put(2, {"Id": 1}, **{"Id": 1, "id": 3, "a b": "z", "a.b": "y", "c0": 1, "side": 3})],
        lambda t: [t.put(3, **{"Id": 2, "id": 3, "a b": "z", "a.b": "y", "c0": 1, "side": 3})],
    ]),
]  # fmt: skip
CASES = [case for case in CASES if PROVING or case.name not in {"odd", "partial"}]
STORY = [case for case in CASES if PROVING or case.name != "bag"]
"""Cases of the story. ``make test`` follows a bag while runs are killed."""
TABLES = [Identifier("fed", case.name) for case in STORY]
REBUILT = how_many(
    usually=["renamed", "keyed", "masked", "soft"],
    proving=[case.name for case in CASES],
)


def _source(landing: Path, name: str = "fed", cases: Sequence[Case] = STORY, **changed: Any) -> Source:
    tables = {f"shop.{case.name}": {"feed": True, **case.promised, **changed.get(case.name, {})} for case in cases}
    fields = {"source": name, "format": "debezium_json", "landing": str(landing / "*"), "tables": tables}
    return Source.model_validate({**fields, "max_deletes": 1, "mask_secret": f"${{{SECRET_VARIABLE}}}"})


def _deliver(landing: Path, run: int, cases: Sequence[Case] = STORY) -> None:
    deliver(landing, f"run-{run}", [message for case in cases for message in case.runs[run](Log(case.name))])


def _run(source: Source) -> list[str]:
    return [problem for report in run_all(source).values() for problem in report.problems]


def _rebuild(source: Source) -> list[str]:
    reports = [run_stage(REBUILD[0], source, table=f"shop.{name}") for name in REBUILT]
    reports += [run_stage(stage, source) for stage in REBUILD[1:]]
    return [problem for report in reports for problem in report.problems]


class Story(NamedTuple):
    """What happened, step by step: what readers of the feeds and of the tables saw then."""

    steps: dict[str, dict[Identifier, tuple[Any, Any]]]
    feeds: dict[str, dict[Identifier, list[dict[str, Any]]]]
    problems: list[str]


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Three cuts, a rebuild with another type, a feed that is off for a cut; in ``make prove`` a restore as well."""
    with pytest.MonkeyPatch.context() as patched:
        the_secret(patched)
        landing = tmp_path_factory.mktemp("fed")
        source, found = _source(landing), Story({}, {}, [])

        def note(step: str) -> None:
            found.steps[step] = {table: (replayed(lake, table), published(lake, table)) for table in TABLES}
            found.feeds[step] = {table: changes(lake, table) for table in TABLES}

        for run in range(3):
            _deliver(landing, run)
            off = {"keyed": {"feed": False}, "bag": {"feed": False}} if run == 1 else {}
            found.problems.extend(_run(_source(landing, **off)))
            if run != 1:
                note(f"run {run}")
        other = {"renamed": {"columns": {"n": "string"}}, "keyed": {"key": ["id", "a"]}}
        found.problems.extend(_rebuild(_source(landing, **other, masked={"mask": {"a": "redact"}})))
        note("rebuilt otherwise")
        if PROVING:
            run_stage("restore", source, None, None, cut=3)
            note("restored")
            found.problems.extend(_run(source))
            note("after the restore")
        yield found


STEPS = ("run 0", "run 2", "rebuilt otherwise", *(("restored", "after the restore") if PROVING else ()))
MASKED = Identifier("fed", "masked")


@pytest.mark.more
@pytest.mark.parametrize("step", STEPS)
def test_replaying_a_feed_gives_the_published_table(step: str, story: Story) -> None:
    """Row by row, after each of: cuts, a cut without a feed, a rebuild to other columns and keys, a restore.

    A table that goes back over a rebuild is built again in the next run. Its feed waits for that.
    """
    assert story.problems == []
    for table, (replayed_rows, rows) in story.steps[step].items():
        if step == "restored" and table.name in REBUILT:
            assert replayed_rows == story.steps["rebuilt otherwise"][table][0], table
            assert table != MASKED or replayed_rows != rows
        else:
            assert replayed_rows == rows, (step, table)


def _of(story: Story, step: str, name: str, *columns: str) -> list[tuple[Any, ...]]:
    found = story.feeds[step][Identifier("fed", name)]
    return sorted((row[CHANGE_ORDINAL], row[CUT], row[CHANGE_TYPE], *(row[c] for c in columns)) for row in found)


def test_a_change_has_the_row_before_and_the_row_after(story: Story) -> None:
    """The feed has no change of a row that came and went within a cut, or that stayed as it was."""
    assert _of(story, "run 2", "soft", "id", "a", "_cdc_deleted")[:6] == [
        (1, 1, "insert", 1, "x", False),
        (1, 1, "insert", 2, "y", False),
        (2, 2, "update_postimage", 1, "x", True),
        (2, 2, "update_postimage", 2, "w", False),
        (2, 2, "update_preimage", 1, "x", False),
        (2, 2, "update_preimage", 2, "y", False),
    ]
    assert _of(story, "run 2", "truncated", "id", "a")[2:] == [
        (2, 2, "delete", 1, "x"),
        (2, 2, "update_postimage", 2, "z"),
        (2, 2, "update_preimage", 2, "y"),
        (3, 3, "delete", 2, "z"),
    ]


def test_a_feed_that_was_off_tells_what_it_missed(story: Story) -> None:
    """In the next cut of its table, as one net change for each row."""
    assert _of(story, "run 2", "keyed", "id", "a")[3:] == [
        (2, 3, "delete", 2, "y"),
        (2, 3, "delete", 3, "z"),
        (2, 3, "insert", 4, "v"),
        (2, 3, "insert", 6, "z"),
        (2, 3, "update_postimage", 1, "w"),
        (2, 3, "update_preimage", 1, "x"),
    ]


def test_a_rebuild_tells_only_rows_that_differ(story: Story) -> None:
    """A table whose rows are the same gets no change, nor does its feed get a gap."""
    for name in how_many(usually=("soft",), proving=("soft", "truncated", "bag")):
        assert _of(story, "rebuilt otherwise", name) == _of(story, "run 2", name)
    assert [row[1:] for row in _of(story, "rebuilt otherwise", "renamed", "id", "n") if row[0] > 3][:2] == [
        (4, "update_postimage", 1, "6"),
        (4, "update_postimage", 2, "5"),
    ]


def test_a_feed_begins_anew_where_values_are_masked_otherwise(story: Story) -> None:
    """No value stays in it as it was read before."""
    assert {row[3] for row in _of(story, "rebuilt otherwise", "masked", "a")} == {"****"}
    assert [row[2] for row in _of(story, "rebuilt otherwise", "masked")] == ["insert"]


@pytest.mark.prove
def test_ordinals_never_go_back_where_cuts_do(story: Story) -> None:
    """After a restore the next cut has a number of its own, and the order of the changes stays."""
    found = _of(story, "after the restore", "renamed", "id", "n")
    assert [(row[0], row[1]) for row in found] == sorted((row[0], row[1]) for row in found)
    assert {row[1] for row in found if row[0] == 5} == {5}
    assert {row[3] for row in found if row[0] == 5} == {1, 2}


def test_a_feed_is_a_table_of_the_source(story: Story, lake: Lake) -> None:
    """Sql reads it, also as of a cut: the rows that the feed had by then."""
    rows = query(lake, "SELECT count(*) AS n FROM fed.truncated__feed", AsOf(cuts=["2"])).to_pylist()
    assert rows == [{"n": 5}]
    assert_ledgers_close(lake, "fed")


FOLLOWED = [case for case in CASES if case.name in {"keyed", "bag"}]
CRASHES = {
    "before_the_feed_is_written": ("tidemark.compaction.feeding._write", 1),
    "before_the_cut_is_known": ("tidemark.stages.compact._report", 1),
    "between_the_table_and_its_feed": ("tidemark.ledger.cuts.fast_forward", 3),
    "before_the_cut_is_published": ("tidemark.ledger.cuts.set_state", 3),
}
"""Function that the process does not live to run, and which call of it."""


def _identity(change: Mapping[str, Any]) -> tuple[Any, ...]:
    return (change[CHANGE_ORDINAL], change[CHANGE_TYPE], change[POSITION], change["a"])


class Stream:
    """A reader of Spark that follows a feed."""

    def __init__(self, spark: SparkSession, lake: Lake, table: Identifier, checkpoint: Path) -> None:
        self.spark, self.name, self.checkpoint = spark, lake.spark_name(feed(table)), checkpoint
        self.rows: list[tuple[Any, ...]] = []

    def read(self) -> None:
        """Take what is new."""

        def take(batch: DataFrame, _number: int) -> None:
            self.rows += [_identity(row.asDict()) for row in batch.collect()]

        reading = self.spark.readStream.format("iceberg").load(self.name).writeStream.foreachBatch(take)
        reading.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start().awaitTermination()


class Followed(NamedTuple):
    """A source whose feeds are followed while runs are killed."""

    source: Source
    landing: Path
    streams: dict[Identifier, Stream]


@pytest.fixture(scope="module")
def followed(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """One cut, and readers that have seen it."""
    landing = tmp_path_factory.mktemp("followed")
    source = _source(landing, "followed", FOLLOWED)
    _deliver(landing, 0, FOLLOWED)
    assert _run(source) == []
    tables = [Identifier("followed", case.name) for case in FOLLOWED]
    streams = {table: Stream(spark, lake, table, landing.parent / f"{table.name}-stream") for table in tables}
    for stream in streams.values():
        stream.read()
    return Followed(source, landing, streams)


@pytest.mark.parametrize("point", crash_windows(CRASHES, usually={"between_the_table_and_its_feed"}))
def test_readers_see_each_change_once_when_runs_are_killed(
    point: str, followed: Followed, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed and run again: a stream that goes on has every change of the feed, once, and none before it counts."""
    source, landing, streams = followed
    at = 100 * (1 + len(list(landing.iterdir())))
    deliver(landing, point, [
        Log("keyed").put(at, id=at, a=point), Log("keyed").put(at + 1, {"id": 1, "a": "?"}, id=1, a=point),
        Log("bag").put(at, a="x"), Log("bag").delete(at + 1, a="x"),
    ])  # fmt: skip
    with monkeypatch.context() as patched:
        die_at(patched, *CRASHES[point])
        with pytest.raises(SystemExit):
            run_all(source)
    for stream in streams.values():
        stream.read()
    assert _run(source) == []
    for table, stream in streams.items():
        assert replayed(lake, table) == published(lake, table)
        stream.read()
        assert Counter(stream.rows) == Counter(map(_identity, changes(lake, table)))


def test_a_killed_restore_is_made_up_for(followed: Followed, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next cut updates feeds that the restore missed, also if it reads rows on workers; equal rows add nothing."""
    last = cuts.last_published(Ledger(lake, "followed"))
    assert last is not None
    if last.cut == 1:  # no run was killed before
        at = 100 * (1 + len(list(followed.landing.iterdir())))
        deliver(followed.landing, "restored", [Log("keyed").put(at, id=at, a="r"), Log("bag").put(at, a="r")])
        assert _run(followed.source) == []
        last = cuts.last_published(Ledger(lake, "followed"))
        assert last is not None
    with monkeypatch.context() as patched:
        die_at(patched, "tidemark.compaction.feeding.follow", 2)
        with pytest.raises(SystemExit):
            run_stage("restore", followed.source, None, None, cut=last.cut - 1)
    current = [table for table in followed.streams if replayed(lake, table) == published(lake, table)]
    behind = [table for table in followed.streams if table not in current]
    assert len(current) == len(behind) == 1
    before = len(changes(lake, behind[0]))
    with monkeypatch.context() as patched:
        patched.setattr("tidemark.spark.changed_frames._FEW_BYTES", -1)
        assert _run(followed.source) == []
    for table in followed.streams:
        assert replayed(lake, table) == published(lake, table)
    assert len(changes(lake, behind[0])) == before


def test_a_feed_is_append_only(followed: Followed, lake: Lake) -> None:
    """Each cut is one snapshot that adds rows, and says which rows of the table the feed shows with it."""
    for table in followed.streams:
        published_feed = lake.load(feed(table))
        for snapshot in ancestry(published_feed):
            assert snapshot.summary is not None
            assert snapshot.summary.operation is Operation.APPEND
        assert fed(published_feed) is not None
