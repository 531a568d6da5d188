"""The schema of published tables, cut by cut: what each cut shows, what stops a table, what is rebuilt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.cut_by_cut import CutByCut, of_log, shown
from support.debezium_log import Log, Message
from support.histories import deliver
from support.rounds import PROVING, crash_windows, how_many
from support.running import assert_ledger_closes, die_at, run_all
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.pipeline import run_stage
from tidemark.queries.typed_changes import typed_changes
from tidemark.stages import STAGES
from tidemark.tables.schemas import POSITION

pytestmark = [pytest.mark.spark, pytest.mark.more]


def _before(t: Log) -> list[Message]:
    return [t.put(1, id=1, a="a1", b="b1", n=1)]


def _changes(t: Log) -> list[Message]:
    return [
        t.statement(10, "ALTER TABLE {} RENAME COLUMN a TO c, DROP COLUMN b"),
        t.statement(11, "ALTER TABLE {} MODIFY n bigint"),
        t.statement(12, "ALTER TABLE {} ADD COLUMN a int DEFAULT 7"),
        t.put(13, id=2, c="c2", n=5_000_000_000, a=8),
    ]


CHANGED = ("id c n a", [(1, "a1", 1, 7), (2, "c2", 5_000_000_000, 8)])
HALF = Decimal("1.5").quantize(Decimal(10) ** -18)
TYPED = {"columns": {"id": "int"}}
GONE = how_many(usually=("gone_h",), proving=("gone_h", "gone_bag", "gone_other"))
"""Tables that are dropped, or get another name in the source file."""
LATE = how_many(usually=("late_t",), proving=("late_t", "late_u"))
"""Tables whose DDL comes after newer rows."""
_PROVED = {
    *("tooled", "_tooled_gho", "_tooled_new", "_other_new", "read_as_today", "first_strict", "first_ignore", "null_h"),
    *("null_bag", "gone_bag", "gone_other", "late_u", "strict_late", "late_rename", "bits", "until_allowed"),
}
"""Tables of ``make prove``. A table of the story is built in each of its cuts, and in one of them twice.

