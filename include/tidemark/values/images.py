"""Reading images: from the verbatim JSON of a row to typed columns, by Spark expressions, exactly or not at all.

``values.encodings`` has the expressions. A value that the column's type cannot hold exactly is *unreadable*: its column
is named, and the value is never rounded, truncated or replaced by a default.

This module avoids three traps of Spark, each with a test. ``from_json`` rewrites unquoted numbers that it reads as text
(``1.10`` to ``1.1``, a number of 20 digits to a double). A cast to decimal rounds. A cast to date or timestamp drops
what follows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Column, Encoding, Shape
from tidemark.values.masked_columns import mask_of
from tidemark.values.masking import NO_MASKS, Masks
from tidemark.values.message_types import decimal_declared
from tidemark.values.readings import Reading, is_direct, is_tried
from tidemark.values.table_columns import Image, TableColumn, field
from tidemark.values.types import spark_type

UNREADABLE = "unreadable"
"""Field of a read image: the name of the first column whose value does not fit; null if all fit."""

NamesByShape = Mapping[str, Mapping[str, str]]
"""By shape id: name in the image to name in the table, without the columns that were dropped. Only shapes with columns
that were renamed or dropped since are listed."""

_UNCHANGED: NamesByShape = {}


def read_images(
    frame: DataFrame,
    images: Sequence[Image],
    *,
    shapes: Mapping[str, Shape],
    names: NamesByShape = _UNCHANGED,
    masks: Masks = NO_MASKS,
) -> DataFrame:
    """Read images as structs of ``c0 .. cn`` (their columns in order, with the table's types) and ``unreadable``.

    Each step is a projection of its own, so Spark parses an image once, however many columns it has. A step is one
    projection for all images, because Spark analyzes the whole plan again with every projection that is added.

    Args:
        frame: has a column ``shape``, the id of the shape that the images were delivered under.
        images: the images to read.
        shapes: every shape that occurs, by its id. Columns of the table that a shape lacks are null.
        names: for shapes whose columns have other names in the table: name in the image to name in the table.
        masks: columns of text whose values are masked.

    Returns:
        The frame with the structs, and with intermediate columns, whose names begin with ``tidemark``. Select the
        columns that you want: columns that are not selected cost nothing.
    """
    by_image = {image.into: _readings_of(image, shapes, names) for image in images}
    readings = [reading for found in by_image.values() for reading in found]
    for step in (Reading.parsed, Reading.prepared, Reading.typed):
        frame = frame.withColumns(dict(column for reading in readings for column in step(reading)))
    return frame.withColumns({image.into: _struct(image, by_image[image.into], masks) for image in images})


def _struct(image: Image, readings: Sequence[Reading], masks: Masks) -> Expression:
    found = [dict(reading.values()) for reading in readings]
    values = [
        mask_of(masks, column.name)(_value(found, number, column.type)).alias(field(number))
        for number, column in enumerate(image.columns)
    ]
    faults = F.coalesce(F.lit(None), *(reading.fault() for reading in readings)).cast("string").alias(UNREADABLE)
    return F.struct(*values, faults)


def _value(readings: Iterable[Mapping[int, Expression]], number: int, kind: str) -> Expression:
    values = [values[number] for values in readings if number in values]
    return values[0] if len(values) == 1 else F.coalesce(F.lit(None).cast(spark_type(kind)), *values)


def _readings_of(image: Image, shapes: Mapping[str, Shape], names: NamesByShape) -> list[Reading]:
    found = _readings(shapes, image.columns, names)
    return [
        Reading(image, number, sources, ids, alone=len(found) == 1, tries=_tries(sources, image.columns))
        for number, (sources, ids) in enumerate(found.items())
    ]


def _readings(
    shapes: Mapping[str, Shape], columns: Sequence[TableColumn], names: NamesByShape = _UNCHANGED
) -> Mapping[tuple[Column | None, ...], list[str]]:
    """Return the ids of the shapes that are read in the same way, by what decides it: the source of each table column.

    A declared type decides how a value is read only where Spark's JSON reader types the value itself. Shapes that
    differ in other types only are one reading: the shape of rows with a null, for instance, and of rows without it.
    """
    readings: dict[tuple[Column | None, ...], list[str]] = {}
    by_shape = {shape_id: dict(by_table_name(shape_id, shape, names)) for shape_id, shape in shapes.items()}
    texts = {
        column.name
        for column in columns
        if all(by_name[column.name].type == "string" for by_name in by_shape.values() if column.name in by_name)
    }
    for shape_id, by_name in by_shape.items():
        sources = tuple(_as_read(by_name.get(column.name), column, texts) for column in columns)
        readings.setdefault(sources, []).append(shape_id)
    return readings


def by_table_name(shape_id: str, shape: Shape, names: NamesByShape) -> Iterator[tuple[str, Column]]:
    """Yield the columns of a shape with their names in the table, without those that the table dropped."""
    renamed = names.get(shape_id)
    for column in shape.columns:
        if renamed is None:
            yield column.name, column
        elif column.name in renamed:
            yield renamed[column.name], column


def _as_read(source: Column | None, target: TableColumn, texts: Container[str]) -> Column | None:
    """Return what decides how a column is read: equal for columns that are read alike. ``texts`` hold JSON strings."""
    if source is None:
        return None
    if is_direct(source, target):
        return Column(source.name, None if target.type == "string" and target.name not in texts else target.type)
    parts = decimal_declared(source.type)
    if source.encoding is Encoding.UNSCALED_BASE64 and parts:  # the type gives the scale
        return Column(source.name, f"decimal(38, {parts[1]})", source.encoding)
    return Column(source.name, None, source.encoding)


def _tries(sources: Sequence[Column | None], columns: Sequence[TableColumn]) -> bool:
    return any(source and is_tried(source, target) for source, target in zip(sources, columns, strict=True))
