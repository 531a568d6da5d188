"""Compiled readers of dates and times: counts since 1970, times of a day, and ISO 8601 texts.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.events import TIMES, Encoding
from tidemark.values.columnar_texts import PATTERNS, Typed, Way, between, cast, matching
from tidemark.values.iso8601 import DAY
from tidemark.values.typed_values import arrow_type

_COUNTS: Mapping[Encoding, int] = {
    Encoding.EPOCH_SECONDS: 1,
    Encoding.EPOCH_MILLIS: 1_000,
    Encoding.EPOCH_MICROS: 1_000_000,
    Encoding.EPOCH_NANOS: 1_000_000_000,
}
"""Units of a second."""

_OF_DAY: Mapping[Encoding, int] = {
    Encoding.MILLIS_OF_DAY: 1_000,
    Encoding.MICROS_OF_DAY: 1_000_000,
    Encoding.NANOS_OF_DAY: 1_000_000_000,
}

_TEXT_OR_COUNT: Mapping[Encoding, int] = {Encoding.TEXT_OR_MILLIS: 1_000, Encoding.TEXT_OR_MICROS: 1_000_000}

_ZONE = r"(?:Z|:[0-9.]+[+-][0-9:]+)$"

_MICROS = 1_000_000

_LONGEST = (1 << 63) - 1


COUNTING = frozenset({*_COUNTS, *_OF_DAY, Encoding.EPOCH_DAYS})
"""Encodings of dates and times as numbers."""

KINDS = frozenset({"date", "timestamp", "timestamptz"})
"""Types of dates and times."""


def ways(encoding: Encoding, kind: str) -> tuple[Way, ...]:
    """Return the ways to read a column that has one of ``KINDS``, or is written in an encoding of ``COUNTING``."""
    if encoding in _OF_DAY:
        return (Way(pa.int64(), partial(_of_day, per_second=_OF_DAY[encoding])),) if kind == "string" else ()
    if encoding is Encoding.EPOCH_DAYS:
        return (Way(pa.int64(), _days),) if kind == "date" else ()
    if kind not in KINDS:
        return ()
    per_second = _COUNTS.get(encoding) or _TEXT_OR_COUNT.get(encoding)
    if per_second is None:
        return (Way(pa.string(), partial(_time, kind=kind)),)
    counted = Way(pa.int64(), partial(_counted, per_second=per_second, kind=kind))
    if encoding in _COUNTS:
        return (counted,)
    return Way(pa.string(), partial(_time_or_count, kind=kind, per_second=per_second)), counted


def _time(texts: pa.Array, kind: str) -> Typed:
    """Read dates and times. A zone does not shift a wall clock, and an instant without a zone is in UTC."""
    sure = pc.match_substring_regex(texts, PATTERNS[kind])
    if kind == "timestamp":
        texts = pc.utf8_rtrim(texts, "Z")
    if kind == "timestamptz":
        has_zone = pc.match_substring_regex(texts, _ZONE)
        texts = pc.if_else(has_zone, texts, pc.binary_join_element_wise(texts, "Z", ""))
    timed = cast(texts, sure, arrow_type(kind))
    return Typed(timed.values, pc.and_kleene(timed.sure, _is_known(timed.values)))


def _time_or_count(texts: pa.Array, kind: str, per_second: int) -> Typed:
    counts = matching(texts, "long")
    if not pc.any(counts.sure, min_count=0).as_py():
        return _time(texts, kind)
    counted, timed = _counted(counts.values, per_second, kind), _time(texts, kind)
    values = pc.if_else(counts.sure, counted.values, timed.values)
    return Typed(values, pc.if_else(counts.sure, counted.sure, timed.sure))


def _is_known(times: pa.Array) -> pa.Array:
    """Return whether times are in the years that readers of the lake know."""
    if times.type == pa.date32():
        return between(times.cast(pa.int32()), TIMES.start // DAY, TIMES.stop // DAY - 1)
    return between(times.cast(pa.int64()), TIMES.start, TIMES.stop - 1)


def _counted(counts: pa.Array, per_second: int, kind: str) -> Typed:
    """Read counts since 1970. A count that is finer than the type is left to the plain reader."""
    target = arrow_type(kind)
    day = 86_400 * per_second
    unit, size = (day, 1) if kind == "date" else _unit(per_second)
    days = range(TIMES.start // DAY, TIMES.stop // DAY)
    sure = between(counts, max(day * days.start, -_LONGEST), min(day * days.stop - 1, _LONGEST))
    counts = pc.if_else(sure, counts, None)
    whole = pc.divide(counts, unit)
    sure = pc.and_kleene(sure, pc.equal(pc.multiply(whole, unit), counts))
    numbers = pc.multiply(whole, size)
    if kind == "date":
        return Typed(numbers.cast(pa.int32()).cast(target), sure)
    return Typed(numbers.cast(target), sure)


def _unit(per_second: int) -> tuple[int, int]:
    """Return how many counts are a microsecond, and how many microseconds a count is; one of them is 1."""
    return max(per_second // _MICROS, 1), max(_MICROS // per_second, 1)


def _days(days: pa.Array) -> Typed:
    sure = between(days, TIMES.start // DAY, TIMES.stop // DAY - 1)
    return Typed(pc.if_else(sure, days, None).cast(pa.int32()).cast(pa.date32()), sure)


def _of_day(counts: pa.Array, per_second: int) -> Typed:
    """Read times of a day as text, with six digits of a second or none. Finer, negative and longer ones are left."""
    unit, size = _unit(per_second)
    sure = between(counts, 0, 86_400 * per_second - 1)
    counts = pc.if_else(sure, counts, None)
    whole = pc.divide(counts, unit)
    sure = pc.and_kleene(sure, pc.equal(pc.multiply(whole, unit), counts))
    micros = pc.multiply(whole, size)
    seconds = pc.divide(micros, _MICROS)
    is_whole = pc.equal(pc.multiply(seconds, _MICROS), micros)
    texts = micros.cast(pa.time64("us")).cast(pa.string())
    return Typed(pc.if_else(is_whole, pc.utf8_slice_codeunits(texts, 0, 8), texts), sure)
