"""Images in which every number stands in quotation marks are told by one look, so that no value is searched for."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Column, Encoding, Shape
from tidemark.values.images import read_images
from tidemark.values.table_columns import Image, TableColumn
from tidemark.values.verbatim import may_be_bare

pytestmark = pytest.mark.spark

BARE = [
    r'{"a":1.10}',
    r'{"a": 1.10}',
    r'{"a" : -0.5,"b":"x"}',
    r'{"b":"x","a":1e5}',
    r'{"a":12E3}',
    r'{"a":-0}',
    r'{"a\\":1.10}',
    r'{"a\"":1.10}',
    r'{"o":{"a":1.10}}',
    '{"a":\n\t1.10}',
]
QUOTED = [
    r'{"a":"1.10"}',
    r'{"a":"1.10","b":"{\"a\":1.10}"}',
    r'{"a":"1.10","b":7,"c":-7,"d":null,"e":true}',
    r'{"a":"x:1.10"}',
    r'{"a":"{:1.10","b":"-0"}',
]


def test_which_images_may_have_a_bare_number(spark: SparkSession) -> None:
    """A number with a fraction, an exponent or a minus before zero; one in a text is none."""
    frame = spark.createDataFrame([(text,) for text in [*BARE, *QUOTED]], "image string")
    told = {row["image"]: row["bare"] for row in frame.withColumn("bare", may_be_bare(F.col("image"))).collect()}
    assert told == {text: text in BARE for text in told}


def test_an_image_is_looked_at_once_for_all_of_its_columns(spark: SparkSession) -> None:
    """The plan has that look once, however many decimals and texts there are."""
    kinds = [("decimal(20, 4)", Encoding.TEXT), (None, Encoding.PLAIN)]
    columns = [Column(f"c{number}", *kinds[number % 2]) for number in range(60)]
    table = [TableColumn(column.name, column.type or "string") for column in columns]
    shape = Shape(tuple(columns))
    frame = spark.createDataFrame([], "image string, shape string")
    read = read_images(frame, [Image(F.col("image"), table, "row")], shapes={shape.id: shape}, names={})
    plan = read.select("row")._jdf.queryExecution().optimizedPlan().toJSON()
    assert plan.count("[.eE]|-0)") == 1
