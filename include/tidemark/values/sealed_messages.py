"""Messages of ``raw`` and quarantine whose bytes are encrypted (``values.sealing``). This module is light to import."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from tidemark.errors import ConfigurationError
from tidemark.values.sealing import Keys

SEALED = "sealed"
"""Column of messages: the reference of the key that ``key`` and ``value`` are encrypted with; null: they are plain."""

_COLUMNS = ("key", "value")


def sealed_messages(rows: pa.RecordBatch, keys: Keys) -> pa.RecordBatch:
    """Return messages with their bytes encrypted."""
    reference = pa.repeat(pa.scalar(keys.reference), rows.num_rows)
    instead = {name: _each(rows.column(name), keys.seal) for name in _COLUMNS} | {SEALED: reference}
    return exchanged(rows, instead)


def unsealed_messages(rows: pa.RecordBatch, keys: Keys | None) -> pa.RecordBatch:
    """Return messages with their plain bytes.

    Args:
        rows: any columns of ``raw`` or quarantine.
        keys: of the source; None if its file names none.

    Raises:
        ConfigurationError: a key is missing.
    """
    references = rows.column(SEALED) if SEALED in rows.schema.names else None
    if references is None or references.null_count == rows.num_rows:
        return rows
    instead = {
        name: pa.array(
            [
                value if value is None or reference is None else _opened(keys, reference, value)
                for value, reference in zip(rows.column(name).to_pylist(), references.to_pylist(), strict=True)
            ],
            pa.binary(),
        )
        for name in _COLUMNS
        if name in rows.schema.names
    }
    instead[SEALED] = pa.nulls(rows.num_rows, pa.string())
    return exchanged(rows, instead)


def exchanged(rows: pa.RecordBatch, instead: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Return rows with other values in some of their columns; columns that the rows do not have are left out."""
    for name, values in instead.items():
        if (place := rows.schema.get_field_index(name)) >= 0:
            rows = rows.set_column(place, rows.schema.field(place).with_type(values.type), values)
    return rows


def _each(column: pa.Array, change: Callable[[bytes], bytes]) -> pa.Array:
    return pa.array([None if value is None else change(value) for value in column.to_pylist()], pa.binary())


def _opened(keys: Keys | None, reference: str, sealed: bytes) -> bytes:
    if keys is None:
        variable = reference.rpartition(":")[0]
        raise ConfigurationError(
            f"messages are encrypted with a key of the environment variable {variable}, and the source file names no "
            f"keys: write `raw_key: ${{{variable}}}` in it. Nothing was changed"
        )
    return keys.unseal(reference, sealed)
