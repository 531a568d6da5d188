"""Spark expressions of masks (``values.masking``), for columns that were read as text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType

from tidemark.values.masking import HIDDEN, Mask, Masks, keyed


def mask_of(masks: Masks, name: str) -> Callable[[Expression], Expression]:
    """Return what makes the published value of a column from its value; the value itself where it is not masked."""
    kind = masks.kinds.get(name)
    if kind is Mask.HMAC:
        return _keyed(masks.secret() or b"")
    return _PLAIN[kind] if kind else lambda value: value


def _keyed(secret: bytes) -> Callable[[Expression], Expression]:
    """Return the keyed hash as a function of Python's.

    As an expression of Spark's own, the secret would be a constant of the plan. Spark shows plans in its pages, its
    event log and its errors.
    """

    def hashed(texts: pa.Array) -> pa.Array:
        return pa.array([None if text is None else keyed(secret, text) for text in texts.to_pylist()], pa.string())

    return partial(arrow_udf(hashed, StringType()))  # type: ignore[call-overload]  # the hints say its kind


def _last4(value: Expression) -> Expression:
    shown = F.concat(F.lit(HIDDEN), F.right(value, F.lit(4)))
    return F.when(F.length(value) > 4, shown).when(value.isNotNull(), HIDDEN)


_PLAIN: dict[Mask, Callable[[Expression], Expression]] = {
    Mask.HASH: lambda value: F.sha2(value, 256),
    Mask.REDACT: lambda value: F.when(value.isNotNull(), HIDDEN),
    Mask.LAST4: _last4,
    Mask.NULL: lambda value: F.when(F.lit(False), value),
}
