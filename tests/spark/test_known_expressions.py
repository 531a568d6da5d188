"""Expressions that are made once: equal ones are one object of the JVM, and different ones never are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import NumberFormatException
from pyspark.sql import Column, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.spark import jvm_lookups, known_expressions

pytestmark = pytest.mark.spark


def _object(column: Column) -> str:
    """The number of a column's object in the JVM."""
    number: str = column._jc._target_id
    return number


EXPRESSIONS: dict[str, Callable[[], Column]] = {
    "a column": lambda: F.col("a"),
    "a comparison": lambda: F.col("a") == 1,
    "of many parts": lambda: F.when(F.col("a").isNull() & ~F.col("b"), F.lit("x")).otherwise(F.coalesce("c", "d")),
    "of more parts than are sent at once": lambda: F.struct(*(f"c{number}" for number in range(25))),
    "with another name": lambda: F.col("a").cast("long").alias("b"),
    "one of some": lambda: F.col("a").isin("x", "y"),
    "over a window": lambda: F.row_number().over(Window.partitionBy("id").orderBy(F.col("at").desc())),
    "over a part of a window": lambda: F.sum("a").over(Window.partitionBy("id").orderBy("at").rowsBetween(-1, 0)),
}


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_an_equal_expression_is_made_once(kind: str, spark: SparkSession) -> None:
    """However many parts it has."""
    make = EXPRESSIONS[kind]
    assert _object(make()) == _object(make())


def test_what_python_takes_for_equal_is_not(spark: SparkSession) -> None:
    """1, 1.0 and true, as well as 0.0 and -0.0, are equal keys of a dictionary; NaN is no key of its own."""
    values: list[Any] = [1, 1.0, True, "1", 0, 0.0, -0.0, False, "", None, "None", float("nan"), "nan", 2**40]
    columns = [F.lit(value).alias(f"c{number}") for number, value in enumerate(values)]
    row = spark.range(1).select(*columns).first()
    assert row is not None
    assert [(type(found), repr(found)) for found in row] == [(type(value), repr(value)) for value in values]
    names = [F.col(name) for name in ("a", "A", "a.b", "`a.b`", "*")]
    assert len({_object(name) for name in names}) == len(names)
    assert _object(F.col("a") == "b") != _object(F.col("a") == F.col("b"))


def test_values_that_have_no_key_are_made_each_time(spark: SparkSession) -> None:
    """Times, decimals and bytes are what they were given as."""
    values = [datetime(2026, 1, 1, tzinfo=UTC), Decimal("1.50"), b"x"]
    for _ in range(2):
        row = spark.range(1).select(*(F.lit(value) for value in values)).first()
        assert row is not None
        assert (row[1], bytes(row[2])) == (values[1], values[2])


def test_chance_is_not_remembered(spark: SparkSession) -> None:
    """Each is made anew, with a seed of its own."""
    for each in (F.rand, F.uuid, F.monotonically_increasing_id):
        assert _object(each()) != _object(each())
    row = spark.range(1).select(F.rand().alias("a"), F.rand().alias("b")).first()
    assert row is not None
    assert row["a"] != row["b"]


def test_one_expression_serves_frames_and_settings_that_differ(spark: SparkSession) -> None:
    """It has the type of each frame's column, and follows the setting of the moment."""
    tripled = F.col("a") * 3
    assert [spark.createDataFrame([(each,)], f"a {kind}").select(tripled).first()[0] for each, kind in (
        (2, "int"), (0.5, "double"), (Decimal("1.1"), "decimal(3,1)"),
    )] == [6, 1.5, Decimal("3.3")]  # fmt: skip
    number = F.col("a").cast("int")
    texts = spark.createDataFrame([("x",)], "a string")
    with pytest.raises(NumberFormatException):
        texts.select(number).collect()
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert texts.select(number).first()[0] is None
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_no_more_than_so_many_are_kept(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten is made again; who still has it can go on using it."""
    monkeypatch.setattr(known_expressions, "_known", known_expressions.LRUCache(10))
    first = F.lit("first")
    made = [F.lit(f"value {number}") for number in range(20)]
    assert len(known_expressions._known) == 10
    again = F.lit("first")
    assert _object(first) != _object(again)
    row = spark.range(1).select(first, again, *made).first()
    assert row is not None
    assert list(row) == ["first", "first", *(f"value {number}" for number in range(20))]


def test_another_jvm_knows_none_of_them(spark: SparkSession) -> None:
    """Numbers of objects begin anew there: an old one would be another column. The same JVM keeps them."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    before = _object(F.lit("of this JVM"))
    jvm_lookups.remember(jvm)
    assert _object(F.lit("of this JVM")) == before
    known = {name: vars(jvm).pop(name) for name in jvm_lookups.CLASSES}
    try:
        jvm_lookups.remember(jvm)
        assert _object(F.lit("of this JVM")) != before
    finally:
        vars(jvm).update(known)
