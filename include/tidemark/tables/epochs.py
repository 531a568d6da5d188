"""Epochs in Spark: which names the columns of an event's image have, by its position among renames and drops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.ddl.names import ColumnNames
from tidemark.events import Shape
from tidemark.lake.pending_schema import pending
from tidemark.text import quoted
from tidemark.values.images import NamesByShape


def epoch_of(names: ColumnNames) -> Expression:
    """The epoch of an event, by its ``position``."""
    places = sorted({told.position for told in names.renamings}, reverse=True)
    chain = F.when(F.lit(False), 0)
    for place in places:
        chain = chain.when(F.col("position") > place, names.epoch(place, after=True))
    return chain.otherwise(0)


def shape_in_epoch(names: ColumnNames) -> Expression:
    """Id of an event's shape and its epoch: what tells which columns the image has."""
    return F.concat("shape", F.lit("@"), epoch_of(names).cast("string"))


def shapes_by_epoch(
    shapes: Mapping[str, Shape], names: ColumnNames, occurring: Iterable[str]
) -> tuple[dict[str, Shape], NamesByShape]:
    """The shapes under the ids of ``shape_in_epoch``, and what their columns are called today."""
    found: dict[str, Shape] = {}
    today: dict[str, dict[str, str]] = {}
    present = set(occurring)
    for shape_id, shape in shapes.items():
        for epoch in range(len(names.renamings) + 1):
            name = f"{shape_id}@{epoch}"
            if name in present:
                found[name] = shape
                told = ((column.name, names.today(column.name, epoch)) for column in shape.columns)
                today[name] = {old: new for old, new in told if new is not None}
    return found, today


def as_published(frame: DataFrame, table: Table, cut: int) -> DataFrame:
    """A candidate with the columns that it will have when its cut is published."""
    told = pending(table, cut)
    if not told:
        return frame
    names = {field.field_id: field.name for field in table.schema().fields}
    gone = [F.col(quoted(names[number])) for number in told["drops"]]
    return frame.drop(*gone).withColumnsRenamed({names[int(number)]: new for number, new in told["names"].items()})