What ``until_allowed`` shows, ``to_text`` shows in ``make test``, and ``none`` in ``test_schema_policies.py``."""
ENTRIES: dict[str, dict[str, Any]] = {
    "renamed": TYPED,
    "again": TYPED,
    "read_as_today": TYPED,
    "gone_h": {"history": True},
    "gone_bag": {"key": []},
    "first_strict": {"schema": "strict"},
    "first_ignore": {"schema": "ignore"},
    "null_h": {"history": True, "deletes": "soft"},
    "null_bag": {"key": []},
    "strict_late": {"schema": "strict"},
    "until_allowed": {"schema": "strict", **TYPED},
    "ignoring": {"schema": "ignore", **TYPED},
}
"""What the source file of the story says of its tables, beside their key; some of it changes on the way."""
ENTRIES = {name: entry for name, entry in ENTRIES.items() if PROVING or name not in _PROVED}
ELSEWHERE = {name: {**ENTRIES.get(name, {}), "target": f"the_{name}"} for name in GONE}


def _tried(messages: Iterable[Message]) -> list[Message]:
    """Return the messages of the tables that are tried."""
    parsed = [(message, json.loads(message)) for message in messages]
    tables = [(message, each.get("payload", each)["source"]["table"]) for message, each in parsed]
    return [message for message, table in tables if PROVING or table not in _PROVED]


def _one(t: Callable[[str], Log]) -> Iterable[Message]:
    """What the first cut brings, of each table of the story."""
    for name in ("renamed", "again", "until_allowed", "ignoring", "read_as_today"):
        yield from _before(t(name))
    yield from _changes(t("read_as_today"))
    yield from [t("tooled").put(1, id=1), t("_tooled_gho").put(2, id=1), t("_other_new").put(3, id=1)]
    yield from [t("seen_t").put(2, id=2, n=1.5), t("seen_u").put(2, id=2, n=None)]
    for name in ("void_t", "void_u", "first_strict", "first_ignore", "null_h", "null_bag"):
        yield t(name).put(1, id=1, n=None)
    yield t("null_bag").put(2, id=1, n=None)
    for name in ("gone_h", "gone_bag", "gone_other", "number"):
        yield t(name).put(1, id=1, n=1)
    yield t("emptied").truncate(5)
    yield from [t("to_text").put(1, id=1, n=1), t("to_text").put(2, id=2, n=7)]
    for name in ("late_t", "strict_late"):
        yield from [t(name).put(1, id=1, a="x"), t(name).put(20, id=2, a="y")]
    yield from [t("late_u").put(1, id=1, a="x"), t("late_u").put(20, id=2, a="y", b="b")]
    yield from [t("late_rename").put(1, id=1, a="x", k=1), t("late_rename").put(20, id=2, k=2)]
    yield from [t("odd_ddl").put(1, id=1, a="x"), t("bits").put(1, id=1)]


def _two(t: Callable[[str], Log]) -> Iterable[Message]:
    """What the second cut brings."""
    yield from [*_changes(t("renamed")), *_changes(t("until_allowed"))]
    yield from [t("ignoring").ddl(10, "RENAME COLUMN b TO c"), _changes(t("ignoring"))[3]]
    yield from [t("tooled").put(4, id=2), t("_tooled_gho").put(5, id=2), t("_tooled_new").put(6, id=1)]
    yield t("void_t").put(2, id=2, n="x")
    yield from [t("gone_h").put(2, id=2, n=2), t("gone_bag").put(2, id=2, n=2), t("number").put(11, id=1, n=2)]
    yield t("first_ignore").put(2, id=2, n=5)
    yield t("null_h").put(5, {"id": 1, "n": None}, id=1, n=5)
    yield from [t("null_bag").put(5, id=2, n=7), t("null_bag").delete(6, id=1, n=None)]
    yield from [t("to_text").ddl(10, "MODIFY n varchar(9)"), t("to_text").put(11, id=1, n="x")]
    for name in ("late_t", "strict_late"):
        yield from [t(name).ddl(10, "DROP COLUMN a"), t(name).put(21, id=3, a="z")]
    yield from [t("late_u").ddl(10, "RENAME COLUMN a TO b, ADD COLUMN a text"), t("late_u").put(21, id=3, a="z", b="c")]
    yield from [t("late_rename").ddl(10, "RENAME COLUMN a TO b"), t("late_rename").put(21, id=3, k=3, b="z")]
    yield from [t("odd_ddl").ddl(10, "TRUNCATE PARTITION p0"), t("odd_ddl").put(11, id=1, a="y")]
    yield t("bits").ddl(10, "ADD b bit(4) DEFAULT b'10'")


def _three(t: Callable[[str], Log]) -> Iterable[Message]:
    """What the third cut brings."""
    yield t("again").put(14, id=3, c="c3", n=3, a=9)
    yield t("seen_u").put(4, id=4, n=1.5, m=1.5)
    yield from [t("void_t").put(3, id=3, n="y"), t("void_u").put(3, id=3, n=5)]
    yield from [t(name).put(3, id=3, n=3) for name in ("gone_h", "gone_bag", "gone_other")]
    yield from [t("emptied").put(4, id=1, n=1), t("emptied").put(6, id=2, n=2)]
    yield from [t("null_h").put(3, {"id": 1, "n": None}, id=1, n=4), t("null_h").delete(7, id=1, n=5)]
    yield from [t("to_text").put(12, id=3, n="03"), t("to_text").put(5, id=4, n=4)]
    yield t("odd_ddl").ddl(12, "ADD n int DEFAULT 5, ADD u varchar(36) DEFAULT (UUID())")
    columns = [{"field": "id", "type": "int64"}, {"field": "b", "type": "bytes", "name": "io.debezium.data.Bits"}]
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": columns}]}
    yield json.dumps({"schema": schema, "payload": json.loads(t("bits").put(12, id=2, b="BQ=="))}).encode()


def _four(t: Callable[[str], Log]) -> Iterable[Message]:
    """What the fourth cut brings, in which two tables are built again."""
    yield t("until_allowed").put(14, id=3, c="c3", n=3, a=9)
    yield t("first_strict").put(2, id=2, n=5)


def _entries(**changed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {**ENTRIES, **changed}


@pytest.fixture(scope="module")
def story(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> CutByCut:
    """Three cuts, two of which were compacted before with fewer events; in ``make prove`` one more, after rebuilds."""
    cut_by_cut, t = CutByCut(lake, "story", tmp_path_factory.mktemp("story")), Log
    cut_by_cut.deliver("before", [t("seen_t").put(1, id=1, n=1), t("seen_u").put(1, id=1, n=None)])
    cut_by_cut.run("before", cut_by_cut.source(ENTRIES), STAGES[:3])
    cut_by_cut.deliver("one", _tried(_one(t)))
    cut_by_cut.run("one", cut_by_cut.source(ENTRIES, migration_tables=True))
    cut_by_cut.run("nothing new", cut_by_cut.source(ENTRIES))
    lake.catalog.drop_table(("story", "gone_h"))
    strict = cut_by_cut.source(_entries(to_text={"schema": "strict"}))
    cut_by_cut.deliver("two", _tried(_two(t)))
    cut_by_cut.run("landed", strict, STAGES[:2])
    for name in ("void_t", "emptied"):
        run_stage("rebuild", strict, table=f"shop.{name}")
    cut_by_cut.run("compacted", strict, STAGES[2:3])
    cut_by_cut.run("checked", strict, STAGES[3:4])
    cut_by_cut.run("two", strict, STAGES[4:])
    spark.sql(f"UPDATE {lake.spark_name(('story', 'void_u'))} SET n = 'mine'")  # noqa: S608  names of this test
    allowed = cut_by_cut.source(_entries(**({"until_allowed": TYPED} if PROVING else {}), **ELSEWHERE))
    cut_by_cut.deliver("between", [*_changes(t("again")), t("seen_u").put(3, id=3, n=1, m=1)])
    cut_by_cut.run("between", allowed, STAGES[:3])
    cut_by_cut.deliver("three", _tried(_three(t)))
    cut_by_cut.run("three", allowed)
    if not PROVING:
        return cut_by_cut
    moved = cut_by_cut.source(_entries(**ELSEWHERE))
    for name in LATE:
        lake.catalog.drop_table(("story", name))
        run_stage("rebuild", moved, table=f"shop.{name}")
    cut_by_cut.deliver("four", _tried(_four(t)))
    cut_by_cut.run("four", moved)
    return cut_by_cut


def test_no_table_of_the_story_stops_but_those_that_are_to(story: CutByCut, lake: Lake) -> None:
    """The others go on beside them, and every event is accounted for."""
    late = {"shop.strict_late"} if PROVING else set[str]()
    strict = {"shop.until_allowed", "shop.to_text"} if PROVING else {"shop.to_text"}
    expected = {
        "one": set(),
        "nothing new": set(),
        "compacted": {*late, *strict},
        "three": {*late, "another writer changed story.void_u"},
        **({"four": {*late, "another writer changed story.void_u"}} if PROVING else {}),
    }
    assert {step: set(story.problems(step)) for step in expected} == expected
    assert_ledger_closes(lake, "story")


@pytest.mark.prove
def test_the_tables_of_tools_are_published_where_the_source_file_says_so(story: CutByCut) -> None:
    """As tables of their own; and one beside which there is no such table always is."""
    for step in ("one", "two"):
        assert {name for name in story.tables[step] if "tooled" in name or "_new" in name} == {
            "tooled",
            "_tooled_gho",
            "_other_new",
        }


def test_readers_of_main_see_no_rename_and_no_drop_before_they_are_published(story: CutByCut, lake: Lake) -> None:
    """Between compact and publish ``main`` has its rows and columns; new columns are there, and null."""
    waiting = ("id a b n tidemark new a", [(1, "a1", "b1", 1, None)])
    assert story.tables["compacted"]["renamed"] == story.tables["checked"]["renamed"] == waiting
    assert story.tables["two"]["renamed"] == CHANGED
    table = lake.load(("story", "renamed"))
    assert [field.field_id for field in table.schema().fields][:3] == [1, 2, 4]
    first = table.refs()[f"cut_{story.status['one']['cut']['number']}"].snapshot_id
    assert table.scan(snapshot_id=first).to_arrow().column("a").to_pylist() == ["a1"]


CRASHES = {
    "before_the_table_moves": ("tidemark.ledger.cuts.fast_forward", 1),
    "before_its_state_does": ("tidemark.ledger.cuts.fast_forward", 2),
    "after_both": ("tidemark.ledger.cuts.set_state", 2),
}


@pytest.mark.parametrize("point", crash_windows(CRASHES, usually=()))
def test_a_publish_that_was_killed_is_finished_with_its_schema(
    point: str, spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the table moves with its schema, before its state does, or after both: the next run does it."""
    source = of_log(f"killed_{point}", tmp_path, {"shop.t": {"key": ["id"], **TYPED}})
    deliver(tmp_path, "1", _before(Log("t")))
    run_all(source)
    deliver(tmp_path, "2", _changes(Log("t")))
    for stage in STAGES[:4]:
        run_stage(stage, source, None, None)
    with monkeypatch.context() as patched:
        die_at(patched, *CRASHES[point])
        with pytest.raises(SystemExit):
            run_stage("publish", source, None, None)
    run_all(source)
    assert shown(lake, source.source, "t") == CHANGED


