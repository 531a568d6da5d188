"""Texts that compiled code surely reads as the plain reader reads them: they match the pattern of a type.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.values.message_types import decimal_declared
from tidemark.values.typed_values import arrow_type


class Typed(NamedTuple):
    """Values that were brought to the type of a column."""

    values: pa.Array
    sure: pa.Array | None = None
    """Whether each value is read as the plain reader reads it; None for all. Of nulls it says nothing."""


class Way(NamedTuple):
    """One way in which a column may be written in JSON."""

    wire: pa.DataType
    """The type that Arrow's JSON reader is to read."""
    typed: Callable[[pa.Array], Typed]


_CLOCK = r"[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"

PATTERNS: Mapping[str, str] = {
    "int": "^-?[0-9]{1,9}$",
    "long": "^-?[0-9]{1,18}$",
    "float": r"^-?[0-9]{1,9}(?:\.[0-9]{1,40})?$",
    "double": r"^-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?$",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:{_CLOCK}Z?)?$",
    "timestamptz": rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_CLOCK}(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?$",
}
"""The common ways to write a value, which Arrow reads as the plain reader does."""


def between(numbers: pa.Array, least: int, most: int) -> pa.Array:
    """Return which numbers lie between two others or are one of them; null for null."""
    return pc.and_kleene(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))


def matching(texts: pa.Array, kind: str) -> Typed:
    """Read texts that match the pattern of the type: a common way to write a value that fits it."""
    parts = decimal_declared(kind)
    pattern = _decimal_pattern(*parts) if parts else PATTERNS[kind]
    return cast(texts, pc.match_substring_regex(texts, pattern), arrow_type(kind))


def cast(texts: pa.Array, sure: pa.Array, target: pa.DataType) -> Typed:
    """Read texts as Arrow does, those that are surely what the type takes; none where one is not after all."""
    texts = pc.if_else(sure, texts, None)
    try:
        return Typed(texts.cast(target), sure)
    except pa.ArrowInvalid:  # a day that does not exist, for instance: the plain reader finds which
        return Typed(pa.nulls(len(texts), target), pa.array(np.zeros(len(texts), dtype=np.bool_)))


def _decimal_pattern(precision: int, scale: int) -> str:
    whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    return rf"^-?{whole}(?:\.[0-9]{{1,{scale}}})?$" if scale else f"^-?{whole}$"
