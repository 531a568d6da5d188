"""Reading images: from the verbatim JSON of a row to typed columns, by Spark expressions, exactly or not at all.

The expressions are those of ``encodings.py``. A value that its column's type cannot hold exactly is *unreadable* and
named, never rounded, truncated or defaulted.

Traps this module steps around, each with a test: ``from_json`` rewrites unquoted numbers on their way to text
(``1.10`` to ``1.1``, 20 digits to a double); casts to decimal round, casts to date and timestamp drop what is behind.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Column, Encoding, Shape
from tidemark.values.readings import Reading, is_direct, is_hoped
from tidemark.values.table_columns import Image, TableColumn, field
from tidemark.values.types import decimal_parts, spark_type

UNREADABLE = "unreadable"
"""Field of a read image: the name of the first column whose value does not fit, else null."""

NamesByShape = Mapping[str, Mapping[str, str]]
"""By shape, for those whose columns were renamed or dropped since: name in the image to name in the table; the columns
that are not there any more are left out."""

_AS_TOLD: NamesByShape = {}


def read_images(
    frame: DataFrame, images: Sequence[Image], *, shapes: Mapping[str, Shape], names: NamesByShape = _AS_TOLD
) -> DataFrame:
    """Read images as structs of ``c0 .. cn`` (their columns in order, with the table's types) and ``unreadable``.

    Each step is a projection of its own, so that Spark parses an image once, however many columns it has; and one for
    all images, because Spark analyzes a plan anew with every step that is put on it.

    Args:
        frame: has a column ``shape``, the id of the shape that the images were delivered under.
        images: those to read.
        shapes: every shape that occurs. Columns of the table that a shape lacks are null.
        names: by shape, where its columns have other names in the table: name in the image to name in the table.

    Returns:
        The frame with the structs, and with columns of the steps between, whose names begin with ``tidemark``: select
        what is wanted, and they cost nothing.
    """
    by_image = {image.into: _readings_of(image, shapes, names) for image in images}
    readings = [reading for found in by_image.values() for reading in found]
    for step in (Reading.parsed, Reading.prepared, Reading.typed):
        frame = frame.withColumns(dict(column for reading in readings for column in step(reading)))
    return frame.withColumns({image.into: _struct(image, by_image[image.into]) for image in images})


def _struct(image: Image, readings: Sequence[Reading]) -> Expression:
    told = [dict(reading.values()) for reading in readings]
    values = [_value(told, number, column.type).alias(field(number)) for number, column in enumerate(image.columns)]
    faults = F.coalesce(F.lit(None), *(reading.fault() for reading in readings)).cast("string").alias(UNREADABLE)
    return F.struct(*values, faults)


def _value(told: Iterable[Mapping[int, Expression]], number: int, kind: str) -> Expression:
    values = [values[number] for values in told if number in values]
    return values[0] if len(values) == 1 else F.coalesce(F.lit(None).cast(spark_type(kind)), *values)


def _readings_of(image: Image, shapes: Mapping[str, Shape], names: NamesByShape) -> list[Reading]:
    found = _readings(shapes, image.columns, names)
    return [
        Reading(image, number, told, ids, alone=len(found) == 1, hopes=_hopes(told, image.columns))
        for number, (told, ids) in enumerate(found.items())
    ]


def _readings(
    shapes: Mapping[str, Shape], columns: Sequence[TableColumn], names: NamesByShape = _AS_TOLD
) -> Mapping[tuple[Column | None, ...], list[str]]:
    """Ids of the shapes that are read alike, by what they tell of each of the table's columns.

    A type that a shape tells says how a value is read only where Spark's JSON reader reads it by itself: shapes that
    differ in nothing else, as those of rows with and without a null, are one reading.
    """
    readings: dict[tuple[Column | None, ...], list[str]] = {}
    by_shape = {shape_id: dict(by_table_name(shape_id, shape, names)) for shape_id, shape in shapes.items()}
    texts = {
        column.name
        for column in columns
        if all(by_name[column.name].type == "string" for by_name in by_shape.values() if column.name in by_name)
    }
    for shape_id, by_name in by_shape.items():
        told = tuple(_as_read(by_name.get(column.name), column, texts) for column in columns)
        readings.setdefault(told, []).append(shape_id)
    return readings


def by_table_name(shape_id: str, shape: Shape, names: NamesByShape) -> Iterator[tuple[str, Column]]:
    """Columns of a shape by their names in the table."""
    renamed = names.get(shape_id)
    for column in shape.columns:
        if renamed is None:
            yield column.name, column
        elif column.name in renamed:
            yield renamed[column.name], column


def _as_read(source: Column | None, target: TableColumn, texts: Container[str]) -> Column | None:
    """What matters of a column for its reading: equal for columns that are read alike; ``texts`` hold JSON strings."""
    if source is None:
        return None
    if is_direct(source, target):
        return Column(source.name, None if target.type == "string" and target.name not in texts else target.type)
    parts = decimal_parts(source.type or "")
    if source.encoding is Encoding.UNSCALED_BASE64 and parts:  # of which the type tells the scale
        return Column(source.name, f"decimal(38, {parts[1]})", source.encoding)
    return Column(source.name, None, source.encoding)


def _hopes(told: Sequence[Column | None], columns: Sequence[TableColumn]) -> bool:
    return any(source and is_hoped(source, target) for source, target in zip(told, columns, strict=True))
