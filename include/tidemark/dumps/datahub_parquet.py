"""Rows of a DataHub TUPLE topic in Parquet: each becomes a message, a JSON object with exact values.

Integers, decimals and floating-point numbers become JSON strings with all their digits, so that no reader rounds them.
Dates and times become ISO 8601, with ``Z`` if the column has a time zone. Bytes become Base64. True, false and null are
written as in JSON.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.dumps.beyond_limit import within
from tidemark.dumps.datahub_csv import SEQUENCE_COLUMNS
from tidemark.dumps.kafka_records import rows_at_once, runs, sizes
from tidemark.dumps.stored_file import StoredFile, check_expansion, reading
from tidemark.errors import LandingError
from tidemark.values import iso8601

_Values = list[str | bool | None]

_Row = dict[str, str | bool | None]

_encode: Final = msgspec.json.Encoder().encode

_UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def are_rows(schema: pa.Schema) -> bool:
    """Return whether a file has rows of a TUPLE topic: they have a sequence column."""
    return not set(SEQUENCE_COLUMNS).isdisjoint(schema.names)


def groups(
    stored: StoredFile, source: pa.NativeFile, metadata: pq.FileMetaData, *, batch_messages: int, batch_bytes: int
) -> Iterator[tuple[range, list[bytes]]]:
    """Yield the rows as JSON objects, with their numbers in the file, in groups of about ``batch_bytes``.

    A text that is not UTF-8 keeps its bytes in the object, and the decoder sets the message aside with them.

    Raises:
        LandingError: the file is damaged, two columns have one name, a column has a nested or unknown type, or a limit
            is exceeded.
    """
    with reading(stored.path), source:
        schema = metadata.schema.to_arrow_schema()
        writers = _writers(schema, stored.path)
        large = [field.name for field in schema if _is_large(field.type)]
        file = pq.ParquetFile(source, metadata=metadata, read_dictionary=large)
        row, expanded = 1, 0
        for batch in file.iter_batches(batch_size=rows_at_once(metadata, batch_messages)):
            lengths = sizes(batch, large)
            check_expansion(stored, expanded + sum(lengths))
            for start, stop in runs(lengths, batch_bytes):
                values = _messages(batch.slice(start, stop - start), writers)
                expanded += sum(map(len, values))
                check_expansion(stored, expanded)
                yield range(row + start, row + stop), [within(value, stored.limit) for value in values]
            row += batch.num_rows


def _messages(rows: pa.RecordBatch, writers: dict[str, Callable[[pa.Array], _Values]]) -> list[bytes]:
    columns = [write(rows.column(name)) for name, write in writers.items()]
    return [_json(dict(zip(writers, row, strict=True))) for row in zip(*columns, strict=True)]


def _json(row: _Row) -> bytes:
    try:
        return _encode(row)
    except UnicodeEncodeError:
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogateescape")


def _writers(schema: pa.Schema, path: str) -> dict[str, Callable[[pa.Array], _Values]]:
    writers = {field.name: _writer(field, path) for field in schema}
    if len(writers) < len(schema):
        raise LandingError(f"{path}: Parquet that names a column twice; rename one")
    return writers


def _is_large(kind: pa.DataType) -> bool:
    kinds = pa.types
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in (kinds.is_string, kinds.is_large_string, kinds.is_binary))


def _writer(field: pa.Field, path: str) -> Callable[[pa.Array], _Values]:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    for is_kind, write in _WRITERS:
        if is_kind(kind):
            return lambda column: write(_plain(column))
    raise LandingError(f"{path}: Parquet column {field.name} is {kind}, which no row of a TUPLE topic holds")


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _each(write: Callable[..., str]) -> Callable[[pa.Array], _Values]:
    return lambda column: [None if value is None else write(value) for value in column.to_pylist()]


def _counts(column: pa.Array) -> list[int | None]:
    counts: list[int | None] = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).to_pylist()
    return counts


def _texts(column: pa.Array) -> _Values:
    values = column.cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.decode(errors="surrogateescape") for value in values]


def _floats(column: pa.Array) -> _Values:
    """Return the shortest digits that give the same number when read at the same width."""
    wide = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    texts: _Values = pc.cast(wide, pa.string()).to_pylist()
    return texts


def _dates(column: pa.Array) -> _Values:
    days = column.cast(pa.date32()).cast(pa.int32()).to_pylist()
    return [None if day is None else iso8601.date(day) for day in days]


def _timestamps(column: pa.Array) -> _Values:
    zone = "Z" if column.type.tz else ""
    per_second = _UNITS[column.type.unit]
    return [None if count is None else _instant(count, per_second) + zone for count in _counts(column)]


def _instant(count: int, per_second: int) -> str:
    nanos = count * (10**9 // per_second)
    text = iso8601.instant(nanos // 1000)
    return f"{text}{nanos % 1000:03d}" if nanos % 1000 else text


def _times(column: pa.Array) -> _Values:
    per_second = _UNITS[column.type.unit]
    # a time of day is a moment of 1970-01-01, without its date
    return [None if count is None else _instant(count, per_second).partition("T")[2] for count in _counts(column)]


_KINDS: Final = pa.types

_WRITERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], _Values]], ...]] = (
    (_KINDS.is_null, lambda column: [None] * len(column)),
    (_KINDS.is_boolean, lambda column: list(column.to_pylist())),
    (_KINDS.is_integer, _each(str)),
    (_KINDS.is_decimal, _each("{:f}".format)),
    (_KINDS.is_floating, _floats),
    (lambda kind: _KINDS.is_string(kind) or _KINDS.is_large_string(kind), _texts),
    (
        lambda kind: _KINDS.is_binary(kind) or _KINDS.is_large_binary(kind) or _KINDS.is_fixed_size_binary(kind),
        _each(lambda value: base64.b64encode(value).decode()),
    ),
    (_KINDS.is_date, _dates),
    (_KINDS.is_timestamp, _timestamps),
    (_KINDS.is_time, _times),
)
