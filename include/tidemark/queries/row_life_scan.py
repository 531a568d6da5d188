"""Finds the rows of the change log that may concern one key, by searching the images as text; makes steps of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.events import Operation
from tidemark.queries.row_life import Step
from tidemark.values.iso8601 import instant
from tidemark.values.plain_types import Value

LogRow = dict[str, Any]
"""A row of the change log with ``FIELDS``."""

FIELDS = (
    "operation", "position", "committed_at", "transaction_id", "transaction_number", "transaction_last", "before",
    "after", "shape", "partial", "absent", "batch", "file", "place", "row",
)  # fmt: skip
"""Columns of the change log that a step is made of."""


def comparable(value: Value, kind: str) -> object:
    """Return a value of ``values.plain`` in a form in which two ways to write one value are equal."""
    if value is None or not isinstance(value, str):
        return value
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "float":
        return struct.unpack("<f", struct.pack("<f", float(value)))[0]
    return float(value) if kind == "double" else value


def micros(batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return the commit times as numbers (epoch µs), because Python's times have a smaller range."""
    return batch.column("committed_at").cast(pa.int64())


def may_hold(batch: pa.RecordBatch, patterns: Sequence[str]) -> pa.Array:
    """Return which rows may matter: TRUNCATEs, and rows whose images contain all patterns, or have escapes in them."""
    escaped = _found(batch, r"\\")
    may = pa.repeat(pa.scalar(value=True), len(batch))
    for pattern in patterns:
        may = pc.and_(may, pc.or_(escaped, _found(batch, pattern)))
    return pc.or_(may, pc.equal(batch.column("operation"), str(Operation.TRUNCATE)))


def _found(batch: pa.RecordBatch, pattern: str) -> pa.Array:
    sides = (pc.match_substring_regex(batch.column(side), pattern) for side in ("before", "after"))
    before, after = (pc.fill_null(side, False) for side in sides)  # noqa: FBT003
    return pc.or_(before, after)


def made(row: LogRow, **fields: Any) -> Step:  # noqa: ANN401  the fields of a Step
    """Return the step of a row with ``FIELDS``, whose time is a number (``micros``)."""
    transaction = {"id": row["transaction_id"], "number": row["transaction_number"], "last": row["transaction_last"]}
    return Step(
        operation=row["operation"],
        position=row["position"],
        committed_at=None if row["committed_at"] is None else f"{instant(row['committed_at'])}Z",
        transaction=transaction if row["transaction_id"] is not None else None,
        file=row["file"],
        place=row["place"],
        row=row["row"],
        batch=row["batch"],
        **fields,
    )
