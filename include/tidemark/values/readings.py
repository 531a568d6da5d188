"""One way to read an image: which columns Spark's JSON reader types by itself, and which are read as text first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import DataType, StringType, StructField, StructType

from tidemark.events import Column, Encoding
from tidemark.text import quoted
from tidemark.values.encodings import is_overflow, prepare, typed
from tidemark.values.table_columns import Image, TableColumn, any_of
from tidemark.values.types import is_number, spark_type
from tidemark.values.verbatim import as_written

_CORRUPT = "tidemark corrupt"

_FLOATING = frozenset({"float", "double"})

_TEXTS = frozenset({Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})

_DIRECT = frozenset({"boolean", "int", "long", "float", "double", "string"})


class Reading(NamedTuple):
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
        return (found for found in self._sources() if not (is_direct(*found[1:]) or is_hoped(*found[1:])))

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
            if target.type in _FLOATING and (is_direct(source, target) or is_hoped(source, target))
        ]
        return F.coalesce(any_of([parsed.getField(_CORRUPT).isNotNull(), *overflows]), F.lit(False))

    def prepared(self) -> Iterator[tuple[str, Expression]]:
        """Yield what the typed values are made of, and whether the image as a whole was corrupt."""
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
        """Yield the typed values of the columns that Spark's JSON reader does not type by itself."""
        sound, again = self._column("sound"), self._column("again")
        for number, source, target in self._sources():
            if is_hoped(source, target):
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
            if not is_direct(source, target):
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
            if not is_direct(source, target):
                hoped = is_hoped(source, target)
                told = again.getField(source.name).isNotNull() if hoped else self._column("is told", number)
                faults.append(F.when(told & self._column("value", number).isNull(), F.lit(source.name)))
        return F.coalesce(*faults, F.when(self._column("corrupt"), F.lit("the image as a whole")))

    def _column(self, step: str, number: int | str = "") -> Expression:
        return F.col(quoted(self._name(step, number)))


def is_direct(source: Column, target: TableColumn) -> bool:
    """Spark's JSON reader gives the typed value itself; a misfit shows in the corrupt record."""
    if source.encoding is not Encoding.PLAIN:
        return source.encoding in _TEXTS and target.type == "string"
    return target.type == "string" or (target.type in _DIRECT and _json_kind(source.type) == _json_kind(target.type))


def _json_kind(kind: str | None) -> str | None:
    """What stands in JSON for values of a type."""
    return "number" if kind is not None and is_number(kind) else kind


def is_hoped(source: Column, target: TableColumn) -> bool:
    """Nothing but the value tells how it is written: most likely as JSON of the column's kind, else it is text."""
    return source.encoding is Encoding.PLAIN and target.type in _DIRECT and not is_direct(source, target)


def _wire_type(source: Column, target: TableColumn) -> str:
    return spark_type(target.type) if is_hoped(source, target) else _careful_type(source, target)


def _careful_type(source: Column, target: TableColumn) -> str:
    if is_direct(source, target):
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
