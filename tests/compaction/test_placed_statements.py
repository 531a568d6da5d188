"""Which statements have a certain place among the rows of the tables that they rename, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest

from tidemark.compaction.decisions import Stopped
from tidemark.compaction.placed_statements import placed
from tidemark.compaction.renamed import known_to, waiting_for
from tidemark.compaction.run import Run, Standing
from tidemark.events import TableId
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import BatchRow, ContentRow, StatementRow
from tidemark.normalization.spans import logs_of
from tidemark.positions import encode_position
from tidemark.sources.model import Source

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
RENAME = "RENAME TABLE a TO b"
OBJECTS = {f"shop.{name}": TableId("shop", None, name) for name in "ab"}
_numbers = count(1)


def _source(name: str, **fields: Any) -> Source:
    tables = {"shop.*": {"key": ["id"]}} | fields.pop("tables", {})
    return Source.model_validate(
        {"source": name, "format": "canal_json", "landing": "in/*"} | fields | {"tables": tables}
    )


def _stated(*position: int | str, text: str = RENAME, at: datetime | None = AT, name: str | None = "b") -> StatementRow:
    return StatementRow(
        batch=1,
        database="shop",
        schema=None,
        name=name,
        position=encode_position(position),
        dialect="mysql",
        statement=text,
        at=at,
    )


def _batch(number: int, logs: Sequence[str] | None, retry_of: int | None = None) -> BatchRow:
    recorded = None if logs is None else tuple(logs)
    return BatchRow(
        batch=number, landed=1, decoded=1, control=0, quarantined=0, events=1, logs=recorded, retry_of=retry_of
    )


def _ledger(lake: Lake, *batches: BatchRow, spans: Sequence[SpanRow] = ()) -> Ledger:
    ledger = Ledger(lake, f"placed_{next(_numbers)}")
    ledger.replace(BatchRow, list(batches))
    if spans:
        ledger.replace(SpanRow, list(spans))
    return ledger


def _placed(ledger: Ledger, *rows: StatementRow, **fields: Any) -> list[str]:
    return [row.position for row in placed(ledger, _source("p", **fields), rows, OBJECTS, 9)]


OFFSET = (1, 1, 0, 500, 0)
IN_FILE = (1, 0, 0, "in/changes-2.json", 4, 0)


@pytest.mark.parametrize(
    ("batches", "certain"),
    [
        ([["erp/0"]], True),
        ([["erp/0"], [], ["erp/0"]], True),
        ([["erp/0"], ["erp/1"]], False),
        ([["erp/0", "shop/0"]], False),
        ([["erp/0"], ["in/changes-#.json"]], False),
        ([["erp/0"], None], False),
        ([None], False),
    ],
    ids=["one", "again", "partitions", "topics", "files_too", "not_noted", "older_release"],
)
def test_one_partition_is_an_order(lake: Lake, batches: list[list[str] | None], certain: bool) -> None:  # noqa: FBT001
    """Offsets of two partitions or topics say nothing of each other; a retried batch landed with another one."""
    ledger = _ledger(lake, *(_batch(*each) for each in enumerate(batches, 1)), _batch(8, None, retry_of=1))
    assert bool(_placed(ledger, _stated(*OFFSET))) is certain


def _span(name: str, oldest: int, newest: int, first: int, last: int) -> SpanRow:
    """Rows of a table in files and at seconds before and after the statement."""
    files = (encode_position((1, 0, 0, f"in/changes-{number}.json", 1, 0)) for number in (oldest, newest))
    times = (AT + timedelta(seconds=second) for second in (first, last))
    oldest_at, newest_at = files
    return SpanRow(
        batch=1, object=name, oldest=oldest_at, newest=newest_at, **dict(zip(("first", "last"), times, strict=True))
    )


@pytest.mark.parametrize(
    ("span", "certain"),
    [
        (_span("shop.a", 1, 1, -9, 0), True),
        (_span("shop.a", 1, 1, -9, 1), False),
        (_span("shop.b", 3, 3, 0, 9), True),
        (_span("shop.b", 3, 3, -1, 9), False),
        (_span("shop.b", 1, 3, -9, 9), True),
        (_span("shop.other", 3, 3, -1, 9), True),
    ],
)
def test_times_must_agree_with_the_order_of_files(lake: Lake, span: SpanRow, certain: bool) -> None:  # noqa: FBT001
    """Rows of the tables that lie before the statement alone are no later, and those behind it no earlier."""
    ledger = _ledger(lake, _batch(1, ["in/changes-#.json"]), spans=[span])
    assert bool(_placed(ledger, _stated(*IN_FILE))) is certain


def test_a_statement_that_comes_again_counts_once(lake: Lake) -> None:
    """A copy has the same text and time, and another place; a swap back has another time."""
    ledger = _ledger(lake, _batch(1, ["erp/0"]))
    swap = "RENAME TABLE a TO tmp, b TO a, tmp TO b"
    first, copy = _stated(*OFFSET, text=swap), _stated(1, 1, 0, 900, 0, text=swap)
    back = _stated(1, 1, 0, 901, 0, text=swap, at=AT + timedelta(seconds=1))
    assert _placed(ledger, copy, back, first) == [first.position, back.position]


def test_a_drop_of_a_table_without_events_has_a_place(lake: Lake) -> None:
    """A rename may have given it the name, and then the name is free again."""
    ledger = _ledger(lake, _batch(1, ["erp/0"]))
    drop = _stated(*OFFSET, text="DROP TABLE IF EXISTS a_old", name="a_old")
    assert _placed(ledger, drop) == [drop.position]
    assert _placed(_ledger(lake, _batch(1, ["erp/0", "erp/1"])), drop) == []


def test_tables_that_were_loaded_anew_apart_have_positions_of_their_own(lake: Lake) -> None:
    """A load of one of them before the statement raised its positions, and not the other's."""
    ledger = _ledger(lake, _batch(1, ["erp/0"]))
    before, after = (AT + timedelta(hours=hours) for hours in (-1, 1))
    row = _stated(*OFFSET)
    for names, moment, certain in [("a", before, False), ("a", after, True), ("ab", before, True), ("b", after, True)]:
        tables = {f"shop.{name}": {"key": ["id"], "reloads": [moment]} for name in names}
        assert bool(_placed(ledger, row, tables=tables)) is certain
    assert _placed(ledger, _stated(*OFFSET, at=None), tables={"shop.a": {"key": ["id"], "reloads": [after]}}) == []


