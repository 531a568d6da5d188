"""The plan that folds a table grows with its columns, and hardly with the number of its shapes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from support.plans import found, source
from tidemark.events import Column, Encoding, Shape
from tidemark.folding import actions, cells, keyed, versions
from tidemark.spark.session import checkpointed
from tidemark.tables import planner
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import COMMITTED_AT, POSITION
from tidemark.text import quoted
from tidemark.values.types import spark_type

pytestmark = pytest.mark.spark
_KINDS = [
    ("long", Encoding.PLAIN),
    (None, Encoding.PLAIN),
    ("decimal(20, 4)", Encoding.TEXT),
    ("timestamp", Encoding.EPOCH_MICROS),
    ("decimal(38, 6)", Encoding.UNSCALED_BASE64),
    ("binary", Encoding.BASE64),
    ("double", Encoding.PLAIN),
    ("string", Encoding.SCALED_STRUCT),
]
_CHANGES = (
    "operation string, position string, committed_at timestamp, captured_at timestamp, landed_at timestamp, "
    "before string, after string, shape string, partial boolean, absent array<string>, "
    "upsert boolean, batch int, file string, place bigint, row int"
)
_STATE = "k0 bigint, kind string, position string, versions map<string, string>, batch int"


def _plan(columns: int, shapes: int) -> Plan:
    """A table with a key and partial images: each shape lacks a few of its last columns, the newest none."""
    every = [Column("id", "long"), *(Column(f"column_{n}", *_KINDS[n % len(_KINDS)]) for n in range(columns - 1))]
    image_shapes = [Shape(tuple(every[: columns - number])) for number in range(shapes)]
    known = found(*image_shapes, inferred={each.name: "string" for each in every if each.type is None})
    plan = planner.plan(source(), replace(known, partial=True), None, anew=False)
    assert len(plan.columns) == columns
    return plan


def _nodes(frame: DataFrame) -> int:
    """How many operators and expressions the optimized plan of a frame has."""
    return len(re.findall(r'"class":', frame._jdf.queryExecution().optimizedPlan().toJSON()))


def _sizes(spark: SparkSession, columns: int, shapes: int) -> dict[str, int]:
    """How large the plans are that the fold of a table consists of."""
    plan = _plan(columns, shapes)
    changes = spark.createDataFrame([], _CHANGES)
    rows = ", ".join(f"{quoted(each.name)} {spark_type(each.type)}" for each in plan.columns)
    stored = spark.createDataFrame([], f"{rows}, {POSITION} string, {COMMITTED_AT} timestamp")
    acted = actions.actions(changes, plan, None, versions.KEPT)
    folded = keyed.fold(acted.where(F.col("set_aside").isNull()), plan)
    combined = cells.combine(checkpointed(folded), stored, spark.createDataFrame([], _STATE), plan)
    events = versions.events(acted, plan)
    return {
        "folded": _nodes(folded),
        "combined": _nodes(combined),
        "events": _nodes(events),
        "versions": _nodes(versions.versions(checkpointed(events), plan, None)),
    }


def test_a_plan_grows_with_columns_and_not_with_columns_times_shapes(spark: SparkSession) -> None:
    """Twice the columns make a plan twice as large, and twice the shapes hardly a larger one."""
    few, wide, varied = _sizes(spark, 17, 4), _sizes(spark, 33, 4), _sizes(spark, 33, 8)
    assert all(wide[name] <= 2.2 * few[name] for name in few), (few, wide)
    assert all(varied[name] <= 1.1 * wide[name] for name in wide), (wide, varied)
