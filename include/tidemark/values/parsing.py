"""Parsing images with Spark's JSON reader: once for all shapes whose columns are written as JSON of the same kinds.

A shape that has a column and a shape that lacks it are parsed together, because a member that an image lacks is null.
So a table whose columns came and went is parsed in one way, and the plan does not grow with the number of its shapes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import DataType, StringType, StructField, StructType

from tidemark.events import Column, Encoding
from tidemark.text import quoted
from tidemark.values.encodings import is_overflow
from tidemark.values.table_columns import Image, TableColumn, any_of
from tidemark.values.types import is_number, spark_type

_CORRUPT = "tidemark corrupt"

_FLOATING = frozenset({"float", "double"})

_TEXTS = frozenset({Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})

_DIRECT = frozenset({"boolean", "int", "long", "float", "double", "string"})


class Member(NamedTuple):
    """How Spark's JSON reader reads one member of an image."""

    wire: str
    """The type that is tried first."""
    careful: str
    """The type in the second parse, in which no value but a direct one can fail."""
    floating: bool
    """Whether it is read as a floating number, and may be too large for it."""
    direct: bool


def member_of(source: Column, target: TableColumn) -> Member:
    """Return how the member of a column is parsed."""
    tried, direct = is_tried(source, target), is_direct(source, target)
    careful = spark_type(target.type) if direct else _WIRE_TYPES.get(source.encoding, "string")
    wire = spark_type(target.type) if tried else careful
    return Member(wire, careful, floating=target.type in _FLOATING and (tried or direct), direct=direct)


class Parse(NamedTuple):
    """One way to parse an image, shared by shapes."""

    image: Image
    number: int
    """Ordinal among the parses of its image."""
    members: Mapping[str, Member]
    """By their names in the image."""
    ids: Sequence[str]
    """Ids of the shapes."""
    alone: bool
    """Whether this is the only way to parse the image."""

    @property
    def tries(self) -> bool:
        """Whether any column is *tried*, so that an image may be parsed again."""
        return any(member.wire != member.careful for member in self.members.values())

    def parsed(self) -> Iterator[tuple[str, Expression]]:
        """Yield the parsed image, and the image parsed again with the tried columns as text, where a value did not fit.

        Both stand in one projection: each projection that parses copies whole rows, and in one projection Spark
        evaluates equal expressions once.
        """
        parsed = self._json({name: member.wire for name, member in self.members.items()})
        yield self._name("parsed"), parsed
        if self.tries:
            again = self._json({name: member.careful for name, member in self.members.items()})
            yield self._name("again"), F.when(self._misfits(parsed), again)

    def checked(self) -> Iterator[tuple[str, Expression]]:
        """Yield whether the image as a whole is corrupt, and with tried columns the parsed image if all values fit."""
        parsed, again = self._column("parsed"), self._column("again")
        if self.tries:
            direct = {name for name, member in self.members.items() if member.direct}
            faults = [again.getField(_CORRUPT).isNotNull(), *self._overflows(again, direct)]
            yield self._name("sound"), F.when(again.isNull(), parsed)
            yield self._name("corrupt"), F.coalesce(any_of(faults), F.lit(False))
        else:
            yield self._name("corrupt"), self._misfits(parsed)

    def wire(self, name: str) -> Expression:
        """Return a member of the image, of the kind that the last parse gives."""
        wire = self._column("parsed").getField(name)
        if not self.tries:
            return wire
        again = self._column("again")
        return F.when(again.isNull(), wire).otherwise(again.getField(name))

    def direct(self, name: str) -> Expression:
        """Return a member whose value the JSON reader gives."""
        if not self.tries:
            return self._column("parsed").getField(name)
        return F.coalesce(self.sound(name), self.again(name))

    def sound(self, name: str) -> Expression:
        """Return a member as the type that was tried first; null where the image was parsed again."""
        return self._column("sound").getField(name)

    def again(self, name: str) -> Expression:
        """Return a member as the second parse gives it; null where there was none."""
        return self._column("again").getField(name)

    def corrupt(self) -> Expression:
        """Return whether the image as a whole is corrupt."""
        return self._column("corrupt")

    def _name(self, step: str) -> str:
        return f"tidemark {step} {self.image.into} {self.number}"

    def _column(self, step: str) -> Expression:
        return F.col(quoted(self._name(step)))

    def _json(self, kinds: Mapping[str, str]) -> Expression:
        json = _from_json(self.image.text, kinds)
        return json if self.alone else F.when(F.col("shape").isin(*self.ids), json)

    def _misfits(self, parsed: Expression) -> Expression:
        """Return whether the image is not JSON, or a value in it does not fit the type that it was parsed with."""
        corrupt = [parsed.getField(_CORRUPT).isNotNull(), *self._overflows(parsed, self.members)]
        return F.coalesce(any_of(corrupt), F.lit(False))

    def _overflows(self, parsed: Expression, names: Iterable[str]) -> list[Expression]:
        """Return whether numbers are too large, for each of these columns that is of floating numbers."""
        wanted = set(names)
        return [
            is_overflow(parsed.getField(name), self.image.text, name)
            for name, member in self.members.items()
            if member.floating and name in wanted
        ]


def parses_of(image: Image, members: Mapping[str, Mapping[str, Member]]) -> list[Parse]:
    """Return the ways to parse an image: shapes are parsed together unless a member is of different kinds in them.

    Args:
        image: the image.
        members: by shape id: the members that are read.
    """
    found: list[tuple[dict[str, Member], list[str]]] = []
    for shape_id, own in members.items():
        for together, ids in found:
            if all(together.get(name, member) == member for name, member in own.items()):
                together.update(own)
                ids.append(shape_id)
                break
        else:
            found.append((dict(own), [shape_id]))
    return [Parse(image, number, together, ids, alone=len(found) == 1) for number, (together, ids) in enumerate(found)]


def is_direct(source: Column, target: TableColumn) -> bool:
    """Return whether Spark's JSON reader gives the typed value. A value that does not fit makes the record corrupt."""
    if source.encoding is not Encoding.PLAIN:
        return source.encoding in _TEXTS and target.type == "string"
    return target.type == "string" or (target.type in _DIRECT and _json_kind(source.type) == _json_kind(target.type))


def is_tried(source: Column, target: TableColumn) -> bool:
    """Return whether only the value shows how it is written: most likely as JSON of the column's kind, else as text."""
    return source.encoding is Encoding.PLAIN and target.type in _DIRECT and not is_direct(source, target)


def _json_kind(kind: str | None) -> str | None:
    """Return the kind of JSON that values of a type are written as."""
    return "number" if kind is not None and is_number(kind) else kind


@functools.lru_cache(maxsize=256)
def _parsed_type(kind: str) -> DataType:
    """Return a type by its name. The cache asks Spark's JVM once for each."""
    return DataType.fromDDL(kind)


LONG_TEXTS = {"maxStringLen": str(1 << 30)}
"""Spark's JSON reader takes no text of more than 20,000,000 characters by itself; a message may have longer ones."""


def _from_json(image: Expression, kinds: Mapping[str, str]) -> Expression:
    fields = [StructField(name, _parsed_type(kind)) for name, kind in kinds.items()]
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
