"""Messages read by Spark, and nothing of Tidemark: the floor and all peers begin with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

AS_IT_IS = {
    "spark.master": "local[*]",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""Settings of Spark as it is by itself, with the memory that Tidemark's has."""


DONE = "done\n"
"""What a process that stays writes after each step."""


def carry_out(work: Callable[[str, Sequence[str]], None], step: str, files: Sequence[str]) -> None:
    """Carry out one step with its files; of ``serve`` each step that the standard input names, as a list in JSON."""
    if step != "serve":
        work(step, files)
        return
    for line in sys.stdin:
        asked, *with_files = json.loads(line)
        work(asked, with_files)
        sys.stdout.write(DONE)
        sys.stdout.flush()


def typed(session: SparkSession, files: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
    """Return one typed row a message: ``op``, ``file``, ``pos``, ``row``, both times, and the row's columns.

    ``columns`` are the columns of the image, with their types in Spark's SQL.
    """
    row = ", ".join(f"{name}: {kind}" for name, kind in columns.items())
    envelope = (
        f"before struct<{row}>, after struct<{row}>, "
        "source struct<file: string, pos: bigint, row: int, ts_ms: bigint>, op string, ts_ms bigint"
    )
    parsed = session.read.text([*files]).select(F.from_json("value", envelope).alias("change"))
    image = F.coalesce("change.after", "change.before").alias("image")
    paths = ["change.op", "change.source.file", "change.source.pos", "change.source.row", "change.source.ts_ms"]
    return parsed.select(*paths, F.col("change.ts_ms").alias("captured_ms"), image).select("*", "image.*").drop("image")


def newest(changes: DataFrame, key: str) -> DataFrame:
    """Return the newest change of each key, by its place in the binlog."""
    newest_first = Window.partitionBy(key).orderBy(*(F.desc(name) for name in ("file", "pos", "row")))
    return changes.withColumn("_rank", F.row_number().over(newest_first)).where("_rank = 1").drop("_rank")


def totals(rows: DataFrame, columns: Sequence[str]) -> dict[str, int]:
    """Read every column of a table; return what the generator knows too: rows, the sum of one column, the content."""
    sums = [F.count(F.lit(1)), F.sum("reference"), F.sum(F.hash(*columns).cast("long"))]
    found = rows.agg(*sums).first() or (0, 0, 0)
    return dict(zip(("rows", "references", "content"), map(int, found), strict=True))
