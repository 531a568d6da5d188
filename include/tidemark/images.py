"""Reading images: from the verbatim JSON of a row to typed columns, by Spark expressions, exactly or not at all.

The expressions are those of ``encodings.py``. A value that its column's type cannot hold exactly is *unreadable* and
named, never rounded, truncated or defaulted.

Traps this module steps around, each with a test: ``from_json`` rewrites unquoted numbers on their way to text
(``1.10`` to ``1.1``, 20 digits to a double); casts to decimal round, casts to date and timestamp drop what is behind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import DataType, StringType, StructField, StructType

from tidemark.encodings import as_written, is_overflow, prepare, typed
from tidemark.events import Column, Encoding, Shape
from tidemark.lake import quoted
from tidemark.types import decimal_parts, is_number, spark_type

UNREADABLE = "unreadable"
"""Field of a read image: the name of the first column whose value does not fit, else null."""

_CORRUPT = "tidemark corrupt"
_FLOATING = frozenset({"float", "double"})
_TEXTS = frozenset({Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})
_DIRECT = frozenset({"boolean", "int", "long", "float", "double", "string"})


Names = Mapping[str, Mapping[str, str]]
"""By shape, for those whose columns were renamed or dropped since: name in the image to name in the table; the columns
that are not there any more are left out."""
_AS_TOLD: Names = {}


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


def read_images(
    frame: DataFrame, images: Sequence[Image], *, shapes: Mapping[str, Shape], names: Names = _AS_TOLD
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
    for step in (_Reading.parsed, _Reading.prepared, _Reading.typed):
        frame = frame.withColumns(dict(column for reading in readings for column in step(reading)))
    return frame.withColumns({image.into: _struct(image, by_image[image.into]) for image in images})


def _struct(image: Image, readings: Sequence[_Reading]) -> Expression:
    told = [dict(reading.values()) for reading in readings]
    values = [_value(told, number, column.type).alias(field(number)) for number, column in enumerate(image.columns)]
    faults = F.coalesce(F.lit(None), *(reading.fault() for reading in readings)).cast("string").alias(UNREADABLE)
    return F.struct(*values, faults)


def _value(told: Iterable[Mapping[int, Expression]], number: int, kind: str) -> Expression:
    values = [values[number] for values in told if number in values]
    return values[0] if len(values) == 1 else F.coalesce(F.lit(None).cast(spark_type(kind)), *values)


def _readings_of(image: Image, shapes: Mapping[str, Shape], names: Names) -> list[_Reading]:
    found = _readings(shapes, image.columns, names)
    return [
        _Reading(image, number, told, ids, alone=len(found) == 1, hopes=_hopes(told, image.columns))
        for number, (told, ids) in enumerate(found.items())
    ]


def _readings(
    shapes: Mapping[str, Shape], columns: Sequence[TableColumn], names: Names = _AS_TOLD
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


def by_table_name(shape_id: str, shape: Shape, names: Names) -> Iterator[tuple[str, Column]]:
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
    if _is_direct(source, target):
        return Column(source.name, None if target.type == "string" and target.name not in texts else target.type)
    parts = decimal_parts(source.type or "")
    if source.encoding is Encoding.UNSCALED_BASE64 and parts:  # of which the type tells the scale
        return Column(source.name, f"decimal(38, {parts[1]})", source.encoding)
    return Column(source.name, None, source.encoding)


class _Reading(NamedTuple):
    """One way to read the images of a table: the columns as some of its shapes tell them."""

    image: Image
    number: int
    told: tuple[Column | None, ...]
    ids: list[str]
    alone: bool
    """Whether there is no other way to read the image."""
    hopes: bool
    """Whether any value is read by the JSON kind that its type suggests, before it is read as text."""

    def _name(self, step: str, number: int | str = "") -> str:
        return f"tidemark {step} {self.image.into} {self.number} {number}"

    def _sources(self) -> Iterator[tuple[int, Column, TableColumn]]:
        for number, (source, target) in enumerate(zip(self.told, self.image.columns, strict=True)):
            if source is not None:
                yield number, source, target

    def _unread(self) -> Iterator[tuple[int, Column, TableColumn]]:
        """The sources of which the parsed image holds something else than the typed value."""
        return (found for found in self._sources() if not (_is_direct(*found[1:]) or _is_hoped(*found[1:])))

    def parsed(self) -> Iterator[tuple[str, Expression]]:
        """The parsed image, and the one with every untyped value as text where one was not of the kind hoped for.

        Both in one projection, in which Spark parses once what stands in it twice: one that parses copies whole rows.
        """
        parsed = self._json(_wire_type)
        yield self._name("parsed"), parsed
        if self.hopes:
            yield self._name("again"), F.when(self._misfits(parsed), self._json(_careful_type))

    def _json(self, type_of: Callable[[Column, TableColumn], str]) -> Expression:
        told = [(source, type_of(source, target)) for _, source, target in self._sources()]
        json = _from_json(self.image.text, told)
        return json if self.alone else F.when(F.col("shape").isin(*self.ids), json)

    def _misfits(self, parsed: Expression) -> Expression:
        """Whether the image is no JSON, or a value in it does not fit the type that it was read with."""
        overflows = [
            is_overflow(parsed.getField(source.name), self.image.text)
            for _, source, target in self._sources()
            if target.type in _FLOATING and (_is_direct(source, target) or _is_hoped(source, target))
        ]
        return F.coalesce(any_of([parsed.getField(_CORRUPT).isNotNull(), *overflows]), F.lit(False))

    def prepared(self) -> Iterator[tuple[str, Expression]]:
        parsed, again = self._column("parsed"), self._column("again")
        if self.hopes:
            corrupt = F.coalesce(again.getField(_CORRUPT).isNotNull(), F.lit(False))
            yield self._name("sound"), F.when(again.isNull(), parsed)
        else:
            corrupt = self._misfits(parsed)
        yield self._name("corrupt"), corrupt
        for number, source, target in self._unread():
            wire = parsed.getField(source.name)
            if self.hopes:
                wire = F.when(again.isNull(), wire).otherwise(again.getField(source.name))
            yield self._name("wire", number), prepare(wire, self.image.text, source, target.type)

    def typed(self) -> Iterator[tuple[str, Expression]]:
        sound, again = self._column("sound"), self._column("again")
        for number, source, target in self._sources():
            if _is_hoped(source, target):
                text = typed(again.getField(source.name), source, target.type)
                yield self._name("value", number), F.coalesce(sound.getField(source.name), text)
        for number, source, target in self._unread():
            wire = self._column("wire", number)
            yield self._name("value", number), typed(wire, source, target.type)
            yield self._name("is told", number), wire.isNotNull()

    def values(self) -> Iterator[tuple[int, Expression]]:
        """The typed values by the numbers of their columns."""
        parsed, sound, again = (self._column(step) for step in ("parsed", "sound", "again"))
        for number, source, target in self._sources():
            if not _is_direct(source, target):
                yield number, self._column("value", number).cast(spark_type(target.type))
                continue
            value = parsed.getField(source.name)
            if self.hopes:
                value = F.coalesce(sound.getField(source.name), again.getField(source.name))
            is_text = target.type != "string" or source.type == "string"
            yield number, value if is_text else as_written(value, self.image.text, source.name)

    def fault(self) -> Expression:
        """The first column that does not fit; asked of the values when they are there, so that none is read twice."""
        faults, again = [], self._column("again")
        for number, source, target in self._sources():
            if not _is_direct(source, target):
                hoped = _is_hoped(source, target)
                told = again.getField(source.name).isNotNull() if hoped else self._column("is told", number)
                faults.append(F.when(told & self._column("value", number).isNull(), F.lit(source.name)))
        return F.coalesce(*faults, F.when(self._column("corrupt"), F.lit("the image as a whole")))

    def _column(self, step: str, number: int | str = "") -> Expression:
        return F.col(quoted(self._name(step, number)))


def _hopes(told: Sequence[Column | None], columns: Sequence[TableColumn]) -> bool:
    return any(source and _is_hoped(source, target) for source, target in zip(told, columns, strict=True))


def _is_direct(source: Column, target: TableColumn) -> bool:
    """Spark's JSON reader gives the typed value itself; a misfit shows in the corrupt record."""
    if source.encoding is not Encoding.PLAIN:
        return source.encoding in _TEXTS and target.type == "string"
    return target.type == "string" or (target.type in _DIRECT and _json_kind(source.type) == _json_kind(target.type))


