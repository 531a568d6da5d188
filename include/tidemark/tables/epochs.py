"""Epochs of names in Spark: an event's position among renames and drops says which names its image uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl.names import ColumnNames
from tidemark.events import Shape
from tidemark.lake.earlier_schemas import names_with
from tidemark.lake.pending_schema import pending
from tidemark.text import quoted
from tidemark.values.images import NamesByShape


def epoch_of(names: ColumnNames) -> Expression:
    """Return the expression for the epoch of an event, from its column ``position``."""
    places = sorted({renaming.position for renaming in names.renamings}, reverse=True)
    chain = F.when(F.lit(False), 0)
    for place in places:
        chain = chain.when(F.col("position") > place, names.epoch(place, after=True))
    return chain.otherwise(0)


def shape_in_epoch(names: ColumnNames) -> Expression:
    """Return the expression ``<shape id>@<epoch>`` of an event, which identifies the columns of its image."""
    return F.concat("shape", F.lit("@"), epoch_of(names).cast("string"))


def shapes_by_epoch(
    shapes: Mapping[str, Shape], names: ColumnNames, occurring: Iterable[str]
) -> tuple[dict[str, Shape], NamesByShape]:
    """Return the shapes by the ids of ``shape_in_epoch``, and today's names of their columns.

    Args:
        shapes: by their ids.
        names: the names of the table's columns through time.
        occurring: the ids of ``shape_in_epoch`` that occur; other shapes are left out.
    """
    found: dict[str, Shape] = {}
    today: dict[str, dict[str, str]] = {}
    present = set(occurring)
    for shape_id, shape in shapes.items():
        for epoch in range(len(names.renamings) + 1):
            name = f"{shape_id}@{epoch}"
            if name in present:
                found[name] = shape
                renamed = ((column.name, names.today(column.name, epoch)) for column in shape.columns)
                today[name] = {old: new for old, new in renamed if new is not None}
    return found, today


def as_shown(frame: DataFrame, table: Table, snapshot: int) -> DataFrame:
    """Return the rows of a published snapshot with the columns that readers saw; Spark reads them as it wrote them."""
    names = names_with(table, snapshot)
    return frame.select(*(F.col(quoted(written)).alias(name) for written, name in names.items()))


def as_published(frame: DataFrame, table: Table, cut: int) -> DataFrame:
    """Return the rows of a candidate with the columns that the table will have when the cut is published."""
    changes = pending(table, cut)
    if not changes:
        return frame
    names = {field.field_id: field.name for field in table.schema().fields}
    gone = [F.col(quoted(names[number])) for number in changes["drops"]]
    return frame.drop(*gone).withColumnsRenamed({names[int(number)]: new for number, new in changes["names"].items()})
