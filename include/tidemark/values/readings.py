"""One way to read an image with Spark's JSON reader.

A column is read in one of three ways:

- *direct*: the JSON reader gives the typed value, because values of the column can only be written as JSON of its kind;
- *tried*: nothing but the value says how it is written. The JSON reader tries the kind of the column's type first. If
  that fails anywhere in the image, the image is parsed again with such columns as text;
- by its encoding: the JSON reader gives text or a number, and ``values.encodings`` makes the typed value.
"""

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
from tidemark.values.verbatim import as_written, is_lost

_CORRUPT = "tidemark corrupt"

_FLOATING = frozenset({"float", "double"})

_TEXTS = frozenset({Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})

_DIRECT = frozenset({"boolean", "int", "long", "float", "double", "string"})


class Reading(NamedTuple):
    """One way to read the images of a table, shared by the shapes whose columns are read alike."""

    image: Image
    number: int
    """Ordinal of the reading among the readings of its image."""
    sources: tuple[Column | None, ...]
    """For each column of the table, the column of the shapes; None where they lack it."""
    ids: list[str]
    """Ids of the shapes."""
    alone: bool
    """Whether this is the only way to read the image."""
    tries: bool
    """Whether any column is *tried*."""

    def _name(self, step: str, number: int | str = "") -> str:
        return f"tidemark {step} {self.image.into} {self.number} {number}"

    def _sources(self) -> Iterator[tuple[int, Column, TableColumn]]:
        for number, (source, target) in enumerate(zip(self.sources, self.image.columns, strict=True)):
            if source is not None:
                yield number, source, target

    def _by_encoding(self) -> Iterator[tuple[int, Column, TableColumn]]:
        """Return the columns that are read by their encoding."""
        return (found for found in self._sources() if not (is_direct(*found[1:]) or is_tried(*found[1:])))

    def parsed(self) -> Iterator[tuple[str, Expression]]:
        """Yield the parsed image, and the image parsed again with the tried columns as text, where a value did not fit.

        Both stand in one projection: each projection that parses copies whole rows, and in one projection Spark
        evaluates equal expressions once.
        """
        parsed = self._json(_wire_type)
        yield self._name("parsed"), parsed
        if self.tries:
            yield self._name("again"), F.when(self._misfits(parsed), self._json(_careful_type))

    def _json(self, type_of: Callable[[Column, TableColumn], str]) -> Expression:
        json = _from_json(self.image.text, [(source, type_of(source, target)) for _, source, target in self._sources()])
        return json if self.alone else F.when(F.col("shape").isin(*self.ids), json)

    def _misfits(self, parsed: Expression) -> Expression:
        """Return whether the image is not JSON, or a value in it does not fit the type that it was parsed with."""
        corrupt = [parsed.getField(_CORRUPT).isNotNull(), *self._overflows(parsed, (is_direct, is_tried))]
        return F.coalesce(any_of(corrupt), F.lit(False))

    def _overflows(self, parsed: Expression, ways: Sequence[Callable[[Column, TableColumn], bool]]) -> list[Expression]:
        """Return whether numbers are too large, for each column of floating numbers that is read in one of the ways."""
        return [
            is_overflow(parsed.getField(source.name), self.image.text, source.name)
            for _, source, target in self._sources()
            if target.type in _FLOATING and any(way(source, target) for way in ways)
        ]

    def prepared(self) -> Iterator[tuple[str, Expression]]:
        """Yield the inputs of the typed values, and whether the image as a whole is corrupt."""
        parsed, again = self._column("parsed"), self._column("again")
        if self.tries:
            faults = [again.getField(_CORRUPT).isNotNull(), *self._overflows(again, (is_direct,))]
            corrupt = F.coalesce(any_of(faults), F.lit(False))
            yield self._name("sound"), F.when(again.isNull(), parsed)
        else:
            corrupt = self._misfits(parsed)
        yield self._name("corrupt"), corrupt
        for number, source, target in self._by_encoding():
            wire = parsed.getField(source.name)
            if self.tries:
                wire = F.when(again.isNull(), wire).otherwise(again.getField(source.name))
            yield self._name("wire", number), prepare(wire, self.image.text, source, target.type)

    def typed(self) -> Iterator[tuple[str, Expression]]:
        """Yield the typed values of the columns that are not direct."""
        sound, again = self._column("sound"), self._column("again")
        for number, source, target in self._sources():
            if is_tried(source, target):
                text = typed(again.getField(source.name), source, target.type)
                yield self._name("value", number), F.coalesce(sound.getField(source.name), text)
        for number, source, target in self._by_encoding():
            wire = self._column("wire", number)
            yield self._name("value", number), typed(wire, source, target.type)
            yield self._name("present", number), wire.isNotNull()

    def values(self) -> Iterator[tuple[int, Expression]]:
        """Yield the number of each column with its typed value."""
        for number, source, target in self._sources():
            if not is_direct(source, target):
                yield number, self._column("value", number).cast(spark_type(target.type))
            elif _may_be_bare(source, target):
                yield number, as_written(self._direct(source), self.image.text, source.name)
            else:
                yield number, self._direct(source)

    def _direct(self, source: Column) -> Expression:
        if not self.tries:
            return self._column("parsed").getField(source.name)
        return F.coalesce(*(self._column(step).getField(source.name) for step in ("sound", "again")))

    def fault(self) -> Expression:
        """Return the name of the first column that does not fit, found by its typed value: no value is read twice."""
        faults, again = [], self._column("again")
        for number, source, target in self._sources():
            if not is_direct(source, target):
                tried = is_tried(source, target)
                present = again.getField(source.name).isNotNull() if tried else self._column("present", number)
                faults.append(F.when(present & self._column("value", number).isNull(), F.lit(source.name)))
            elif _may_be_bare(source, target):
                lost = is_lost(self._direct(source), self.image.text, source.name)
                faults.append(F.when(lost, F.lit(source.name)))
        return F.coalesce(*faults, F.when(self._column("corrupt"), F.lit("the image as a whole")))

    def _column(self, step: str, number: int | str = "") -> Expression:
        return F.col(quoted(self._name(step, number)))


