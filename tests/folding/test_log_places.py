"""Places in the log and deliveries, read from encoded positions."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidemark.folding.log_places import is_read_after
from tidemark.positions import Position, changed, encode_position, loaded, placed

pytestmark = pytest.mark.spark

_FIRST, _LATER = (1, 0, 99), (1, 0, 100)
_OTHER_PARTITION = (1, 1, 5)
_FILE = (0, 20260101, "~a.b/dump.~.json")

CASES: list[tuple[Position, Position, bool]] = [
    (loaded(*_FIRST), _LATER, False),
    (loaded(*_LATER), _FIRST, True),
    (loaded(*_OTHER_PARTITION), _FIRST, False),
    (loaded(*_FIRST), _OTHER_PARTITION, False),
    (loaded(*_FILE, 9), (*_FILE, 10), False),
    (loaded(*_FILE, 10), (*_FILE, 9), True),
    (loaded(0, 20260102, "a", 1), (*_FILE, 9), True),
    (loaded(0, 20260101, "zz", 1), (0, 20260102, "a", 1), False),
    (loaded(*_LATER), (*_FILE, 9), False),
    (changed(5, *_LATER), _FIRST, False),
    (placed(changed(5), (0, *_LATER)), _FIRST, False),
]
"""A position, the delivery of a change, and whether the row of a load was delivered after it."""


def test_a_row_of_an_incremental_load_tells_whether_it_was_sent_after_a_change(spark: SparkSession) -> None:
    """By the offsets of one partition, or by places in files; what cannot be compared, and a change, is not."""
    rows = [
        (number, encode_position(row), encode_position(placed(changed(70, 3), (0, *delivery), rest)) + " ")
        for number, (row, delivery, _) in enumerate(CASES)
        for rest in ((), (2, 0))
    ]
    frame = spark.createDataFrame(rows, "number int, position string, until string")
    found = frame.select("number", is_read_after("until").alias("after")).collect()
    assert len(found) == 2 * len(CASES)
    assert {(row["number"], row["after"]) for row in found} == {(n, case[2]) for n, case in enumerate(CASES)}
