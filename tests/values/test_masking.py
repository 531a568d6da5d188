"""What masks make of values: in Python, which tells the life of a row, and in Spark, which writes tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from support.options import SECRET, SECRET_VARIABLE, the_secret, told
from tidemark.values.masked_columns import mask_of
from tidemark.values.masking import Mask, Masks

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
            assert found[value][mask.value] == masks.told(mask.value, value) == told(mask.value, value), (mask, value)
    masked.explain(mode="extended")
    shown = capsys.readouterr().out
    assert "hashed" in shown
    assert SECRET not in shown
    assert SECRET.encode().hex() not in shown.lower()