def is_direct(source: Column, target: TableColumn) -> bool:
    """Return whether Spark's JSON reader gives the typed value. A value that does not fit makes the record corrupt."""
    if source.encoding is not Encoding.PLAIN:
        return source.encoding in _TEXTS and target.type == "string"
    return target.type == "string" or (target.type in _DIRECT and _json_kind(source.type) == _json_kind(target.type))


def _may_be_bare(source: Column, target: TableColumn) -> bool:
    """Return whether a text column, which is direct, may hold numbers that are written without quotation marks."""
    return target.type == "string" and source.type != "string"


def _json_kind(kind: str | None) -> str | None:
    """Return the kind of JSON that values of a type are written as."""
    return "number" if kind is not None and is_number(kind) else kind


def is_tried(source: Column, target: TableColumn) -> bool:
    """Return whether only the value shows how it is written: most likely as JSON of the column's kind, else as text."""
    return source.encoding is Encoding.PLAIN and target.type in _DIRECT and not is_direct(source, target)


def _wire_type(source: Column, target: TableColumn) -> str:
    return spark_type(target.type) if is_tried(source, target) else _careful_type(source, target)


def _careful_type(source: Column, target: TableColumn) -> str:
    if is_direct(source, target):
        return spark_type(target.type)
    return _WIRE_TYPES.get(source.encoding, "string")


@functools.lru_cache(maxsize=256)
def _parsed_type(kind: str) -> DataType:
    """Return a type by its name. The cache asks Spark's JVM once for each."""
    return DataType.fromDDL(kind)


LONG_TEXTS = {"maxStringLen": str(1 << 30)}
"""Spark's JSON reader takes no text of more than 20,000,000 characters by itself; a message may have longer ones."""


def _from_json(image: Expression, columns: Sequence[tuple[Column, str]]) -> Expression:
    fields = [StructField(column.name, _parsed_type(kind)) for column, kind in columns]
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    return F.from_json(image, schema, {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE", **LONG_TEXTS})


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
