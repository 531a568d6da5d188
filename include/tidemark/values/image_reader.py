"""Reading images in whole arrays: from the verbatim JSON of rows to typed columns, exactly or not at all.

``values.plain`` is the definition of every value. Arrow parses all images of a batch at once, and ``values.columnar``
brings their values to the columns' types. What Arrow refuses, and what is not surely read so, is read by the plain
reader: a value at a time, so that one odd value costs nothing for the others.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from tidemark.errors import UnreadableValueError
from tidemark.events import Column
from tidemark.values import columnar, small_numbers, typed_values
from tidemark.values.plain import read_value
from tidemark.values.plain_types import Value

UNREADABLE = "unreadable"
"""Field of a read image: the name of the first column whose value does not fit; null if all fit."""

WHOLE = "the image as a whole"
"""What ``UNREADABLE`` says of an image that is no JSON object."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])

_NAMED = re.compile(
    r"JSON parse error: Column\(/(.*)\) (?:changed from \w+ to \w+|was specified twice) in row \d+", re.DOTALL
)


def field(number: int) -> str:
    """Return the field name of column ``number`` in a read image. It has letters and digits only."""
    return f"c{number}"


class ImageColumn(NamedTuple):
    """A column of the table, as the images of a shape have it."""

    source: Column
    """As the messages have it."""
    kind: str
    """The type string of the table's column."""


