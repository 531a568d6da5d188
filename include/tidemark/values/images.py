"""Reading images: from the verbatim JSON of a row to typed columns, by Spark expressions, exactly or not at all.

``values.encodings`` has the expressions. A value that the column's type cannot hold exactly is *unreadable*: its column
is named, and the value is never rounded, truncated or replaced by a default.

This module avoids three traps of Spark, each with a test. ``from_json`` rewrites unquoted numbers that it reads as text
(``1.10`` to ``1.1``, a number of 20 digits to a double). A cast to decimal rounds. A cast to date or timestamp drops
what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Column, Encoding, Shape
from tidemark.values.masked_columns import mask_of
from tidemark.values.masking import NO_MASKS, Masks
from tidemark.values.message_types import decimal_declared
from tidemark.values.parsing import Member, Parse, is_direct, member_of, parses_of
from tidemark.values.readings import Reading
from tidemark.values.table_columns import Image, TableColumn, field
from tidemark.values.types import spark_type
from tidemark.values.verbatim import may_be_bare

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
    The plan grows with the columns and with the ways in which they are written, not with the shapes.

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
    by_image = {image.into: ways(image, shapes, names) for image in images}
    every = list(by_image.values())
    bare = {image.bare: may_be_bare(image.text) for image in images}
    frame = frame.withColumns(bare | dict(column for way in every for parse in way.parses for column in parse.parsed()))
    checked = [column for way in every for parse in way.parses for column in parse.checked()]
    frame = frame.withColumns(dict([*checked, *_step(Reading.prepared, every)]))
    if typed := dict(_step(Reading.typed, every)):
        frame = frame.withColumns(typed)
    return frame.withColumns({into: way.struct(masks) for into, way in by_image.items()})


class Ways(NamedTuple):
    """All ways to parse an image and to read its columns."""

    image: Image
    parses: Sequence[Parse]
    readings: Mapping[int, Sequence[Reading]]
    """By the number of the column; of columns that a shape has."""

    def struct(self, masks: Masks) -> Expression:
        """Return the struct of the typed and masked values, and of the name of the first column that does not fit."""
        values = [
            self._masked(number, each.type, mask_of(masks, each.name)).alias(field(number))
            for number, each in enumerate(self.image.columns)
        ]
        faults = [fault for each in self.readings.values() for way in each if (fault := way.fault()) is not None]
        faults += [F.when(parse.corrupt(), F.lit("the image as a whole")) for parse in self.parses]
        return F.struct(*values, F.coalesce(F.lit(None), *faults).cast("string").alias(UNREADABLE))

    def _masked(self, number: int, kind: str, mask: Callable[[Expression], Expression]) -> Expression:
        """Return the masked value of a column, whether it is plain in the image or was masked before."""
        readings = self.readings.get(number, ())
        done = [reading.value() for reading in readings if reading.source.masked is not UNSET]
        plain = [reading.value() for reading in readings if reading.source.masked is UNSET]
        if not done:
            return mask(_first(plain, kind))
        return _first([*done, mask(_first(plain, kind))] if plain else done, kind)


def _first(values: Sequence[Expression], kind: str) -> Expression:
    """Return the value that is not null; at most one is."""
    return values[0] if len(values) == 1 else F.coalesce(F.lit(None).cast(spark_type(kind)), *values)


def ways(image: Image, shapes: Mapping[str, Shape], names: NamesByShape) -> Ways:
    """Return the ways to read an image.

    A declared type decides how a value is read only where Spark's JSON reader types the value itself. Columns that
    differ in other types only are read alike: in the shape of rows with a null, for instance, and of rows without.
    """
    by_shape = {shape_id: dict(by_table_name(shape_id, shape, names)) for shape_id, shape in shapes.items()}
    sources: dict[int, dict[Column, list[str]]] = {}
    members: dict[str, dict[str, Member]] = {shape_id: {} for shape_id in shapes}
    for number, column in enumerate(image.columns):
        having = {shape_id: known[column.name] for shape_id, known in by_shape.items() if column.name in known}
        is_text = all(each.type == "string" for each in having.values())
        for shape_id, each in having.items():
            source = _as_read(each, column, is_text=is_text)
            sources.setdefault(number, {}).setdefault(source, []).append(shape_id)
            members[shape_id][source.name] = member_of(source, column)
    parses = parses_of(image, members)
    conditions: dict[tuple[str, ...], Expression] = {}
    readings: dict[int, list[Reading]] = {}
    for number, by_source in sources.items():
        for way, (source, ids) in enumerate(by_source.items()):
            if (key := tuple(ids)) not in conditions:  # made once for all columns that came or went together
                conditions[key] = F.col("shape").isin(*ids)
            of_shapes = None if len(ids) == len(shapes) else conditions[key]
            among = [parse for parse in parses if not set(ids).isdisjoint(parse.ids)]
            readings.setdefault(number, []).append(Reading(image, number, way, source, of_shapes, among))
    return Ways(image, parses, readings)


def _step(
    step: Callable[[Reading], Iterator[tuple[str, Expression]]], ways: Sequence[Ways]
) -> Iterator[tuple[str, Expression]]:
    for way in ways:
        for readings in way.readings.values():
            for reading in readings:
                yield from step(reading)


def by_table_name(shape_id: str, shape: Shape, names: NamesByShape) -> Iterator[tuple[str, Column]]:
    """Yield the columns of a shape with their names in the table, without those that the table dropped."""
    renamed = names.get(shape_id)
    for column in shape.columns:
        if renamed is None:
            yield column.name, column
        elif column.name in renamed:
            yield renamed[column.name], column


def _as_read(source: Column, target: TableColumn, *, is_text: bool) -> Column:
    """Return what decides how a column is read: equal for columns that are read alike.

    ``is_text`` says that every shape declares JSON strings.
    """
    if is_direct(source, target):
        kind = None if target.type == "string" and not is_text and source.masked is UNSET else target.type
        return Column(source.name, kind, masked=source.masked)
    parts = decimal_declared(source.type)
    if source.encoding is Encoding.UNSCALED_BASE64 and parts:  # the type gives the scale
        return Column(source.name, f"decimal(38, {parts[1]})", source.encoding, source.masked)
    return Column(source.name, None, source.encoding, source.masked)
