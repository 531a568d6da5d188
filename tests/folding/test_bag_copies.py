"""Copies of events that were stored when positions had no delivery."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidemark.folding import bag_copies, bags
from tidemark.folding.bag_copies import IS_COPY
from tidemark.folding.log_places import LOG_PLACE
from tidemark.positions import Position, encode_position, placed

pytestmark = pytest.mark.spark


def _sent(row: int, offset: int) -> Position:
    return placed((1, 31, 4711), (0, 1, 0, offset), (row, 1))


def test_a_lake_goes_on_where_positions_had_no_delivery(spark: SparkSession) -> None:
    """An event that is sent again is a copy of the stored one; another row of its log entry is not."""
    positions = [(1, 31, 4711, 0, 1), _sent(0, 7), _sent(1, 8)]
    rows = [(encode_position(position), None, None, None, "A", "f", 1, 0) for position in positions]
    schema = (
        "position string, set_aside string, committed_at long, old string, new string, file string, place int, row int"
    )
    once = bags.once(bag_copies.by_log_place(spark.createDataFrame(rows, schema)), LOG_PLACE)
    marked_rows = bag_copies.with_stored(bag_copies.marked(once)).collect()
    assert {row["position"]: row[IS_COPY] for row in marked_rows} == dict(
        zip(map(encode_position, positions), (False, True, False), strict=True)
    )