class ImageReader:
    """Reads images of one table, of the shapes that it is given."""

    def __init__(self, kinds: Sequence[str], shapes: Mapping[str, Mapping[int, ImageColumn]]) -> None:
        """Take what is to be read.

        Args:
            kinds: the type strings of the columns to read.
            shapes: by the ids of shapes: the columns that the shape has, by their numbers in ``kinds``.
        """
        self._fields = [pa.field(field(number), typed_values.arrow_type(kind)) for number, kind in enumerate(kinds)]
        self._fields.append(pa.field(UNREADABLE, pa.string()))
        self._shapes = {shape: _ShapeReader(kinds, cells) for shape, cells in shapes.items()}

    def read(self, shapes: pa.Array, texts: pa.Array) -> pa.StructArray:
        """Return a struct of ``c0 .. cn`` and ``unreadable`` for each image.

        Columns that a shape lacks are null, and so is everything of an image that is null or of an unknown shape.

        Args:
            shapes: the ids of the shapes.
            texts: the images: JSON objects.
        """
        places = np.full(len(texts), -1, dtype=np.int64)
        parts, read = [], 0
        for shape in pc.unique(shapes.filter(pc.is_valid(texts))).to_pylist():
            if shape in self._shapes:
                is_own = pc.and_kleene(pc.equal(shapes, shape), pc.is_valid(texts))
                rows = np.flatnonzero(is_own.fill_null(fill_value=False))
                own = texts if len(rows) == len(texts) else texts.take(pa.array(rows))
                parts.append(self._struct(self._shapes[shape].read(own)))
                places[rows] = np.arange(read, read + len(rows))
                read += len(rows)
        if len(parts) == 1 and read == len(texts):
            return parts[0]
        if not parts:
            return self._struct([pa.nulls(len(texts), each.type) for each in self._fields])
        return self._struct(pa.concat_arrays(parts).take(pa.array(places, mask=places < 0)).flatten())

    def _struct(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        return pa.StructArray.from_arrays(columns, fields=self._fields)


class _ShapeReader:
    """How images of one shape are read."""

    def __init__(self, kinds: Sequence[str], cells: Mapping[int, ImageColumn]) -> None:
        self._kinds = kinds
        self._cells = cells
        self._ways = {number: list(columnar.ways(cell.source, cell.kind)) for number, cell in cells.items()}
        """The ways to read each column; the one that was right last comes first."""

    def read(self, texts: pa.Array) -> list[pa.Array]:
        """Return the columns of images, and the names of what does not fit; no image may be null."""
        batch = _Batch(texts)
        found = self._compiled(batch)
        columns = []
        for number, kind in enumerate(self._kinds):
            if number not in self._cells:
                columns.append(pa.nulls(len(texts), typed_values.arrow_type(kind)))
            elif number not in found:
                columns.append(batch.plainly(self._cells[number], range(len(texts))))
            else:
                columns.append(_completed(self._cells[number], batch, found[number]))
        return [*columns, batch.faults()]

    def _compiled(self, batch: _Batch) -> dict[int, columnar.Read]:
        """Return the columns that Arrow's reader takes whole, each read in the first way in which it does."""
        found: dict[int, columnar.Read] = {}
        for turn in range(max(map(len, self._ways.values()), default=0)):
            wanted = {
                self._cells[number].source.name: (number, ways[turn])
                for number, ways in self._ways.items()
                if number not in found and turn < len(ways)
            }
            parsed = batch.parsed({name: way.wire for name, (_, way) in wanted.items()})
            for name, wire in parsed.items():
                number, way = wanted[name]
                found[number] = batch.with_small_numbers(columnar.read(way, wire), way.wire)
                self._ways[number].insert(0, self._ways[number].pop(turn))
        return found


def _completed(cell: ImageColumn, batch: _Batch, read: columnar.Read) -> pa.Array:
    """Return the values of a column, the doubtful ones read by the plain reader."""
    if read.doubtful is None:
        return read.values
    rows = np.flatnonzero(read.doubtful).tolist()
    return pc.replace_with_mask(read.values, read.doubtful, batch.plainly(cell, rows))


class _Batch:
    """Images of one shape."""

    def __init__(self, texts: pa.Array) -> None:
        self._texts = texts
        self._objects: dict[int, Mapping[str, msgspec.Raw] | None] = {}
        self._faults: dict[int, str] = {}

    def parsed(self, wires: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
        """Return members of the images as Arrow's reader types them, without those that it refuses in any image.

        A decimal is null in images with small numbers.
        """
        if not self._are_objects:
            return {}
        decimals = {name: wire for name, wire in wires.items() if pa.types.is_decimal(wire)}
        if not decimals or self._small is None:
            return self._parsed(wires, self._lines)
        without = _joined(pc.if_else(self._small, "{}", self._texts))
        others = {name: wire for name, wire in wires.items() if name not in decimals}
        return self._parsed(others, self._lines) | self._parsed(decimals, without)

    def with_small_numbers(self, read: columnar.Read, wire: pa.DataType) -> columnar.Read:
        """Return values that were read as ``wire``; decimals are doubtful where the image has small numbers."""
        if not pa.types.is_decimal(wire) or self._small is None:
            return read
        return read._replace(doubtful=self._small if read.doubtful is None else pc.or_(read.doubtful, self._small))

    def _parsed(self, wires: Mapping[str, pa.DataType], lines: pa.Buffer) -> dict[str, pa.Array]:
        left = dict(wires)
        while left:
            try:
                table = _parse(lines, left)
            except pa.ArrowInvalid as error:
                if named := _NAMED.fullmatch(str(error)):
                    left.pop(named[1])
                    continue
                if len(left) == 1 or str(error).startswith("JSON parse error"):
                    return {}
                names = list(left)
                halves = names[: len(names) // 2], names[len(names) // 2 :]
                return {
                    k: v for half in halves for k, v in self._parsed({name: left[name] for name in half}, lines).items()
                }
            if table.num_rows != len(self._texts):
                return {}
            return {name: table.column(name).combine_chunks() for name in left}
        return {}

    @functools.cached_property
    def _are_objects(self) -> bool:
        """Whether each image begins as an object does, so that as many objects as images are one in each."""
        return bool(pc.all(pc.starts_with(self._texts, "{")).as_py())

    @functools.cached_property
    def _lines(self) -> pa.Buffer:
        """The images, one behind the other. Arrow's reader finds where each ends, because each is a JSON object."""
        return _joined(self._texts)

    @functools.cached_property
    def _small(self) -> pa.Array | None:
        """Which images may hold a number with a negative exponent; None for none."""
        return small_numbers.images_with(self._texts, self._lines)

    def plainly(self, cell: ImageColumn, rows: Iterable[int]) -> pa.Array:
        """Return the values of a column in some images by the plain reader, null where a value does not fit."""
        return typed_values.array(cell.kind, [self._value(cell, row) for row in rows])

    def _value(self, cell: ImageColumn, row: int) -> Value:
        members = self._members(row)
        if members is None:
            self._faults.setdefault(row, WHOLE)
            return None
        name, declared, encoding = cell.source.name, cell.source.type, cell.source.encoding
        if (raw := members.get(name)) is None:
            return None
        try:
            return read_value(bytes(raw), Column(name, cell.kind, encoding), declared)
        except UnreadableValueError:
            self._faults.setdefault(row, name)
            return None

    def _members(self, row: int) -> Mapping[str, msgspec.Raw] | None:
        if row not in self._objects:
            try:
                self._objects[row] = _members.decode(self._texts[row].as_py())
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                self._objects[row] = None
        return self._objects[row]

    def faults(self) -> pa.Array:
        """Return the name of the first column whose value does not fit, or ``WHOLE``; columns were read in order."""
        if not self._faults:
            return pa.nulls(len(self._texts), pa.string())
        return pa.array([self._faults.get(row) for row in range(len(self._texts))], pa.string())


def _joined(texts: pa.Array) -> pa.Buffer:
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return pc.binary_join(whole, "\n").buffers()[2]


def _parse(lines: pa.Buffer, wires: Mapping[str, pa.DataType]) -> pa.Table:
    schema = pa.schema(list(wires.items()))
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    one_block = arrow_json.ReadOptions(use_threads=False, block_size=max(lines.size, 1))
    return arrow_json.read_json(pa.BufferReader(lines), one_block, options)
