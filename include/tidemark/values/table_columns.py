"""The columns that an image is read into, and the names that the struct of a read image gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know


class TableColumn(NamedTuple):
    """A column of a published table."""

    name: str
    type: str
    """Iceberg type string."""


_LONGEST_OR = 16
"""Most conditions that are joined by OR: the optimizer takes such a tree apart, again and again."""


def any_of(conditions: Sequence[Expression]) -> Expression:
    """Return whether any condition holds; null if none holds, and one is null.

    A few are a balanced tree: Spark Connect refuses plans of more than 100 levels. Many are one array. The optimizer
    leaves an array as it is; a tree of as many conditions as a wide table has cells would cost it minutes.
    """
    if len(conditions) > _LONGEST_OR:
        return F.array_contains(F.array(*conditions), F.lit(True))
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return any_of(conditions[:half]) | any_of(conditions[half:])


class Image(NamedTuple):
    """One image of each row of a frame: where it stands, and what it is read into."""

    text: Expression
    """The JSON object as text. A null text gives null fields."""
    columns: Sequence[TableColumn]
    """The table's columns."""
    into: str
    """Name of the struct column that the image is read into."""
