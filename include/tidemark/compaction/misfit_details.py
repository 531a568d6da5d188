"""The details of values that do not fit: the value, its column, its encoding and type, and the remedy.

Folding names only the column, because it looks at every row. The few rows that were set aside are read again here, by
the plain reader, on Spark's workers.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.run import Run
from tidemark.spark.session import checkpointed
from tidemark.tables.plan import Plan
from tidemark.tables.reasons import MISFIT, UNREADABLE_VALUE
from tidemark.values import misfits
from tidemark.values.images import by_table_name
from tidemark.values.misfits import PLACE

_DDL = "batch int, file string, place bigint, row int, found string"


def described(run: Run, plan: Plan, aside: DataFrame) -> DataFrame:
    """Return events that were set aside, with the values that do not fit in their details.

    Args:
        run: the run.
        plan: the table's plan.
        aside: ``batch``, ``file``, ``place``, ``row``, ``set_aside``, ``detail``.
    """
    aside = checkpointed(aside)
    named = F.replace(F.col("detail"), F.lit(MISFIT), F.lit("")).alias("named")
    unreadable = aside.where(F.col("set_aside") == UNREADABLE_VALUE).select(*PLACE, named)
    log = run.changes().where(F.col("object").isin(*plan.found.objects))
    images = log.select(*PLACE, "before", "after", "shape").join(F.broadcast(unreadable), list(PLACE))
    shapes = run.ledger.shapes_of(*plan.found.objects)
    describe = partial(misfits.described, shapes=shapes, types=_types(plan), hidden=_hidden(plan))
    details = images.mapInArrow(describe, _DDL).dropDuplicates(list(PLACE))
    joined = aside.join(F.broadcast(details), list(PLACE), "left")
    return joined.withColumn("detail", F.coalesce("found", "detail")).drop("found")


def _types(plan: Plan) -> dict[str, str]:
    """Return the types of the table's columns, by the names that messages have for them."""
    types = {column.name: column.type for column in plan.columns}
    columns = (each for shape in plan.found.shapes.items() for each in by_table_name(*shape, plan.found.names))
    return types | {column.name: types[name] for name, column in columns if name in types}


def _hidden(plan: Plan) -> frozenset[str]:
    """Return the names that messages have for columns that are masked or left out."""
    shown = {column.name for column in plan.columns} - plan.masks.kinds.keys()
    columns = (each for shape in plan.found.shapes.items() for each in by_table_name(*shape, plan.found.names))
    return frozenset(column.name for name, column in columns if name not in shown)
