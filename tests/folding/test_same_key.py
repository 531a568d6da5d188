"""When the old image of an update need not be parsed: only where its key is, text for text, the key of the new one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tidemark.events import Column, Shape
from tidemark.folding.actions import _same_key
from tidemark.tables.plan import Found, Plan
from tidemark.values.table_columns import TableColumn

COLUMNS = ("id", "part", "note", "more")
KEYS = (("id",), ("part",), ("id", "part"), ("part", "note"), COLUMNS)

TEXTS = st.sampled_from(["", "a", "a,", ',"', '{"id":1', '"note":', ',"note":', '[","]', "}", "{", "\\", "é,"])
NUMBERS = st.integers(1, 3)
VALUES = st.one_of(
    NUMBERS,
    TEXTS,
    st.lists(TEXTS, max_size=2),
    st.dictionaries(st.sampled_from([*COLUMNS, 'id":1,"note']), NUMBERS | TEXTS, max_size=3),
    st.none(),
)
ROWS = st.fixed_dictionaries(dict.fromkeys(COLUMNS, VALUES))


@st.composite
def updates(draw: st.DrawFn) -> tuple[str, str]:
    """Two images of a row that differ in some of its columns, mostly written alike."""
    before = draw(ROWS)
    after = before | draw(st.dictionaries(st.sampled_from(COLUMNS), VALUES, max_size=2))
    order = draw(st.permutations(COLUMNS)) if draw(st.integers(0, 4)) == 0 else COLUMNS
    separators = draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": ")]))
    lacking = draw(st.sets(st.sampled_from(COLUMNS), max_size=1)) if draw(st.integers(0, 4)) == 0 else set()
    images = ({name: row[name] for name in order if name not in lacking} for row in (before, after))
    before_text, after_text = (json.dumps(image, separators=separators, ensure_ascii=False) for image in images)
    return before_text, after_text


def told_same(spark: SparkSession, images: list[tuple[str, str]]) -> dict[tuple[str, ...], list[bool]]:
    """For each key, whether each pair of images is found to have the same one."""
    shape = Shape(tuple(map(Column, COLUMNS)))
    found = Found(
        object="t", database=None, schema=None, name="t", events=len(images), truncates=0, shapes={shape.id: shape},
        keys=(), partial=False, halves=False,
    )  # fmt: skip
    columns = tuple(TableColumn(name, "string") for name in COLUMNS)
    plans = [Plan(found=found, target=("shop", "t"), key=key, columns=columns) for key in KEYS]
    rows = [(number, *pair) for number, pair in enumerate(images)]
    frame = spark.createDataFrame(rows, "n int, before string, after string")
    answers = frame.select("n", *(_same_key(plan).alias(f"key_{number}") for number, plan in enumerate(plans)))
    rows_told = answers.orderBy("n").collect()
    return {key: [row[f"key_{number}"] for row in rows_told] for number, key in enumerate(KEYS)}


@pytest.mark.spark
@settings(max_examples=5, deadline=None)
@given(images=st.lists(updates(), min_size=50, max_size=200))
def test_a_key_that_changed_is_never_overlooked(spark: SparkSession, images: list[tuple[str, str]]) -> None:
    """Whatever the values hold: text that looks like a member, brackets, members in another order or lacking."""
    for key, answers in told_same(spark, images).items():
        for (before, after), same in zip(images, answers, strict=True):
            old, new = json.loads(before), json.loads(after)
            assert not same or (set(key) <= set(old) and all(old[name] == new[name] for name in key)), (before, after)


@pytest.mark.spark
def test_a_key_that_stayed_is_told(spark: SparkSession) -> None:
    """Rows as producers write them; one whose last columns are the key only where nothing of it changed."""
    row: dict[str, Any] = {"id": 7, "part": "a, b", "note": "é\\", "more": None}
    texts = [json.dumps(new, separators=(",", ":")) for new in (*(row | {name: 0} for name in COLUMNS), row)]
    for key, answers in told_same(spark, [(texts[-1], text) for text in texts]).items():
        last = max(map(COLUMNS.index, key))
        assert answers == [*(number > last for number in range(len(COLUMNS))), True], key
