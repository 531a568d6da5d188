"""Records of Kafka that did not land between others are reported, and late files close the gaps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.histories import Table, deliver, message
from support.running import run_all
from tidemark.lake.lake import Lake
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.offset_rows import rows_of
from tidemark.ledger.states import CutState
from tidemark.ledger.tally import Tally
from tidemark.normalization.offsets import OffsetsSeen
from tidemark.pipeline import run_stage
from tidemark.quality.missing_offsets import MISSING_OFFSETS, gaps
from tidemark.sources.model import Source

_SCHEMA = pa.schema(
    {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "file": pa.string(), "place": pa.int64()}
)
Told = list[tuple[int, int, int, str, int]]
"""Partition, first and last offset of a gap, and the origin of the next record."""


def _seen(offsets: Iterable[int | None], file: str = "f", partition: int = 0) -> pa.RecordBatch:
    rows = [
        {
            "topic": None if offset is None else "t",
            "partition": partition,
            "offset": offset,
            "file": file,
            "place": place,
        }
        for place, offset in enumerate(offsets, start=1)
    ]
    return pa.RecordBatch.from_pylist(rows, _SCHEMA)


def _told(*batches: Sequence[pa.RecordBatch]) -> Told:
    """Return the gaps that some batches show; two tasks share each batch."""
    found = {}
    for number, messages in enumerate(batches, start=1):
        tasks = [OffsetsSeen(), OffsetsSeen()]
        for place, part in enumerate(messages):
            tasks[place % 2].add(part)
        found[number] = [Tally(offsets=task.close()) for task in tasks]
    rows = rows_of(found)
    return [(gap.partition, gap.low, gap.high, gap.next.file, gap.next.place) for gap in gaps(rows[::-1])]


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[_seen([None, None])]], []),
        ([[_seen(range(5, 9))]], []),
        ([[_seen([5, 6, 9, 10])]], [(0, 7, 8, "f", 3)]),
        # Copies, disorder, records and messages that are none in one file, another partition with the same numbers.
        ([[_seen([10, None, 5, 9, 6, 6]), _seen([7, 8], partition=1)]], [(0, 7, 8, "f", 4)]),
        # What a second task or a later batch brings closes the gap, in part or whole.
        ([[_seen([5, 6, 9, 10]), _seen([7, 8], "g")]], []),
        ([[_seen([5, 6, 9, 10])], [_seen([8], "g")]], [(0, 7, 7, "g", 1)]),
        ([[_seen([9, 10])], [_seen([5, 6], "g")], [_seen([8, 7], "h")]], []),
        ([[_seen([1, 2])], [_seen([5], "g")]], [(0, 3, 4, "g", 1)]),
        # Markers of transactions take single offsets; a longer gap beside them is reported.
        ([[_seen([1, 3, 5, 7])]], []),
        ([[_seen([*range(100), *range(101, 200), *range(201, 300), *range(301, 400), *range(440, 500)])]],
         [(0, 400, 439, "f", 398)]),
        # A compacted topic: too many gaps, or too many pieces.
        ([[_seen(range(0, 100, 3))]], []),
        ([[_seen([n for n in range(9000) if n % 40 > 1])]], []),
        ([[_seen([n for n in range(9000) if n % 40 > 1])], [_seen([*range(9100, 9200)], "g")]], []),
    ],
)  # fmt: skip
def test_what_is_told(batches: list[list[pa.RecordBatch]], expected: Told) -> None:
    """A gap has its offsets, and the first record behind it."""
    assert _told(*batches) == expected


def test_a_record_without_a_topic_is_in_no_partition() -> None:
    """A Parquet file may have such rows."""
    nothing = _seen([5, 9]).set_column(0, _SCHEMA.field("topic"), pa.nulls(2, pa.string()))
    assert _told([nothing]) == []


def test_gaps_are_those_of_all_that_landed() -> None:
    """The same records, in any order and split, leave the same gaps."""
    parts = [_seen(range(start, start + 10), str(start)) for start in (0, 10, 30, 50, 60)]
    whole = _told(parts)
    assert [each[1:3] for each in whole] == [(20, 29), (40, 49)]
    for split in ([parts[::-1]], [parts[2:], parts[:2]], [[part] for part in parts], [[part] for part in parts[::-1]]):
        assert _told(*split) == whole


ITEM = Table("gap", columns=("id", "name"))


def _records(*offsets: int) -> list[bytes]:
    return [
        json.dumps(
            {
                "topic": "shop.gap",
                "partition": 2,
                "offset": offset,
                "timestamp": 1,
                "key": None,
                "value": message(ITEM.insert(offset, offset, "a")).decode(),
            }
        ).encode()
        for offset in offsets
    ]


@pytest.mark.spark
def test_a_file_that_is_missing_is_told_until_it_lands(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """The cut that shows the gap warns or waits for approval, with topic and place; the late file closes it."""
    fields = {
        "source": "gaps",
        "format": "debezium_json",
        "landing": str(tmp_path / "*"),
        "tables": {"shop.gap": {"key": ["id"]}},
    }
    source = Source.model_validate(fields)
    blocking = Source.model_validate({**fields, "invariants": {"missing_offsets": "block"}})
    ledger = Ledger(lake, "gaps")
    place = "did not land. The next record is message 1 of "
    deliver(tmp_path, "1", _records(1, 2, 5, 6))
    report = run_all(source)["check"]
    assert (
        "gaps: offsets 3 to 4 of shop.gap, partition 2, did not land. The next record is message 3 of "
        in report.remarks[1]
    )
    assert report.remarks[0] == f"gaps: {MISSING_OFFSETS} (shop.gap, partition 2) warns: 2; expected 0"
    deliver(tmp_path, "3", _records(9))
    for stage in ("land", "normalize", "compact"):
        run_stage(stage, blocking, None, None)
    held = run_stage("check", blocking, None, None)
    assert sum(f"offsets 7 to 8 of shop.gap, partition 2, {place}" in problem for problem in held.problems) == 1
    assert "3 to 4" not in str(held.problems)  # it was reported before
    assert ledger.last_cut().state == CutState.AWAITING_APPROVAL  # type: ignore[union-attr]
    deliver(tmp_path, "2", _records(7, 8, 3, 4))
    assert run_all(blocking)["check"].remarks == ()
    rows = ledger.checks()
    found = [(row.cut, row.observed, row.success, row.target) for row in rows if row.name == MISSING_OFFSETS]
    assert sorted(found) == [(1, "2", False, "gaps"), (2, "2", False, "gaps"), (3, "0", True, "gaps")]
