"""Reading images with Spark: from the verbatim JSON of a row to typed columns, exactly or not at all.

``values.image_reader`` reads whole batches on Spark's workers. A value that the column's type cannot hold exactly is
*unreadable*: its column is named, and the value is never rounded, truncated or replaced by a default.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from msgspec import UNSET
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.udf import UserDefinedFunction

from tidemark.events import Column, Shape
from tidemark.text import quoted
from tidemark.values.image_reader import UNREADABLE, ImageColumn, ImageReader, field
from tidemark.values.masked_columns import mask_of
from tidemark.values.masking import NO_MASKS, Masks
from tidemark.values.table_columns import Image, TableColumn
from tidemark.values.types import spark_type

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

    The plan has one expression for each image, whatever its columns and shapes.

    Args:
        frame: has a column ``shape``, the id of the shape that the images were delivered under.
        images: the images to read.
        shapes: every shape that occurs, by its id. Columns of the table that a shape lacks are null.
        names: for shapes whose columns have other names in the table: name in the image to name in the table.
        masks: columns of text whose values are masked.

    Returns:
        The frame with the structs. Images of masked tables also leave a column whose name begins with ``tidemark``.
    """
    plain, masked = {}, {}
    for image in images:
        cells = _cells_by_shape(image.columns, shapes, names)
        read = _udf(image, cells)(F.col("shape"), image.text)
        if any(column.name in masks.kinds for column in image.columns):
            own = f"tidemark {image.into}"
            plain[own], masked[image.into] = read, _masked(image, F.col(quoted(own)), cells, masks)
        else:
            plain[image.into] = read
    frame = frame.withColumns(plain)
    return frame.withColumns(masked) if masked else frame


def reader(columns: Sequence[TableColumn], shapes: Mapping[str, Shape], names: NamesByShape) -> ImageReader:
    """Return what reads images without Spark, as ``read_images`` does; masks are not applied."""
    return ImageReader([column.type for column in columns], _cells_by_shape(columns, shapes, names))


def _cells_by_shape(
    columns: Sequence[TableColumn], shapes: Mapping[str, Shape], names: NamesByShape
) -> dict[str, dict[int, ImageColumn]]:
    return {shape_id: _cells(columns, shape_id, shape, names) for shape_id, shape in shapes.items()}


def _cells(columns: Sequence[TableColumn], shape_id: str, shape: Shape, names: NamesByShape) -> dict[int, ImageColumn]:
    """Return how the columns that a shape has are read, by their numbers."""
    known = dict(by_table_name(shape_id, shape, names))
    return {
        number: ImageColumn(known[column.name], column.type)
        for number, column in enumerate(columns)
        if column.name in known
    }


def _udf(image: Image, cells: Mapping[str, Mapping[int, ImageColumn]]) -> Callable[..., Expression]:
    """Return the function that reads an image, on Spark's workers.

    It is declared as one that may give another result each time: else the optimizer would push filters below it, or
    copy it into each of its uses, and images would be read more than once.
    """
    images = ImageReader([column.type for column in image.columns], cells)

    def read(shapes: pa.Array, texts: pa.Array) -> pa.Array:
        gc.freeze()  # as in `spark.on_workers`: Spark collects garbage after each task, among all imported modules
        return images.read(shapes, texts)

    fields = [f"{field(number)}: {spark_type(column.type)}" for number, column in enumerate(image.columns)]
    kind = f"struct<{', '.join([*fields, f'{UNREADABLE}: string'])}>"
    reading: UserDefinedFunction = arrow_udf(read, kind)  # type: ignore[call-overload]  # the hints say its kind
    return reading.asNondeterministic()


def _masked(image: Image, read: Expression, cells: Mapping[str, Mapping[int, ImageColumn]], masks: Masks) -> Expression:
    """Return the struct of a read image with masks: over values that are plain in the image, not over masked ones."""
    values = []
    for number, column in enumerate(image.columns):
        value = read.getField(field(number))
        having = {shape for shape, own in cells.items() if number in own}
        done = [shape for shape in having if cells[shape][number].source.masked is not UNSET]
        if having and len(done) == len(having):
            hidden = value
        elif done:
            hidden = F.when(F.col("shape").isin(*done), value).otherwise(mask_of(masks, column.name)(value))
        else:
            hidden = mask_of(masks, column.name)(value)
        values.append(hidden.alias(field(number)))
    return F.struct(*values, read.getField(UNREADABLE).alias(UNREADABLE))


def by_table_name(shape_id: str, shape: Shape, names: NamesByShape) -> Iterator[tuple[str, Column]]:
    """Yield the columns of a shape with their names in the table, without those that the table dropped."""
    renamed = names.get(shape_id)
    for column in shape.columns:
        if renamed is None:
            yield column.name, column
        elif column.name in renamed:
            yield renamed[column.name], column
