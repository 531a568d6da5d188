"""The rows of a state table, rewritten to what compact still asks of them (``table_schemas.state_schema``)."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import MapType, StringType

from tidemark.lake import maintenance
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.spark.session import checkpointed

_KINDS = ("tombstone", "cells", "truncate")

_KEPT = ("position", "versions", "batch")


def rewrite(session: SparkSession, lake: Lake, identifier: Identifier, past: int) -> int:
    """Keep the newest row of each key and kind, and no tombstone of the batches up to ``past``.

    Compact reads the newest row alone, so only the tombstones that go change what it does: an event older than one of
    them, should it still arrive, finds no trace of the delete. Nothing is done where files and tombstones are few.

    Returns:
        How many tombstones went because of their age.
    """
    table = lake.load(identifier)
    crowded = maintenance.is_crowded(maintenance.size_of(table))
    if not (crowded or past):
        return 0
    name = lake.spark_name(identifier)
    old = (F.col("kind") == "tombstone") & (F.col("batch") <= past)
    rows = session.table(name).where(F.col("kind").isin(*_KINDS))
    if not crowded and not rows.where(old).limit(1).count():
        return 0
    keys = [field.name for field in table.schema().fields if field.name not in {"kind", *_KEPT}]
    latest = F.max_by(F.struct(*_KEPT), F.struct("position", "batch")).alias("latest")
    newest = rows.groupBy("kind", *keys).agg(latest).select(*keys, "kind", "latest.*")
    newest = checkpointed(newest)
    gone = newest.where(old).count()
    newest.where(~old).writeTo(name).overwrite(F.col("kind").isin(*_KINDS))
    return gone


VERSIONS = MapType(StringType(), StringType())
