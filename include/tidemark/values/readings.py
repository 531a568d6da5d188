"""One way to read a column of a table, from parsed images to its typed value.

A column is read in one of three ways:

- *direct*: the JSON reader gives the typed value, because values of the column can only be written as JSON of its kind;
- *tried*: nothing but the value says how it is written. The JSON reader tries the kind of the column's type first. If
  that fails anywhere in the image, the image is parsed again with such columns as text;
- by its encoding: the JSON reader gives text or a number, and ``values.encodings`` makes the typed value.

Shapes that have the column as the same member, in the same encoding, share a reading. So the plan grows with the number
of columns, and of ways in which one column was ever written; it does not grow with columns times shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Column
from tidemark.text import quoted
from tidemark.values.encodings import prepare, typed
from tidemark.values.parsing import Parse, is_direct, is_tried
from tidemark.values.table_columns import Image, TableColumn
from tidemark.values.types import spark_type
from tidemark.values.verbatim import as_written, is_lost


class Reading(NamedTuple):
    """One way to read a column, shared by the shapes that have it so."""

    image: Image
    number: int
    """Of the column in the table."""
    way: int
    """Ordinal among the readings of the column."""
    source: Column
    """The column of the shapes, reduced to what decides how it is read."""
    of_shapes: Expression | None
    """Whether an image is of one of the shapes; None if all shapes have the column so."""
    parses: Sequence[Parse]
    """The parses in which images of the shapes are."""

    @property
    def target(self) -> TableColumn:
        """The column of the table."""
        return self.image.columns[self.number]

    @property
    def is_direct(self) -> bool:
        """Whether the JSON reader gives the typed value."""
        return is_direct(self.source, self.target)

    @property
    def is_tried(self) -> bool:
        """Whether only the value shows how it is written."""
        return is_tried(self.source, self.target)

    def prepared(self) -> Iterator[tuple[str, Expression]]:
        """Yield the input of the typed value, for a column that is read by its encoding."""
        if not (self.is_direct or self.is_tried):
            wire = self._member(Parse.wire)
            yield self._name("wire"), prepare(wire, self.image, self.source, self.target.type)

    def typed(self) -> Iterator[tuple[str, Expression]]:
        """Yield the typed value of a column that is not direct."""
        if self.is_tried:
            text = typed(self._member(Parse.again), self.source, self.target.type)
            yield self._name("value"), F.coalesce(self._member(Parse.sound), text)
        elif not self.is_direct:
            wire = self._column("wire")
            yield self._name("value"), typed(wire, self.source, self.target.type)
            yield self._name("present"), wire.isNotNull()

    def value(self) -> Expression:
        """Return the typed value."""
        if not self.is_direct:
            return self._column("value").cast(spark_type(self.target.type))
        value = self._member(Parse.direct)
        return as_written(value, self.image, self.source.name) if self._may_be_bare else value

    def fault(self) -> Expression | None:
        """Return the column's name where its value does not fit, found by the typed value: no value is read twice.

        None for a column of which every value fits, or makes the image as a whole corrupt.
        """
        if not self.is_direct:
            present = self._member(Parse.again).isNotNull() if self.is_tried else self._column("present")
            return F.when(present & self._column("value").isNull(), F.lit(self.source.name))
        if not self._may_be_bare:
            return None
        lost = is_lost(self._member(Parse.direct), self.image, self.source.name)
        return F.when(lost, F.lit(self.source.name))

    @property
    def _may_be_bare(self) -> bool:
        """Whether a text column, which is direct, may hold numbers that are written without quotation marks."""
        return self.target.type == "string" and self.source.type != "string"

    def _member(self, of: Callable[[Parse, str], Expression]) -> Expression:
        members = [of(parse, self.source.name) for parse in self.parses]
        member = members[0] if len(members) == 1 else F.coalesce(*members)
        return member if self.of_shapes is None else F.when(self.of_shapes, member)

    def _name(self, step: str) -> str:
        return f"tidemark {step} {self.image.into} {self.number} {self.way}"

    def _column(self, step: str) -> Expression:
        return F.col(quoted(self._name(step)))
