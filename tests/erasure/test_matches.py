"""Which rows of a table are a subject's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysFalse, And, EqualTo, GreaterThanOrEqual, LessThan, Or

from tidemark.erasure.matches import Match, condition, holds
from tidemark.tables.schemas import POSITION

KEY = {"region": "eu", "id": 1}
ROWS: list[dict[str, Any]] = [
    {"region": "eu", "id": 1, POSITION: "5"},
    {"region": "us", "id": 1, POSITION: "5"},
    {"region": "eu", "id": 2, POSITION: "5"},
    {"region": None, "id": 1, POSITION: "5"},
    {"region": "eu", "id": None, POSITION: "5"},
    {"region": "eu", "id": 1, POSITION: "7"},
    {"region": "eu", "id": 1, POSITION: None},
]


@pytest.mark.parametrize(
    ("matches", "found"),
    [
        ([], []),
        ([Match(KEY)], [0, 5, 6]),
        ([Match(KEY, begins="5")], [0, 5]),
        ([Match(KEY, begins="6")], [5]),
        ([Match(KEY, ends="7")], [0]),
        ([Match(KEY, ends="5"), Match({"region": "us", "id": 1})], [1]),
        ([Match(KEY, begins="5", ends="6"), Match({"region": "eu", "id": 2})], [0, 2]),
    ],
)
def test_every_column_of_a_key_counts(matches: list[Match], found: list[int]) -> None:
    """Rows that have a part of the key, or null in its place, are other people's, and so are rows of another time."""
    marked = holds(matches)(pa.RecordBatch.from_pylist(ROWS)).to_pylist()
    assert [number for number, is_one in enumerate(marked) if is_one] == found


def test_the_condition_says_what_the_function_marks() -> None:
    """Files are chosen by the condition, and their rows by the function."""
    key = And(EqualTo("region", "eu"), EqualTo("id", 1))
    assert condition([]) == AlwaysFalse()
    assert condition([Match(KEY)]) == key
    assert condition([Match({"id": 2}), Match(KEY, begins="5", ends="7")]) == Or(
        EqualTo("id", 2), And(And(key, GreaterThanOrEqual(POSITION, "5")), LessThan(POSITION, "7"))
    )
