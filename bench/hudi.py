"""Merges the same batches into a Hudi table, merge-on-read; in an environment of its own, which has Spark 3.5.

python bench/hudi.py FOLDER STEP FILE...     the steps of peers.py; FOLDER/shape.json has the columns

Hudi has no release for Spark 4.1 (1.2, November 2026). This file imports PySpark alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import changes
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

_DELETED = "_hoodie_is_deleted"


def main(folder: Path, step: str, *files: str) -> None:
    """Carry out one step."""
    shape = json.loads((folder / "shape.json").read_text(encoding="utf-8"))
    table = str(folder / "tables")
    session = _session(shape["jars"])
    if step == "read":
        totals = changes.totals(session.read.format("hudi").load(table), [*shape["columns"]])
        (folder / "read.json").write_text(json.dumps(totals), encoding="utf-8")
        return
    changes.carry_out(partial(_carry_out, session, shape, table), step, files)


def _carry_out(session: SparkSession, shape: Mapping[str, Any], table: str, step: str, files: Sequence[str]) -> None:
    columns, key = shape["columns"], shape["key"]
    options = {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.precombine.field": "ts_ms",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.operation": "bulk_insert" if step == "load" else "upsert",
    }
    read = changes.typed(session, files, columns)
    rows = read if step == "load" else changes.newest(read, key)
    written = rows.select(*columns, "ts_ms", (F.col("op") == "d").alias(_DELETED))
    written.write.format("hudi").options(**options).mode("append").save(table)


def _session(jars: list[str]) -> SparkSession:
    """Start Spark with what Hudi's guide asks for."""
    settings = {
        **changes.AS_IT_IS,
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
    return SparkSession.builder.config(map=settings).getOrCreate()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
