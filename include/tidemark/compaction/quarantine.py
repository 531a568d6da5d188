"""The quarantine table: messages that could not be read, with their bytes, the reason, and where they stood."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake.filters import above
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import QUARANTINE
from tidemark.lake.properties import LOG_PROPERTIES
from tidemark.ledger.ledger import Ledger
from tidemark.spark.session import open_session


def quarantine(lake: Lake, source: str, found: DataFrame, after: int, *, settled: int) -> None:
    """Put messages into ``quarantine.<source>``, with their bytes from ``raw``; doing it again changes nothing.

    Args:
        lake: the lake.
        source: name of the source.
        found: batch, file, place, reason, detail, object: one row a message and reason.
        after: only batches above this one occur in ``found``.
        settled: of batches up to this one, messages in quarantine stay; others of an aborted attempt are replaced.
    """
    table = lake.ensure(("quarantine", source), QUARANTINE, LOG_PROPERTIES, partition_by=["batch", "reason", "object"])
    session = open_session()
    # A message that was retried lies in raw with the batch that it landed with.
    batches = Ledger(lake, source).read("batches", above("batch", after))
    retried = {row["batch"]: row["retry_of"] for row in batches if row["retry_of"] is not None}
    raw = session.table(lake.spark_name(("raw", source)))
    raw = raw.where((F.col("batch") > after) | F.col("batch").isin(list(retried.values())))
    own = [name for name in QUARANTINE.names if name not in {"batch", "reason", "detail", "object"}]
    landed = F.when(F.lit(False), F.col("batch"))
    for batch, landed_with in retried.items():
        landed = landed.when(F.col("batch") == batch, landed_with)
    once = found.dropDuplicates(["batch", "file", "place", "reason"])
    once = once.withColumn("landed_with", landed.otherwise(F.col("batch")))
    bytes_of = raw.select(F.col("batch").alias("landed_with"), *own)
    rows = F.broadcast(once).join(bytes_of, ["landed_with", "file", "place"])
    rows = rows.select(*QUARANTINE.names)
    if settled > after:
        earlier = session.table(lake.spark_name(("quarantine", source))).where(
            F.col("batch").between(after + 1, settled)
        )
        told = rows.select("batch", "reason", "object").distinct()
        rows = rows.unionByName(earlier.join(told, ["batch", "reason", "object"], "left_semi"))
        rows = rows.dropDuplicates(["batch", "file", "place", "reason", "object"])
    # Dynamic overwrite replaces the partitions (batch, reason and table) that an aborted attempt may have written.
    rows.writeTo(lake.spark_name(("quarantine", source))).overwritePartitions()
    table.refresh()
