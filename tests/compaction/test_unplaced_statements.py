"""Statements that change earlier rows, and have no place among them: they hold the cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from support.running import run_all
from tidemark.compaction.unplaced_statements import UNPLACED_STATEMENT, Moved, doubts_about_statements
from tidemark.ddl.lineages import Lineages
from tidemark.errors import ExpectationError
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.offset_rows import OffsetsRow
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import BatchRow, ContentRow, CutRow, StatementRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.ledger.tally import LOAD
from tidemark.pipeline import run_stage
from tidemark.positions import encode_position
from tidemark.sources.model import Source
from tidemark.stages.publish import run as publish

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
EMPTIED = "TRUNCATE TABLE a"
SWAP = "RENAME TABLE c TO _c_del, _c_gho TO c"
_numbers = count(1)


def _stated(
    text: str, *position: int | str, batch: int = 1, name: str | None = "a", dialect: str = "mysql"
) -> StatementRow:
    place = encode_position(position)
    return StatementRow(
        batch=batch, database="shop", schema=None, name=name, position=place, dialect=dialect, statement=text, at=AT
    )


def _record(partition: int, offset: int, log: int = 1) -> tuple[int, ...]:
    """The position of a row that is a record of Kafka."""
    return (log, 1, partition, offset, 0)


def _span(oldest: Sequence[int | str], newest: Sequence[int | str], batch: int = 1) -> SpanRow:
    return SpanRow(batch=batch, object="shop.a", oldest=encode_position(oldest), newest=encode_position(newest))


def _doubted(
    lake: Lake,
    *rows: StatementRow | SpanRow | ContentRow,
    logs: Sequence[str] = ("erp/0", "erp/2"),
    topics: Sequence[str] = ("erp",),
    published: int = 0,
    **fields: Any,
) -> str:
    """Why a cut that moves ``shop.a`` to batch 3 is held; nothing if it is not.

    ``published`` is the last batch of the cut that moved it before.
    """
    ledger = Ledger(lake, f"unplaced_{next(_numbers)}")
    ledger.replace(BatchRow, [_batch(1, logs)])
    for kind in (StatementRow, SpanRow, ContentRow):
        if of_kind := [row for row in rows if isinstance(row, kind)]:
            ledger.replace(kind, of_kind)
    ledger.replace(OffsetsRow, [OffsetsRow(batch=1, topic=topic, partition=0, ranges="[]") for topic in topics])
    if published:
        ledger.replace(CutRow, [CutRow(cut=1, state=CutState.PUBLISHED, batch=published)])
        ledger.replace(TableRow, [TableRow(cut=1, object="shop.a", state=TableState.PUBLISHED, batch=published)])
    source = Source.model_validate(
        {"source": "p", "format": "canal_json", "landing": "in/*", "tables": {"shop.*": {"key": ["id"]}}} | fields
    )
    cut = Moved([TableRow(cut=9, object="shop.a", state=TableState.CANDIDATE, batch=3)], 3, {}, Lineages())
    found = doubts_about_statements(ledger, source, cut)
    assert found.keys() <= {"shop.a"}
    assert all(doubt.invariant == UNPLACED_STATEMENT for doubts in found.values() for doubt in doubts)
    return "\n".join(doubt.reason for doubts in found.values() for doubt in doubts)


def _batch(number: int, logs: Sequence[str]) -> BatchRow:
    return BatchRow(batch=number, landed=1, decoded=1, control=0, quarantined=0, events=1, logs=tuple(logs))


ELSEWHERE = _span(_record(2, 7), _record(2, 7))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (EMPTIED, "a statement empties the table, and has no place among the rows: TRUNCATE TABLE a."),
        ("DROP TABLE a", "empties the table"),
        ("ALTER TABLE a RENAME COLUMN b TO c", "renames or drops a column"),
        ("ALTER TABLE a DROP COLUMN b", "renames or drops a column"),
        ("ALTER TABLE a ADD b int NOT NULL DEFAULT 7", "adds a column with a default"),
        ("ALTER TABLE a ADD b int", ""),
        ("ALTER TABLE a MODIFY b bigint", ""),
        ("ALTER TABLE a ADD INDEX i (b)", ""),
    ],
)
def test_what_changes_earlier_rows_needs_a_place(lake: Lake, text: str, says: str) -> None:
    """Rows of the table are in another partition. Other statements may stand anywhere."""
    reason = _doubted(lake, _stated(text, *_record(0, 900)), ELSEWHERE)
    assert bool(reason) is bool(says)
    assert says in reason


@pytest.mark.parametrize(
    ("spans", "held"),
    [
        ([_span(_record(0, 5), _record(0, 950))], False),
        ([_span(_record(2, 5), _record(2, 950))], True),
        ([_span(_record(0, 900), _record(2, 950))], True),
        ([_span(_record(0, 5), _record(0, 950)), _span(_record(2, 5), _record(2, 9), batch=2)], True),
        ([_span((0, 1, 2, 5, 0), (0, 1, 2, 9, 0))], False),
        ([_span((0, 1, 2, 5, 0), _record(0, 9))], False),
        ([_span((0, 1, 2, 5, 0), _record(2, 9))], True),
        ([_span((1, 0, 0, "in/a.json", 1, 0), _record(0, 9))], True),
        ([_span(_record(2, 5, log=3), _record(2, 9, log=3))], False),
        ([_span(_record(0, 5), _record(2, 9, log=3))], True),
        ([], False),
    ],
    ids=[
        "its_partition", "another", "several", "several_batches", "loaded_rows", "loaded_and_its", "loaded_and_another",
        "files_too", "a_later_log", "into_a_later_log", "no_rows",
    ],
)  # fmt: skip
def test_rows_of_the_same_partition_place_a_statement(lake: Lake, spans: list[SpanRow], held: bool) -> None:  # noqa: FBT001
    """Loaded rows rank below everything, and another log is compared by the moment when it began."""
    assert bool(_doubted(lake, _stated(EMPTIED, *_record(0, 900)), *spans)) is held


def test_where_rows_may_lie_in_lower_partitions_too(lake: Lake) -> None:
    """Rows were loaded in the batch, so its lowest change is not known: only below the first partition lies none."""
    hidden = _span((0, 1, 2, 5, 0), _record(2, 9))
    assert _doubted(lake, _stated(EMPTIED, *_record(2, 900)), hidden)
    assert not _doubted(lake, _stated(EMPTIED, *_record(2, 900)), ELSEWHERE)


@pytest.mark.parametrize(
    ("logs", "position"),
    [(["erp/2"], _record(2, 900)), (["in/#.json", "in/a/#.json"], (1, 0, 0, "in/7.json", 4, 0))],
    ids=["one_partition", "files"],
)
def test_dumps_in_one_order_and_files_go_on(lake: Lake, logs: list[str], position: tuple[int | str, ...]) -> None:
    """The order of files is that of their names, for all tables."""
    rows = _span((1, 0, 0, "in/3.json", 1, 0), (1, 0, 0, "in/9.json", 1, 0)) if position[1] == 0 else ELSEWHERE
    assert not _doubted(lake, _stated(EMPTIED, *position), rows, logs=logs)


def test_the_table_of_a_message_tells_its_topic(lake: Lake) -> None:
    """Producers choose the topic of a message by its table, so one that names another table may lie in another."""
    rows, both = _span(_record(0, 5), _record(0, 950)), "DROP TABLE b, a"
    for name, topics, held in [("a", "tu", False), ("b", "tu", True), (None, "tu", True), ("b", "t", False)]:
        assert bool(_doubted(lake, _stated(both, *_record(0, 900), name=name), rows, topics=topics)) is held


def test_it_is_held_once(lake: Lake) -> None:
    """A cut with the statement was approved; later rows in another partition raise the question for the first time."""
    stated, its = _stated(EMPTIED, *_record(0, 900), batch=2), _span(_record(0, 5), _record(0, 950))
    for published, held in [(0, True), (1, True), (2, False)]:
        assert bool(_doubted(lake, stated, ELSEWHERE, published=published)) is held
    later = _span(_record(2, 5), _record(2, 9), batch=3)
    assert _doubted(lake, stated, its, later, published=2)
    assert not _doubted(lake, msgspec.structs.replace(stated, batch=4), ELSEWHERE)  # not known to the cut yet


def test_a_truncation_without_a_text_needs_a_place_too(lake: Lake) -> None:
    """Its type says what it does; the span of its batch has its place."""
    content = ContentRow(
        batch=2, object="shop.a", database="shop", schema=None, name="a", operation="TRUNCATE", shape=None,
        partial=False, key=None, half=False, events=1,
    )  # fmt: skip
    its = _span(_record(0, 900), _record(0, 900), batch=2)
    assert "empties the table" in _doubted(lake, content, its, ELSEWHERE)
    assert not _doubted(lake, content, its, _span(_record(0, 5), _record(0, 9)))


def test_a_load_that_replaces_the_rows_settles_it(lake: Lake) -> None:
    """``reloads`` ranks it above the statement, and the statement among the rows, if its message names the table."""
    moment = AT + timedelta(hours=1)
    loaded = msgspec.structs.replace(_stated('{"at": 1, "row": null}', dialect=LOAD), position=encode_position((2,)))
    stated, tables = _stated(EMPTIED, *_record(0, 900)), {"shop.a": {"key": ["id"], "reloads": [moment]}}
    assert not _doubted(lake, stated, loaded, ELSEWHERE, tables=tables)
    since = _stated("DROP TABLE a", *_record(0, 950), name=None)
    since = msgspec.structs.replace(since, at=moment + timedelta(hours=1))
    assert "`reloads` of the table raised" in _doubted(lake, since, loaded, ELSEWHERE, tables=tables)


def test_changes_that_the_source_file_leaves_out_need_no_place(lake: Lake) -> None:
    """They change no row."""
    dropped = _stated("ALTER TABLE a DROP COLUMN b", *_record(0, 900))
    assert not _doubted(lake, dropped, ELSEWHERE, schema={"drop": "keep"})


@pytest.mark.parametrize(
    ("format_name", "position", "held"),
    [
        ("dts_avro", (1, 78, 67008, 1, 0, 5, 0), False),
        ("dts_avro", (1, 1, 0, 5, 0), True),
        ("datahub_blob", (1, 1605339516000000035, 0), False),
        ("datahub_blob", (1, 1, 0, 5, 0), True),
        ("datahub_blob", (1, 0, 0, "in/1.json", 5, 0), True),
        ("debezium_json", (1, 3, 700), False),
        ("shareplex_json", (1, 700, 1), False),
    ],
)
def test_a_place_in_the_log_is_one_in_any_dump(
    lake: Lake, format_name: str, position: tuple[int | str, ...], held: bool  # noqa: FBT001
) -> None:  # fmt: skip
    """Where rows are ordered by the log, a statement without a place in it has none."""
    reason = _doubted(lake, _stated("DROP TABLE a", *position), ELSEWHERE, format=format_name)
    assert bool(reason) is held


def _dumped(partition: int, offset: int, topic: str = "erp", **members: Any) -> str:
    """A record of Kafka with a message of Canal, as a line of a dump."""
    flat = {"database": "shop", "table": "a", "pkNames": ["id"], "mysqlType": {"id": "int"}, "isDdl": False, **members}
    record = {"topic": topic, "partition": partition, "offset": offset, "timestamp": offset, "key": None}
    return json.dumps(record | {"value": json.dumps(flat)}) + "\n"


@pytest.mark.spark
def test_a_statement_of_canal_in_another_partition_is_held(
    source: Callable[..., Source], spark: SparkSession, lake: Lake
) -> None:
    """Canal sends every statement to the first partition. A person may let it pass; the next one is held again.

    So is a swap by a tool whose copy has a topic of its own. A masked column stays so under the name in the copy.
    """
    people = {"table": "c", "mysqlType": {"id": "int", "email": "varchar(80)", "mail": "varchar(80)"}, "type": "INSERT"}
    shop = source(
        "canal_json", tables={"shop.c": {"key": ["id"], "mask": {"email": "last4"}}, "shop.*": {"key": ["id"]}}
    )
    lines = [
        _dumped(0, 899, **people, data=[{"id": "1", "email": "ann@one.org"}], es=900),
        _dumped(2, 7, type="INSERT", data=[{"id": "1"}], es=1000),
        _dumped(0, 900, type="TRUNCATE", isDdl=True, sql=EMPTIED, data=None, es=2000),
    ]
    (Path(shop.landing).parent / "a.json").write_text("".join(lines))
    for stage in ("land", "normalize", "compact"):
        assert run_stage(stage, shop, None, None).problems == ()
    problems = "\n".join(run_stage("check", shop, None, None).problems)
    assert f"shop.a: a statement empties the table, and has no place among the rows: {EMPTIED}" in problems
    with pytest.raises(ExpectationError, match="--approve 1"):
        publish(shop)
    publish(shop, approve=1)
    assert run_all(shop)["check"].problems == ()

    added = _dumped(0, 901, type="ALTER", isDdl=True, sql="ALTER TABLE a ADD b int DEFAULT 7", data=None, es=3000)
    # A tool swaps a copy in. Its statements come in a topic of its own, whose offsets are higher by far.
    own = {"topic": "copies", "table": "_c_gho", "isDdl": True, "data": None, "type": "ALTER", "es": 3000}
    migrated = [
        _dumped(0, 1_000_000, **own, sql="ALTER TABLE _c_gho CHANGE email mail varchar(80)"),
        _dumped(0, 902, table="c", type="RENAME", isDdl=True, sql=SWAP, data=None, es=4000),
        _dumped(0, 903, **people, data=[{"id": "2", "mail": "bob@two.net"}], es=5000),
    ]
    (Path(shop.landing).parent / "b.json").write_text("".join([added, *migrated]))
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, shop, None, None)
    problems = "\n".join(run_stage("check", shop, None, None).problems)
    assert "shop.a: a statement adds a column with a default, and has no place among the rows" in problems
    assert "shop.c: a schema-change tool altered a copy of it" in problems
    with pytest.raises(ExpectationError, match="--approve 2"):
        publish(shop)
    publish(shop, approve=2)
    rows = lake.load((shop.source, "c")).scan().to_arrow().to_pylist()
    masked = sorted((row["id"], row["email"], row["mail"]) for row in rows)
    assert masked == [(1, "****.org", None), (2, None, "****.net")]