def test_a_cut_that_was_not_published_is_built_again_with_the_same_schema(story: CutByCut) -> None:
    """Compact twice, with more events between: columns that the first try added are used by the second."""
    columns, rows = CHANGED
    assert story.tables["three"]["again"] == (columns, [*rows, (3, "c3", 3, 9)])


def test_types_seen_by_a_cut_that_was_not_published_bind_none_after_it(story: CutByCut) -> None:
    """In a first cut, a new column and one that was null so far, the values that follow still count for the type."""
    assert story.tables["one"]["seen_t"][1] == [(1, Decimal(1)), (2, HALF)]
    rows = [(1, None, None), (2, None, None), (3, Decimal(1), Decimal(1)), (4, HALF, HALF)]
    assert story.tables["three"]["seen_u"] == ("id n m", rows)


def test_a_column_that_a_rebuild_found_values_for_is_void_no_more(story: CutByCut) -> None:
    """A table that somebody else wrote into is stopped: what is in it stays."""
    assert story.tables["three"]["void_t"][1] == [(1, None), (2, "x"), (3, "y")]
    assert story.tables["three"]["void_u"][1] == [(1, "mine")]


def test_a_table_that_is_not_there_any_more_is_published_whole(story: CutByCut, lake: Lake) -> None:
    """It was dropped, or the source file names it otherwise: what was published under the old name stays there."""
    for step, prefix, values in (("two", "", [1, 2]), ("three", "the_", [1, 2, 3])):
        for name in GONE[:2]:
            assert [row[1] for row in story.tables[step][prefix + name][1]] == values, name
        columns, versions = story.tables[step][f"{prefix}gone_h__history"]
        assert sorted(row[columns.split().index("n")] for row in versions) == values
    if PROVING:
        assert story.tables["three"]["the_gone_other"][1] == [(1, 1), (3, 3)]
    assert story.tables["three"]["gone_h"][1] == [(1, 1), (2, 2)]


