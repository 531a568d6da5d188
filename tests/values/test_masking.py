"""What masks make of values: in Python, which explains the life of a row, and in Spark, which writes tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from support.options import SECRET, SECRET_VARIABLE, masked_text, the_secret
from tidemark.events import Column, Encoding, Shape
from tidemark.values.image_reader import UNREADABLE
from tidemark.values.images import read_images
from tidemark.values.masked_columns import mask_of
from tidemark.values.masking import Mask, Masks
from tidemark.values.table_columns import Image, TableColumn

VALUES = (None, "", "1234", "12345", "4111111111111111", "ä€😀x", "0", "two words", "5", "-1.10")


@pytest.mark.spark
def test_spark_masks_as_python_does(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same text for every value and every mask, and no plan of Spark shows the secret."""
    the_secret(monkeypatch)
    masks = Masks({mask.value: mask for mask in Mask}, SECRET_VARIABLE)
    rows = spark.createDataFrame([(value,) for value in VALUES], "value string")
    masked = rows.select("value", *(mask_of(masks, mask.value)(F.col("value")).alias(mask.value) for mask in Mask))
    found = {row["value"]: row.asDict() for row in masked.collect()}
    for value in VALUES:
        for mask in Mask:
            assert found[value][mask.value] == masks.shown(mask.value, value) == masked_text(mask.value, value), (
                mask,
                value,
            )
    masked.explain(mode="extended")
    shown = capsys.readouterr().out
    assert "hashed" in shown
    assert SECRET not in shown
    assert SECRET.encode().hex() not in shown.lower()


@pytest.mark.spark
def test_values_that_were_masked_before_are_masked_no_more(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain and masked values of one column are read side by side; what could not be read stays unreadable."""
    the_secret(monkeypatch)
    masks = Masks({"c": Mask.HMAC, "d": Mask.LAST4}, SECRET_VARIABLE)
    of_c, of_d = str(masks.label("c")), str(masks.label("d"))
    shapes = {
        "plain": Shape((Column("c", "binary", Encoding.BASE64), Column("d"))),
        "done": Shape((Column("c", "string", masked=of_c), Column("d", "string", masked=of_d))),
        "faulty": Shape((Column("c", "string", Encoding.HEX, of_c),)),
    }
    rows = [
        ("plain", '{"c": "QWJjZGVm", "d": 1.10}', masked_text("hmac", "Abcdef"), "****", None),
        ("plain", '{"c": "/w==", "d": 123450}', None, "****3450", "c"),
        ("done", '{"c": "0a0b", "d": "****3450"}', "0a0b", "****3450", None),
        ("done", '{"c": null, "d": null}', None, None, None),
        ("faulty", '{"c": "30613062"}', "0a0b", None, None),
        ("faulty", '{"c": "unreadable"}', None, None, "c"),
    ]
    for used in (["plain", "done", "faulty"], ["done"], ["done", "faulty"]):
        chosen = [row for row in rows if row[0] in used]
        frame = spark.createDataFrame([row[:2] for row in chosen], "shape string, i string")
        images = [Image(F.col("i"), [TableColumn("c", "string"), TableColumn("d", "string")], "read")]
        read = read_images(frame, images, shapes={name: shapes[name] for name in used}, masks=masks)
        found = read.select("i", "read.c0", "read.c1", f"read.{UNREADABLE}").collect()
        assert {tuple(row) for row in found} == {row[1:] for row in chosen}
