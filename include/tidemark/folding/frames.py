"""Names and columns that all frames of this package share."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.tables.plan import Plan
from tidemark.text import quoted


def key_names(plan: Plan) -> list[str]:
    """Names of the key's columns in every frame of this module: ``k0 .. kn``."""
    return [f"k{place}" for place in range(len(plan.key))]


def key_columns(plan: Plan) -> list[Expression]:
    """The key's columns of a published table, under the names that they have in every frame of this module."""
    return [F.col(quoted(name)).alias(key) for name, key in zip(plan.key, key_names(plan), strict=True)]


def of_today(stored: DataFrame, plan: Plan) -> DataFrame:
    """A published table or its history under the names that its columns will have when the cut is published."""
    if not plan.today:
        return stored
    names = ((name, plan.today.get(name, name)) for name in stored.columns)
    return stored.select(*(F.col(quoted(old)).alias(new) for old, new in names if new is not None))


def value_numbers(plan: Plan) -> list[int]:
    """Numbers of the table's columns that are not in the key."""
    return [number for number in range(len(plan.columns)) if number not in set(plan.key_numbers)]