@pytest.mark.parametrize(
    ("format_name", "position", "certain"),
    [
        ("dts_avro", (1, 78, 67008, 1, 0, 5, 0), True),
        ("dts_avro", (1, 78, 67008, 0, 0, "in/1.avro", 5, 0), True),
        ("dts_avro", (1, 1, 0, 5, 0), False),
        ("dts_avro", (1, 0, 0, "in/1.avro", 5, 0), False),
        ("datahub_blob", (1, 1605339516000000035, 0), True),
        ("datahub_blob", (1, 1, 0, 5, 0), False),
        ("datahub_blob", (0, 1, 0, 5, 0), False),
        ("debezium_json", (1, 3, 700), True),
        ("canal_json", (0, 1, 0, 5, 0), False),
        ("cdl_json", OFFSET, False),
    ],
)
def test_a_log_of_the_source_needs_no_order_of_the_dump(
    lake: Lake, format_name: str, position: tuple[int | str, ...], certain: bool  # noqa: FBT001
) -> None:  # fmt: skip
    """Positions in such a log can be distinguished from places in the dump; here the dump has two orders."""
    ledger = _ledger(lake, _batch(1, ["erp/0", "erp/1"]))
    assert bool(_placed(ledger, _stated(*position), format=format_name)) is certain


def test_a_statement_without_its_database_may_mean_two_tables(lake: Lake) -> None:
    """DTS names the table of a statement at best; with tables of two databases, a name alone is no name."""
    ledger = _ledger(lake, _batch(1, ["erp/0"]))
    row = StatementRow(
        batch=1, database=None, schema=None, name=None, position="011", dialect="mysql", statement=RENAME, at=AT
    )
    source = _source("p", format="debezium_json")
    assert placed(ledger, source, [row], OBJECTS, 9) == [row]
    assert placed(ledger, source, [row], OBJECTS | {"crm.c": TableId("crm", None, "c")}, 9) == []


def test_what_no_batch_knows_is_not_followed(lake: Lake) -> None:
    """An empty ledger has no renames."""
    assert known_to(_ledger(lake, _batch(1, ["erp/0"])), _source("p"), 9).tables == {}


def test_the_orders_of_messages() -> None:
    """A partition of a topic, a series of files whose names differ in numbers alone; messages erased or not."""
    rows = [
        {"file": "in/2026-01-01/0.json", "topic": "erp", "partition": 0, "offset": 7},
        {"file": "in/2026-01-01/0.json", "topic": "erp", "partition": 0, "offset": 8},
        {"file": "in/2026-01-02/1.json", "topic": "erp", "partition": 1, "offset": 7},
        {"file": "in/2026-01-02/17.json", "topic": None, "partition": None, "offset": None},
        {"file": "in/2026-02-02/3.json", "topic": None, "partition": None, "offset": None},
        {"file": "in/a.json", "topic": None, "partition": None, "offset": None},
    ]
    assert logs_of(pa.RecordBatch.from_pylist(rows)) == {"erp/0", "erp/1", "in/#-#-#/#.json", "in/a.json"}


@pytest.mark.parametrize(
    ("stands_at", "stopped", "waiting"),
    [
        (1, "shop.a", {"shop.a", "shop.b", "shop.c"}),
        (1, "shop.c", {"shop.a", "shop.b", "shop.c"}),
        (1, "shop.other", set()),
        (2, "shop.a", set()),
    ],
)
def test_tables_that_exchange_names_wait_for_each_other(
    lake: Lake, stands_at: int, stopped: str, waiting: set[str]
) -> None:
    """Until the one that is stopped has followed the rename; what stops it later is its own affair."""
    ledger = _ledger(lake, _batch(1, ["erp/0"]), _batch(2, ["erp/0"]))
    contents = [
        ContentRow(
            batch=1, object=f"shop.{name}", database="shop", schema=None, name=name, operation="INSERT", shape="s",
            partial=False, key=None, half=False, events=1,
        )
        for name in ("a", "b", "other")
    ]  # fmt: skip
    ledger.replace(ContentRow, contents)
    row = _stated(*OFFSET, text="RENAME TABLE b TO c, a TO b")
    ledger.replace(StatementRow, [msgspec.structs.replace(row, batch=2)])
    source = _source("p")
    run = SimpleNamespace(
        lake=lake, ledger=ledger, source=source, standing=Standing(batch=stands_at, behind={}), published={}
    )
    stop = SimpleNamespace(found=SimpleNamespace(object=stopped))
    assert waiting_for(cast(Run, run), known_to(ledger, source, 2), [cast(Stopped, stop)]) == waiting
