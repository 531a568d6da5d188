"""A text is read whatever its length, as far as a message may be long."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Column, Shape
from tidemark.values.images import read_images
from tidemark.values.table_columns import Image, TableColumn

pytestmark = pytest.mark.spark


def test_a_text_of_more_characters_than_spark_reads_by_itself_is_read(spark: SparkSession) -> None:
    """Spark's JSON reader stops at 20,000,000 characters unless it is told otherwise."""
    image = F.concat(F.lit('{"a":"'), F.repeat(F.lit("x"), F.lit(20_000_001)), F.lit('"}'))
    shape = Shape((Column("a", "string"),))
    frame = spark.range(1).select(image.alias("image"), F.lit(shape.id).alias("shape"))
    read = read_images(frame, [Image(F.col("image"), [TableColumn("a", "string")], "row")], shapes={shape.id: shape})
    assert [row["n"] for row in read.select(F.length("row.c0").alias("n")).collect()] == [20_000_001]
