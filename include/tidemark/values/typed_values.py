"""The types of columns in Arrow, and values of the plain reader as arrays of them.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from tidemark.values.message_types import decimal_declared
from tidemark.values.plain_types import EXACT, Value

_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}


@functools.lru_cache(maxsize=1024)
def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type of a type string."""
    parts = decimal_declared(kind)
    return pa.decimal128(*parts) if parts else _TYPES[kind]


def array(kind: str, values: Sequence[Value]) -> pa.Array:
    """Return values as ``values.plain.read_value`` gives them, as an array of the column's type."""
    if decimal_declared(kind):
        convert: Callable[[Any], Any] = partial(_decimal, kind=kind)
    else:
        convert = _CONVERTERS.get(kind, str)
    own = [None if value is None else convert(value) for value in values]
    # Arrow reads the plain reader's ISO 8601 texts, and the digits of a float, which Python would round twice.
    from_text = kind in {"date", "timestamp", "timestamptz", "float"}
    return pa.array(own, pa.string()).cast(arrow_type(kind)) if from_text else pa.array(own, arrow_type(kind))


def _decimal(text: str, kind: str) -> Decimal:
    _, scale = decimal_declared(kind) or (0, 0)
    return Decimal(text).quantize(Decimal(1).scaleb(-scale), context=EXACT)


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": lambda text: text.removeprefix("+"),
    "double": float,
    "binary": base64.b64decode,
}
