"""What an image is read into: the columns of a published table, and the names that a read image gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression


class TableColumn(NamedTuple):
    """A column of a published table."""

    name: str
    type: str
    """Iceberg type string."""


def field(number: int) -> str:
    """Name of the field that holds column ``number`` in a read image: free of what column names may contain."""
    return f"c{number}"


def any_of(conditions: Sequence[Expression]) -> Expression:
    """Whether any condition holds; a balanced tree, as Spark Connect refuses plans of more than 100 levels."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    return any_of(conditions[:half]) | any_of(conditions[half:])


class Image(NamedTuple):
    """An image of each row of a frame."""

    text: Expression
    """JSON object; null gives null fields."""
    columns: Sequence[TableColumn]
    """Of the table."""
    into: str
    """Name of the struct column that it is read into."""