@pytest.mark.prove
@pytest.mark.parametrize(("policy", "step"), [("strict", "four"), ("ignore", "two")])
def test_the_first_value_of_a_column_changes_no_schema_at_the_source(policy: str, step: str, story: CutByCut) -> None:
    """Whatever becomes of changes there, a column that was null so far gets the type of its values."""
    assert story.tables[step][f"first_{policy}"] == ("id n", [(1, None), (2, 5)])


def test_a_table_of_which_only_a_truncate_came_waits_and_is_no_problem(story: CutByCut, lake: Lake) -> None:
    """There is nothing to publish, nor a reason for a cut; rows that come later meet the TRUNCATE at its place."""
    for step in ("one", "nothing new", "two"):
        tables = {table["object"]: (table["state"], table["held"]) for table in story.status[step]["tables"].values()}
        assert tables["shop.emptied"] == ("waiting", 1), step
    assert story.status["nothing new"]["cut"] == story.status["one"]["cut"]
    assert story.tables["three"]["emptied"][1] == [(2, 2)]
    assert Ledger(lake, "story").rebuild_requests() == {}


@pytest.mark.prove
def test_a_column_that_was_null_so_far_begins_in_histories_and_bags_too(story: CutByCut, lake: Lake) -> None:
    """Late events and removed rows meet the null of before."""
    assert story.tables["three"]["null_bag"] == ("id n", [(1, None), (2, 7)])
    assert story.tables["three"]["null_h"] == ("id n _cdc_deleted", [(1, 5, True)])
    versions = lake.load(("story", "null_h__history")).scan(selected_fields=("n", POSITION)).to_arrow().to_pylist()
    assert [row["n"] for row in sorted(versions, key=lambda row: str(row[POSITION]))] == [None, 4, 5]


