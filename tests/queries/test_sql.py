"""How answers are printed: values as they are, in years that Python does not know too."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from tidemark.queries.sql import as_json_lines, as_text_rows

_AT = 400_000_000_000_000_000
"""In the year 14645."""
CASES = [
    (
        pa.timestamp("us", "UTC"),
        [_AT, -_AT, 0, None],
        ["+14645-06-30T15:06:40.000000Z", "-10706-07-03T08:53:20.000000Z"],
    ),
    (pa.timestamp("us"), [_AT, -_AT, 0, None], ["+14645-06-30T15:06:40.000000", "-10706-07-03T08:53:20.000000"]),
    (
        pa.timestamp("ms"),
        [_AT // 1000, -_AT // 1000, 0, None],
        ["+14645-06-30T15:06:40.000000", "-10706-07-03T08:53:20.000000"],
    ),
    (pa.date32(), [5_000_000, -5_000_000, 0, None], ["+15659-07-15", "-11720-06-19"]),
]


@pytest.mark.parametrize(("kind", "stored", "printed"), CASES)
def test_times_that_python_does_not_know_are_printed(kind: pa.DataType, stored: list[Any], printed: list[str]) -> None:
    """Alone and within a row image; the others of their column stay as they were."""
    column = pa.array(stored, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    image = pa.StructArray.from_arrays([column, pa.array([[None]] * 4)], ["at", "more"])
    answer = pa.table({"at": column, "after": image})
    rows = [json.loads(line) for line in as_json_lines(answer)]
    assert [row["at"] for row in rows[:2]] == printed
    assert rows[2]["at"].startswith("1970-01-01")
    assert rows[3]["at"] is None
    assert [row["after"] for row in rows] == [{"at": row["at"], "more": [None]} for row in rows]
    header, *texts = as_text_rows(answer)
    assert header == ["at", "after"]
    assert [text[0] for text in texts[:2]] == printed
    assert texts[2][0] == next(iter(list(as_text_rows(answer.slice(2, 1)))[1:]))[0]
    assert texts[3][0] == ""


def test_a_float_is_printed_with_the_digits_of_a_float() -> None:
    """Not with the digits of the double that Python makes of it; alone, within a row image and in a list."""
    column = pa.array([1.1, -3.4028235e38, 1e-45, float("nan"), float("inf"), None, 16777216.0], pa.float32())
    image = pa.StructArray.from_arrays([column, pa.array([0.1] * 7)], ["ratio", "exact"])
    nested = pa.array([[1.1], [], None, [None], [2.5], [], []], pa.list_(pa.float32()))
    answer = pa.table({"ratio": column, "after": image, "all": nested})
    lines = [bytes(line) for line in as_json_lines(answer)]
    assert lines[0] == b'{"ratio":1.1,"after":{"ratio":1.1,"exact":0.1},"all":[1.1]}\n'
    rows = [json.loads(line) for line in lines]
    assert [row["ratio"] for row in rows] == [1.1, -3.4028235e38, 1e-45, "nan", "inf", None, 16777216]
    assert [row["all"] for row in rows[:5]] == [[1.1], [], None, [None], [2.5]]
    assert [text[0] for text in as_text_rows(answer)][1:4] == ["1.1", "-3.4028235e+38", "1e-45"]
