"""The floor: the least that Spark does with the same messages. It reads them and writes typed Parquet.

python bench/floor.py TARGET FILE...     in a process of its own
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import changes
from generator import COLUMNS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.spark.session import open_session
from tidemark.values.types import spark_type

SPARK_TYPES = {name: spark_type(kind) for name, kind in COLUMNS.items()}
"""Column -> its type in Spark's SQL."""


def write(session: SparkSession, files: Sequence[Path], target: Path) -> None:
    """Read the text, parse the envelope with its schema, write typed Parquet: no key, no order, no table."""
    typed(session, files).write.mode("overwrite").option("compression", "zstd").parquet(str(target))


def typed(session: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Return one typed row a message (``changes.typed``)."""
    return changes.typed(session, [str(file) for file in files], SPARK_TYPES)


def verify(session: SparkSession, folder: Path) -> None:
    """Check that all values were read.

    A floor that fails to read values would be slower than one that reads them: Spark throws for each.
    """
    found = session.read.parquet(str(folder))
    always = [name for name in found.columns if name != "remark"]  # null in most rows
    if lost := found.where(F.greatest(*(F.col(name).isNull() for name in always))).count():
        sys.exit(f"the floor read {lost} rows with nulls where the messages have none")


if __name__ == "__main__":
    write(open_session(), [Path(name) for name in sys.argv[2:]], Path(sys.argv[1]))
