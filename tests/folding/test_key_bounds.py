"""The bounds of a batch's keys hold for each of its keys, of any type, and leave out what lies beyond them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from support.rounds import how_many
from tidemark.folding import key_bounds
from tidemark.lake.lake import Lake
from tidemark.tables.plan import Found, Plan
from tidemark.values.table_columns import TableColumn
from tidemark.values.types import spark_type

pytestmark = [pytest.mark.spark, pytest.mark.more]

TYPES: dict[str, Sequence[str]] = {
    "int": ("-2147483648", "-1", "0", "7", "2147483647"),
    "long": ("-9223372036854775808", "-1", "0", "7", "9223372036854775807"),
    "string": ("''", r"'\u0000'", "' '", "'A'", "'a'", "'a '", "'ab\\nc'", "'it''s'", "repeat('z', 40)", "'ﬀ'", "'😀'"),
    "date": ("date'-0044-03-15'", "date'0001-01-01'", "date'1969-12-31'", "date'2026-02-28'", "date'+12026-01-01'"),
    "timestamp": ("timestamp_ntz'0001-01-01 00:00:00.000001'", "timestamp_ntz'1969-12-31 23:59:59.999999'",
                  "timestamp_ntz'2026-03-29 02:30:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'"),
    "timestamptz": ("timestamp'0001-01-01 00:00:00.000001Z'", "timestamp'1969-12-31 23:59:59.999999Z'",
                    "timestamp'2026-10-25 01:30:00Z'", "timestamp'9999-12-31 23:59:59.999999Z'"),
    "decimal(38, 20)": ("-999999999999999999.99999999999999999999", "-0.00000000000000000001", "0",
                        "0.00000000000000000001", "999999999999999999.99999999999999999999"),
    "boolean": ("false", "true"),
    "double": ("double('-Infinity')", "-0.0d", "0.0d", "double('NaN')"),
    "binary": ("X''", "X'00'", "X'ff'"),
}  # fmt: skip
"""Iceberg type -> values in Spark's SQL, each once, ascending."""

ORDERED = frozenset(TYPES) - {"boolean", "double", "binary"}


def _plan(kind: str) -> Plan:
    found = Found(
        object="t", database=None, schema=None, name="t", events=1, truncates=0, shapes={}, keys=(), partial=False,
        halves=False,
    )  # fmt: skip
    return Plan(found=found, target=("bounds", "t"), key=("id",), columns=(TableColumn("id", kind),))


_USUALLY = {"string", "timestamptz", "double"}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in _USUALLY else [pytest.mark.prove]) for kind in TYPES]
)
def test_no_row_of_a_batch_is_left_out(kind: str, lake: Lake, spark: SparkSession) -> None:
    """Rows of a table in Iceberg that may have a key of the batch: all of the batch; of ordered types no others."""
    plan, name = _plan(kind), f"{lake.name}.bounds.`{kind}`"
    laid_out = "PARTITIONED BY (bucket(4, id))" if kind in ORDERED else ""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {lake.name}.bounds")
    spark.sql(f"CREATE TABLE {name} (id {spark_type(kind)}) USING iceberg {laid_out}")
    spark.sql(f"INSERT INTO {name} VALUES {', '.join(f'({value})' for value in TYPES[kind])}")  # noqa: S608  constants above
    values = TYPES[kind]
    batches = (values[:1], values[1:], values[-1:], values[:2])
    for batch in batches[: how_many(usually=2, proving=4)]:
        rows = spark.sql(" UNION ALL ".join(f"SELECT {value} AS k0" for value in batch))
        totals = rows.agg(*key_bounds.totals(plan), F.count("k0")).first()
        assert totals is not None
        bounds = key_bounds.found(plan, totals.asDict())
        assert bool(bounds.ranges) == (kind in ORDERED)
        for near in (bounds, key_bounds.with_values(bounds, rows, plan, ["id"])):
            kept = near.of(spark.table(name), plan)
            assert rows.join(kept, F.col("k0").eqNullSafe(F.col("id")), "left_anti").isEmpty(), batch
            assert kept.count() == (len(batch) if kind in ORDERED else len(values)), batch


def test_many_values_are_a_range(spark: SparkSession) -> None:
    """Values are named one by one up to a number; beyond it only the least and the greatest are named."""
    plan = _plan("long")
    for rows, named in ((key_bounds.FEW, True), (key_bounds.FEW + 1, False)):
        keys = spark.range(rows).toDF("k0")
        totals = keys.agg(*key_bounds.totals(plan)).first()
        assert totals is not None
        bounds = key_bounds.with_values(key_bounds.found(plan, totals.asDict()), keys, plan, ["id"])
        assert bounds.ranges == {"id": ("0", str(rows - 1))}
        assert bool(bounds.values) == named


def test_a_batch_without_rows_bounds_nothing(spark: SparkSession) -> None:
    """No keys, no bounds."""
    plan = _plan("long")
    totals = spark.range(0).toDF("k0").agg(*key_bounds.totals(plan)).first()
    assert totals is not None
    assert key_bounds.found(plan, totals.asDict()) == key_bounds.ANY
