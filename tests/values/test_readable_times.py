"""Dates and times are published in the years 1 to 9999: PyIceberg and DuckDB read no other. Text holds them all."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding, Shape
from tidemark.values.images import read_images
from tidemark.values.plain import read_value
from tidemark.values.table_columns import Image, TableColumn

KINDS = ("date", "timestamp", "timestamptz")
UNREADABLE = "unreadable"
FIRST, LAST = -62_135_596_800, 253_402_214_400
"""Seconds of the midnights at which the first and the last day begin."""
COUNTED = {
    Encoding.EPOCH_SECONDS: 1,
    Encoding.EPOCH_MILLIS: 1_000,
    Encoding.EPOCH_MICROS: 1_000_000,
    Encoding.TEXT_OR_MILLIS: 1_000,
    Encoding.TEXT_OR_MICROS: 1_000_000,
}
DAYS = {"0001-01-01": True, "9999-12-31": True, "0000-12-31": False, "0000-01-01": False, "10000-01-01": False}
SHIFTED = ("9999-12-31T23:30:00-01:00", "0001-01-01T00:30:00+01:00")
"""Instants of the years 10000 and 0."""
TEXTS = [
    "infinity", "-infinity", "0044-03-15 BC", "+10000-01-01", "-0001-12-31", "12022-04-01 00:00:00", "0000-00-00",
    *SHIFTED,
]  # fmt: skip
VALUES: list[tuple[Encoding, str, bool]] = [
    *((encoding, str(at * by), True) for encoding, by in COUNTED.items() for at in (FIRST, LAST)),
    *((encoding, str((FIRST - 86_400) * by), False) for encoding, by in COUNTED.items()),
    *((encoding, str((LAST + 86_400) * by), False) for encoding, by in COUNTED.items()),
    *((Encoding.EPOCH_DAYS, str(day), True) for day in (-719_162, 2_932_896)),
    *((Encoding.EPOCH_DAYS, str(day), False) for day in (-719_163, 2_932_897, 2**31 - 1, -(2**31), 2**40)),
    # what Debezium sends for infinity and -infinity of PostgreSQL
    *((Encoding.EPOCH_MICROS, str(count), False) for count in (9_223_372_036_825_200_000, -9_223_372_036_832_400_000)),
    *((Encoding.EPOCH_MILLIS, str(count), False) for count in (9_223_372_036_825_200, -9_223_372_036_832_400)),
    *(
        (encoding, json.dumps(text), fits)
        for encoding in (Encoding.PLAIN, Encoding.TEXT, Encoding.TEXT_OR_MILLIS)
        for text, fits in {**DAYS, **dict.fromkeys(TEXTS, False)}.items()
    ),
]
"""Encoding, value, and whether a date and both kinds of time hold it."""


@pytest.mark.parametrize("kind", KINDS)
def test_other_years_are_unreadable_and_text_is_the_remedy(kind: str) -> None:
    """`tidemark decode` and the quarantine say so."""
    for encoding, raw, fits in VALUES:
        column = Column("v", kind, encoding)
        if kind == "timestamp" and raw in map(json.dumps, SHIFTED):
            continue  # the plain reader takes the wall clock, and Spark refuses it
        if fits:
            assert str(read_value(raw.encode(), column))[:10] in {"0001-01-01", "9999-12-31"}
            continue
        with pytest.raises(UnreadableValueError) as caught:
            read_value(raw.encode(), column)
        if raw != str(2**40):  # no day in 32 bits
            assert "; `columns: {v: string}` keeps it as text" in str(caught.value)


def test_the_last_moment_of_the_last_year_is_read() -> None:
    """And the first one after it is not."""
    for encoding, by in COUNTED.items():
        column = Column("v", "timestamp", encoding)
        last = (LAST + 86_400) * by - 1
        assert str(read_value(str(last).encode(), column)).startswith("9999-12-31T23:59:59")
    shifted = Column("v", "timestamptz", Encoding.TEXT)
    assert read_value(b'"0001-01-01T01:00:00+01:00"', shifted) == "0001-01-01T00:00:00.000000Z"


@pytest.mark.spark
def test_spark_reads_the_same_years(spark: SparkSession) -> None:
    """Each value in a column of its own, so that all are read in one job."""
    shapes, images = {}, []
    for number, (encoding, raw, _) in enumerate(VALUES):
        shape = Shape((Column("v", "string", encoding),))
        shapes[shape.id] = shape
        images.append((number, f'{{"v":{raw}}}', shape.id))
    tables = [Image(F.col("i"), [TableColumn("v", kind)], f"as {kind}") for kind in KINDS]
    read = read_images(spark.createDataFrame(images, "n int, i string, shape string"), tables, shapes=shapes)
    shown = [F.col(f"`as {kind}`.c0").cast("string").alias(kind) for kind in KINDS]
    faults = [F.col(f"`as {kind}`.unreadable").alias(f"not {kind}") for kind in KINDS]
    unlike = []
    for row in read.select("n", *shown, *faults).collect():
        encoding, raw, fits = VALUES[row["n"]]
        for kind in KINDS:
            found = None if row[f"not {kind}"] else (row[kind] or "")[:10]
            if (found in {"0001-01-01", "9999-12-31"}) is not fits or (not fits and found is not None):
                unlike.append((encoding, raw, kind, row[kind]))
    assert not unlike
