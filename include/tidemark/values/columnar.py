"""Compiled readers of column values: whole arrays, for what is surely read as ``values.plain`` would read it.

Arrow's JSON reader refuses what does not fit the type that it is to read, except for decimals (``_decimal``, and
``values.small_numbers``); it never rounds. Arrow and NumPy bring its values to the column's type. Each reader says
which values it is sure of. The others are left to the plain reader, which is the definition. So no reader here has to
know every way to write a value, only the common ones.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.events import Column, Encoding
from tidemark.values import base64_arrays, columnar_times
from tidemark.values.columnar_texts import Typed, Way, between, matching
from tidemark.values.message_types import decimal_declared
from tidemark.values.typed_values import arrow_type


class Read(NamedTuple):
    """Values of a column that were read in one of its ways."""

    values: pa.Array
    doubtful: pa.Array | None
    """Which values are to be read by the plain reader; None for none."""


def read(way: Way, wire: pa.Array) -> Read:
    """Return the values of a column, and which are doubtful: a value is never lost, whatever a reader says of it."""
    values, sure = way.typed(wire)
    if sure is None and values.null_count == wire.null_count:
        return Read(values, None)
    doubtful = pc.and_(pc.is_valid(wire), pc.is_null(values))
    if sure is not None:
        doubtful = pc.or_(doubtful, pc.and_(pc.is_valid(wire), pc.invert(sure.fill_null(fill_value=False))))
    return Read(values, doubtful if pc.any(doubtful, min_count=0).as_py() else None)


def ways(column: Column, kind: str) -> tuple[Way, ...]:
    """Return the ways to read a column, the likeliest first; empty where only the plain reader can.

    Args:
        column: as the messages have it. The type of an unscaled number gives its scale.
        kind: the type string of the table's column.
    """
    encoding = column.encoding
    if encoding is Encoding.UNSCALED_BASE64:
        return _unscaled_ways(column, kind)
    if encoding is Encoding.BASE64:
        return (Way(pa.string(), _base64),) if kind == "binary" else ()
    if encoding in columnar_times.COUNTING or (encoding in _WRITTEN and kind in columnar_times.KINDS):
        return columnar_times.ways(encoding, kind)
    return _written_ways(encoding, kind) if encoding in _WRITTEN else ()


_WRITTEN = frozenset({Encoding.PLAIN, Encoding.TEXT, Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS})


def _written_ways(encoding: Encoding, kind: str) -> tuple[Way, ...]:
    """Return the ways of values that are written as their kind of JSON, or as its text."""
    if kind == "string":
        return (Way(pa.string(), Typed),)
    if kind == "binary":
        return (Way(pa.string(), _utf8 if encoding is Encoding.TEXT else _base64),)
    if decimal_declared(kind):
        # Arrow takes a decimal with quotation marks and without. One that it refuses may be the only one.
        return Way(_wide_enough(kind), partial(_decimal, kind=kind)), Way(pa.string(), partial(matching, kind=kind))
    text = Way(pa.string(), _boolean if kind == "boolean" else partial(matching, kind=kind))
    own = _OWN_KINDS[kind]
    return (text, own) if encoding is Encoding.TEXT else (own, text)


def _wide_enough(kind: str) -> pa.DataType:
    """Return the type to read decimals as: one that holds as many digits as the type has, with the scale behind them.

    Arrow's reader bounds the digits that are written, then adds the zeros of the scale. In 128 bits the product of many
    digits and a large scale would be another number, and nothing says so.
    """
    target = arrow_type(kind)
    return target if target.precision + target.scale <= 38 else pa.decimal256(target.precision, target.scale)


def _decimal(numbers: pa.Array, kind: str) -> Typed:
    """Read decimals. One that is written with few enough digits may have too many in front of the point."""
    target = arrow_type(kind)
    limit = Decimal(10) ** (target.precision - target.scale)
    least, most = pc.min_max(numbers).as_py().values()
    if most is None or (-limit < least and most < limit):
        return Typed(numbers.cast(target))
    bound = pa.scalar(limit, pa.decimal256(76, target.scale))
    sure = pc.less(pc.abs(numbers.cast(bound.type)), bound)
    return Typed(pc.if_else(sure, numbers, None).cast(target), sure)


def _integer(numbers: pa.Array, kind: str) -> Typed:
    if kind == "long":
        return Typed(numbers)
    bits = arrow_type(kind).bit_width
    sure = between(numbers, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return Typed(pc.if_else(sure, numbers, None).cast(arrow_type(kind)), sure)


def _floating(numbers: pa.Array) -> Typed:
    """Read numbers. One that is not finite may be too large for the type."""
    return Typed(numbers, pc.is_finite(numbers))


def _boolean(texts: pa.Array) -> Typed:
    yes, no = pc.equal(texts, "true"), pc.equal(texts, "false")
    return Typed(yes, pc.or_(yes, no))


_OWN_KINDS: Mapping[str, Way] = {
    "boolean": Way(pa.bool_(), Typed),
    "int": Way(pa.int64(), partial(_integer, kind="int")),
    "long": Way(pa.int64(), partial(_integer, kind="long")),
    "float": Way(pa.float32(), _floating),
    "double": Way(pa.float64(), _floating),
}


def _utf8(texts: pa.Array) -> Typed:
    return Typed(texts.cast(pa.binary()))


def _base64(texts: pa.Array) -> Typed:
    octets, sure = base64_arrays.decoded(texts)
    return Typed(_spread(octets.array(), sure), pa.array(sure))


def _spread(found: pa.Array, sure: base64_arrays.Sure) -> pa.Array:
    """Return an array with the values at the places that are sure, and null at the others."""
    places = np.cumsum(sure) - 1
    return found.take(pa.array(places, mask=~sure))


def _unscaled_ways(column: Column, kind: str) -> tuple[Way, ...]:
    """Return the way of unscaled numbers. Numbers without quotation marks are left to the plain reader.

    Arrow's decimals take both, and so would read Base64 that happens to be digits as a number.
    """
    parts, declared = decimal_declared(kind), decimal_declared(column.type or kind)
    if parts is None or declared is None or not 0 <= parts[1] - declared[1] <= 18:
        return ()
    return (Way(pa.string(), partial(_unscaled, kind=kind, shift=parts[1] - declared[1])),)


def _unscaled(texts: pa.Array, kind: str, shift: int) -> Typed:
    target = arrow_type(kind)
    octets, sure = base64_arrays.decoded(texts)
    numbers, short = octets.numbers()
    largest = min(10 ** min(target.precision, 18), 1 << 62) // 10**shift
    fits = short & (numbers > -largest) & (numbers < largest)
    numbers = np.where(fits, numbers, 0) * 10**shift
    halves = np.stack([numbers, numbers >> 63], axis=1)
    found = pa.Array.from_buffers(target, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(halves))])
    sure[np.flatnonzero(sure)[~fits]] = False
    return Typed(_spread(found.filter(pa.array(fits)), sure), pa.array(sure))