def test_a_number_that_becomes_text_is_followed_and_a_strict_source_stops_that_table(story: CutByCut) -> None:
    """Text holds the digits of the numbers. With ``schema: strict`` the table stays, and no other does."""
    for step, stage in (("compacted", "compact"), ("two", "publish")):
        problem = next(text for text in story.reports[step][stage].problems if text.startswith("shop.to_text"))
        assert "'n' changed from long to string" in problem
        assert "`tidemark rebuild story shop.to_text`" in problem
    assert story.tables["two"]["to_text"][1] == [(1, 1), (2, 7)]
    assert story.tables["two"]["number"][1] == [(1, 2)]
    assert story.tables["three"]["to_text"][1] == [(1, "x"), (2, "7"), (3, "03"), (4, "4")]


@pytest.mark.prove
def test_a_column_of_a_statement_has_the_type_that_later_messages_tell(story: CutByCut) -> None:
    """Until then it is a number, as the statement says. The rows that the statement filled are written again."""
    assert story.tables["two"]["bits"] == ("id b", [(1, Decimal(2))])
    assert story.tables["three"]["bits"] == ("id b", [(1, b"\x02"), (2, b"\x05")])


def test_ddl_that_comes_after_newer_rows_is_followed_from_the_change_log(story: CutByCut) -> None:
    """A drop or a rename came after values of its column were published: only the change log shows whose they are.

    What comes out is what one run of all would have published.
    """
    assert story.tables["two"]["late_t"][1] == [(1, None), (2, "y"), (3, "z")]
    if PROVING:
        for name in LATE:
            assert story.tables["four"][name] == story.tables["two"][name]
        assert sorted(story.tables["two"]["late_u"][0].split()) == ["a", "b", "id"]


@pytest.mark.prove
def test_a_strict_source_stops_a_table_whose_ddl_came_late(story: CutByCut) -> None:
    """Nothing is rebuilt that has to be allowed first."""
    assert "'a' was dropped by DDL that came after" in story.problems("compacted")["shop.strict_late"]
    assert story.tables["two"]["strict_late"][1] == [(1, "x"), (2, "y")]


@pytest.mark.prove
def test_a_rename_told_late_is_followed_where_it_is_plain(story: CutByCut) -> None:
    """Newer rows came before the rename, in columns that were null for them: the column moves."""
    assert story.tables["two"]["late_rename"] == ("id b k", [(1, "x", 1), (2, None, 2), (3, "z", 3)])


@pytest.mark.prove
def test_a_strict_source_stops_a_table_until_the_change_is_allowed(story: CutByCut) -> None:
    """The reason names every change and how to allow it; a run with ``schema: evolve`` does."""
    problem = story.problems("compacted")["shop.until_allowed"]
    assert "'a' is called 'c'" in problem
    assert "'b' is gone" in problem
    assert "`schema: evolve`" in problem
    assert story.tables["two"]["until_allowed"] == ("id a b n", [(1, "a1", "b1", 1)])
    assert story.tables["three"]["until_allowed"] == CHANGED
    assert story.tables["four"]["until_allowed"][1][2] == (3, "c3", 3, 9)


def test_an_ignoring_source_keeps_its_columns(story: CutByCut) -> None:
    """Columns that the table does not have are left out, renames and drops are not followed; types still widen."""
    assert story.tables["two"]["ignoring"] == ("id a b n", [(1, "a1", "b1", 1), (2, "8", None, 5_000_000_000)])


def test_ddl_that_is_not_understood_is_told_and_holds_nothing_back(story: CutByCut) -> None:
    """A statement that may matter is in the report and in the status; publishing goes on."""
    assert story.tables["two"]["odd_ddl"][1] == [(1, "y")]
    assert "TRUNCATE PARTITION p0" in str(story.reports["compacted"]["compact"].details["shop.odd_ddl"]["ddl"])
    assert "TRUNCATE PARTITION p0" in story.status["two"]["ddl_not_followed"]["shop.odd_ddl"][0]
    [_, note] = story.status["three"]["ddl_not_followed"]["shop.odd_ddl"]
    assert note.startswith("DDL followed in part, column 'u' was added and the value of '( UUID ( ) )' is not known")
    assert "rows from before the statement keep null in it" in note
    assert "ADD n int DEFAULT ..." in note


@pytest.mark.prove
def test_the_change_log_shows_old_events_under_the_names_of_today(story: CutByCut, lake: Lake) -> None:
    """``__changes`` reads each image with the names that were valid at its position."""
    rows = typed_changes(lake, ("story", "read_as_today")).orderBy("position").select("after.*").collect()
    assert [row.asDict() for row in rows] == [
        {"id": 1, "c": "a1", "n": 1, "a": None},
        {"id": 2, "c": "c2", "n": 5_000_000_000, "a": 8},
    ]