def _json_kind(kind: str | None) -> str | None:
    """What stands in JSON for values of a type."""
    return "number" if kind is not None and is_number(kind) else kind


def _is_hoped(source: Column, target: TableColumn) -> bool:
    """Nothing but the value tells how it is written: most likely as JSON of the column's kind, else it is text."""
    return source.encoding is Encoding.PLAIN and target.type in _DIRECT and not _is_direct(source, target)


def _wire_type(source: Column, target: TableColumn) -> str:
    return spark_type(target.type) if _is_hoped(source, target) else _careful_type(source, target)


def _careful_type(source: Column, target: TableColumn) -> str:
    if _is_direct(source, target):
        return spark_type(target.type)
    return _WIRE_TYPES.get(source.encoding, "string")


@functools.lru_cache(maxsize=256)
def _parsed_type(kind: str) -> DataType:
    """A type by its name: Spark's JVM is asked once for each."""
    return DataType.fromDDL(kind)


def _from_json(image: Expression, told: Sequence[tuple[Column, str]]) -> Expression:
    fields = [StructField(column.name, _parsed_type(kind)) for column, kind in told]
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    return F.from_json(image, schema, {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"})


_WIRE_TYPES: Mapping[Encoding, str] = {
    **dict.fromkeys(
        (
            Encoding.EPOCH_SECONDS,
            Encoding.EPOCH_MILLIS,
            Encoding.EPOCH_MICROS,
            Encoding.EPOCH_NANOS,
            Encoding.EPOCH_DAYS,
            Encoding.MILLIS_OF_DAY,
            Encoding.MICROS_OF_DAY,
            Encoding.NANOS_OF_DAY,
        ),
        "bigint",
    ),
    Encoding.SCALED_STRUCT: "struct<scale int, value string>",
}
