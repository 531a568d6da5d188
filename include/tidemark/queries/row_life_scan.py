"""Finds the rows of the change log that may concern one key, by searching the images as text; makes steps of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.events import Operation
from tidemark.queries.row_life import Step
from tidemark.values.iso8601 import instant
from tidemark.values.plain_types import Value


class LogRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the change log, with the columns that a step is made of."""

    operation: str
    position: str
    committed_at: int | None
    """Epoch µs, because Python's times have a smaller range."""
    transaction_id: str | None
    transaction_number: int | None
    transaction_last: bool | None
    before: str | None
    after: str | None
    shape: str | None
    partial: bool | None
    absent: tuple[str, ...] | None
    batch: int
    file: str
    place: int
    row: int


FIELDS = LogRow.__struct_fields__
"""The columns of the change log that ``log_rows`` takes."""


def log_rows(rows: pa.RecordBatch | pa.Table) -> list[LogRow]:
    """Return rows of the change log, which have ``FIELDS`` at least."""
    micros = rows.column("committed_at").cast(pa.int64())
    timed = rows.set_column(rows.schema.names.index("committed_at"), "committed_at", micros)
    return msgspec.convert(timed.to_pylist(), list[LogRow])


def comparable(value: Value, kind: str) -> object:
    """Return a value of ``values.plain`` in a form in which two ways to write one value are equal."""
    if value is None or not isinstance(value, str):
        return value
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "float":
        return struct.unpack("<f", struct.pack("<f", float(value)))[0]
    return float(value) if kind == "double" else value


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
    """Return the step of a row."""
    transaction = {"id": row.transaction_id, "number": row.transaction_number, "last": row.transaction_last}
    return Step(
        operation=row.operation,
        position=row.position,
        committed_at=None if row.committed_at is None else f"{instant(row.committed_at)}Z",
        transaction=transaction if row.transaction_id is not None else None,
        file=row.file,
        place=row.place,
        row=row.row,
        batch=row.batch,
        **fields,
    )
