"""Counts values beyond the bounds of their types in batches of rows. Workers import this module."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.lake.changed_rows import ChangedFile, FileReading, read
from tidemark.values.bounds import Bounds

PLACE = "position"
"""Column of the rows: their position."""

KEY = "k"
"""With a number, a column of the rows' key."""


class First(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The first row with a value beyond its bounds."""

    position: str
    """Empty where no such row has one: another writer's rows."""
    key: list[str]
    """The values of its key, as text."""


class Beyond(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in some rows."""

    counts: list[int]
    """For each column with bounds, the number of its values that are beyond them."""
    first: First | None = None


def bounded_columns(bounds: Sequence[Bounds]) -> list[str]:
    """Return the names that the columns with bounds have in the rows."""
    return [f"c{number}" for number in range(len(bounds))]


def in_files(task: bytes, *, reading: FileReading, bounds: Sequence[Bounds]) -> bytes:
    """Return what is found in files: takes a JSON array of ``ChangedFile``, and returns ``Beyond`` as JSON."""
    files = msgspec.json.decode(task, type=list[ChangedFile])
    return msgspec.json.encode(in_batches((batch for file in files for batch in read(reading, file)), bounds))


def in_rows(batches: Iterable[pa.RecordBatch], *, bounds: Sequence[Bounds]) -> Iterator[pa.RecordBatch]:
    """Yield what is found in rows of Spark, as one row: ``Beyond`` as JSON."""
    done = msgspec.json.encode(in_batches(batches, bounds))
    yield pa.record_batch({"done": pa.array([done], pa.binary())})


def in_batches(batches: Iterable[pa.RecordBatch], bounds: Sequence[Bounds]) -> Beyond:
    """Return what is found in batches of rows."""
    return merged([_in_batch(batch, bounds) for batch in batches], len(bounds))


def merged(parts: Iterable[Beyond], columns: int) -> Beyond:
    """Return what was found in several parts of the rows."""
    counts, firsts = [0] * columns, []
    for part in parts:
        counts = [one + other for one, other in zip(counts, part.counts, strict=True)]
        firsts += [part.first] if part.first else []
    return Beyond(counts=counts, first=min(firsts, key=lambda each: (not each.position, each), default=None))


def _in_batch(batch: pa.RecordBatch, bounds: Sequence[Bounds]) -> Beyond:
    columns = bounded_columns(bounds)
    outside = [_outside(batch.column(name), each) for name, each in zip(columns, bounds, strict=True)]
    counts = [pc.sum(each).as_py() or 0 for each in outside]
    if not any(counts):
        return Beyond(counts=counts)
    rows = batch.filter(functools.reduce(pc.or_, outside))
    place = max(0, pc.index(rows.column(PLACE), pc.min(rows.column(PLACE))).as_py())
    keys = [name for name in rows.schema.names if name.startswith(KEY)]
    texts = [_text(rows.column(name).slice(place, 1)) for name in keys]
    return Beyond(counts=counts, first=First(position=rows.column(PLACE)[place].as_py() or "", key=texts))


def _outside(values: pa.Array, bounds: Bounds) -> pa.Array:
    """Return for each value whether it is beyond its bounds; null is not."""
    if bounds.length is not None:
        beyond = pc.greater(pc.utf8_length(values), bounds.length)
    elif bounds.labels is not None:
        numbers = [str(number) for number in range(len(bounds.labels) + 1)]
        known = pc.utf8_lower(pa.array(["", *bounds.labels, *numbers], values.type))
        beyond = pc.and_(pc.invert(pc.is_in(pc.utf8_lower(values), known)), pc.is_valid(values))
        if bounds.joined:
            beyond = pc.and_(beyond, pc.invert(pc.match_substring(values, ",")))
    else:
        low, high = (_bound(each or 0, values.type) for each in (bounds.low, bounds.high))
        wide = values.cast(low.type)
        beyond = pc.or_(pc.less(wide, low), pc.greater(wide, high))
    return pc.fill_null(beyond, False)  # noqa: FBT003  a value


def _bound(number: int, kind: pa.DataType) -> pa.Scalar:
    """Return a bound in a type that holds every number of a column; none of a column of integers is beyond a long."""
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(number), pa.decimal256(76, kind.scale))
    if pa.types.is_floating(kind):
        return pa.scalar(float(number), pa.float64())
    return pa.scalar(min(max(number, -(2**63)), 2**63 - 1), pa.int64())


def _text(value: pa.Array) -> str:
    """Return the only value of an array as text."""
    kind = value.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return str(value[0].as_py().hex()) if value[0].is_valid else "null"
    return str(value.cast(pa.string())[0].as_py()) if value[0].is_valid else "null"
