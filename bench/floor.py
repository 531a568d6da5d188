"""The floor: the least that Spark does with the same messages. It reads them and writes typed Parquet.

python bench/floor.py TARGET FILE...     in a process of its own
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from generator import COLUMNS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.spark.session import open_session
from tidemark.values.types import spark_type

_IMAGE = ", ".join(f"{name}: {spark_type(kind)}" for name, kind in COLUMNS.items())
_ENVELOPE = (
    f"before struct<{_IMAGE}>, after struct<{_IMAGE}>, "
    "source struct<file: string, pos: bigint, row: int, ts_ms: bigint>, op string, ts_ms bigint"
)


def write(session: SparkSession, files: Sequence[Path], target: Path) -> None:
    """Read the text, parse the envelope with its schema, write typed Parquet: no key, no order, no table."""
    typed(session, files).write.mode("overwrite").option("compression", "zstd").parquet(str(target))


def typed(session: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Return one typed row a message: ``op``, ``file``, ``pos``, ``row``, both times, and the row's columns."""
    parsed = session.read.text([str(file) for file in files]).select(F.from_json("value", _ENVELOPE).alias("change"))
    image = F.coalesce("change.after", "change.before").alias("image")
    told = ["change.op", "change.source.file", "change.source.pos", "change.source.row", "change.source.ts_ms"]
    return parsed.select(*told, F.col("change.ts_ms").alias("captured_ms"), image).select("*", "image.*").drop("image")


def verify(session: SparkSession, folder: Path) -> None:
    """A floor that fails to read values would be slower than one that reads them: Spark throws for each."""
    found = session.read.parquet(str(folder))
    always = [name for name in found.columns if name != "remark"]  # null in most rows
    if lost := found.where(F.greatest(*(F.col(name).isNull() for name in always))).count():
        sys.exit(f"the floor read {lost} rows with nulls where the messages have none")


if __name__ == "__main__":
    write(open_session(), [Path(name) for name in sys.argv[2:]], Path(sys.argv[1]))
