"""Column names that all frames of this package share."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.tables.plan import Plan
from tidemark.text import quoted
from tidemark.values.image_reader import field


def key_names(plan: Plan) -> list[str]:
    """Return the names of the key columns in every frame of this package: ``k0 .. kn``."""
    return [f"k{place}" for place in range(len(plan.key))]


def key_columns(plan: Plan) -> list[Expression]:
    """Return the key columns of a published table, under their names in the frames of this package."""
    return [F.col(quoted(name)).alias(key) for name, key in zip(plan.key, key_names(plan), strict=True)]


def of_today(stored: DataFrame, plan: Plan) -> DataFrame:
    """Return a published table, or its history, with the column names that it will have when the cut is published."""
    if not plan.today:
        return stored
    names = ((name, plan.today.get(name, name)) for name in stored.columns)
    return stored.select(*(F.col(quoted(old)).alias(new) for old, new in names if new is not None))


def value_numbers(plan: Plan) -> list[int]:
    """Return the numbers of the table's columns that are not in the key."""
    return [number for number in range(len(plan.columns)) if number not in set(plan.key_numbers)]


def content(plan: Plan) -> Expression:
    """Return a hash of what an action says."""
    return F.xxhash64("deleted", *map(field, value_numbers(plan)))
