"""Kafka records in dumps: JSON objects, or Parquet rows, with ``topic partition offset timestamp key value``."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.dumps.beyond_limit import record
from tidemark.dumps.json_text import is_valid
from tidemark.dumps.stored_file import StoredFile, check_expansion, reading
from tidemark.errors import LandingError

MESSAGES: Final = pa.schema(
    [
        pa.field("place", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.int64()),
    ]
)
"""Messages and where they stood. ``place`` is 1-based: the line of a text in lines, the row of a Parquet file, or else
the ordinal of the message. A null ``value`` is a Kafka record with a null value. Outside Kafka records, ``key`` and the
last four columns are null. ``timestamp`` is epoch ms."""

Int32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_TEXT: Final = (pa.types.is_string, pa.types.is_large_string)

_NULL: Final = msgspec.Raw(b"null")

Row = tuple[bytes | None, bytes | None, str | None, int | None, int | None, int | None]
"""The columns of ``MESSAGES`` after ``place``."""


class _Record(msgspec.Struct, frozen=True, gc=False):
    """A Kafka record in JSON. Other fields, such as ``headers``, are not read."""

    topic: str
    partition: Int32
    offset: Int64
    value: msgspec.Raw
    timestamp: Int64 | None = None
    key: msgspec.Raw = _NULL


class _Marks(msgspec.Struct, frozen=True, gc=False):
    """The four fields that a Kafka record always has. A message without one of them is not a Kafka record."""

    topic: msgspec.Raw
    partition: msgspec.Raw
    offset: msgspec.Raw
    value: msgspec.Raw


_DECODE_RECORD: Final = msgspec.json.Decoder(_Record).decode

_DECODE_TEXT: Final = msgspec.json.Decoder(str).decode


def is_record(text: bytes) -> bool:
    """Return whether a JSON text is a Kafka record, whatever the types of its fields."""
    try:
        msgspec.json.decode(text, type=_Marks)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


Unwrap = Callable[[bytes], "Row | None"]
"""Returns the message in the text of a Kafka record; None if the text is none."""


def line_batch(places: Sequence[int], lines: list[bytes], unwrap: Unwrap) -> pa.RecordBatch:
    """Return the messages of Kafka records in texts.

    A record that is broken, or has a field of the wrong type, stays as it is: its whole text is the value, and it has
    no partition and no offset. Its decoder then sets it aside with its bytes.
    """
    columns = zip(*(unwrap(line) or (None, line, None, None, None, None) for line in lines), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, list(MESSAGES)[1:], strict=True)]
    return pa.RecordBatch.from_arrays([pa.array(places, pa.int64()), *arrays], schema=MESSAGES)


def unwrapped(line: bytes) -> Row | None:
    """Return the message in a Kafka record in JSON; None if it is broken."""
    try:
        record = _DECODE_RECORD(line)
        key, value = content(record.key), content(record.value)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    if isinstance(value, str):
        value = bytes_of_text(value)
    if isinstance(key, str):
        key = bytes_of_key(key)
    return key, value, record.topic, record.partition, record.offset, record.timestamp


def content(field: msgspec.Raw) -> bytes | str | None:
    """Return the text of a JSON string, None for null, or the verbatim bytes of an embedded object or array."""
    raw = bytes(field)
    if raw[:1] in {b"{", b"["}:
        return raw
    return None if raw == b"null" else _DECODE_TEXT(raw)


def bytes_of_text(text: str) -> bytes:
    """Return the bytes of a value that stands as text: JSON as it is, any other text read as Base64 if it can be."""
    stripped = text.strip()
    if stripped.startswith(("{", "[")) or stripped == "null":
        return text.encode()
    try:
        return binascii.a2b_base64(stripped, strict_mode=True)
    except ValueError:
        return text.encode()


def bytes_of_key(text: str) -> bytes:
    """Return the bytes of a key that stands as text: of Base64 if a JSON object or null comes of it, else as it stands.

    No decoder reads another key. A plain text may happen to be Base64 (``abcd``), so it stays.
    """
    if text[:1] in _NO_BASE64:
        return text.encode()
    found = bytes_of_text(text)
    is_read = found.lstrip()[:1] == b"{" or found.strip() == b"null"
    return found if is_read and is_valid(found) else text.encode()


_NO_BASE64: Final = frozenset({"", "{", "[", '"'})
"""Beginnings of JSON, which nearly all keys are."""


def parquet_batches(
    stored: StoredFile, source: pa.NativeFile, metadata: pq.FileMetaData, *, batch_messages: int, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the Kafka records in the rows of a Parquet file, as batches of ``MESSAGES``.

    Raises:
        LandingError: the file is damaged, a column is missing, is there twice or has another type, or a limit is
            exceeded.
    """
    with reading(stored.path), source:
        schema = metadata.schema.to_arrow_schema()
        _check_columns(schema, stored.path)
        names = [name for name in MESSAGES.names if name in schema.names]
        large = [name for name in ("key", "value") if name in names]
        file = pq.ParquetFile(source, metadata=metadata, read_dictionary=large)
        row, expanded = 1, 0
        for batch in file.iter_batches(batch_size=rows_at_once(metadata, batch_messages), columns=names):
            lengths = sizes(batch, large)
            expanded += sum(lengths)
            check_expansion(stored, expanded)
            for start, stop in runs(lengths, min(batch_bytes, stored.limit)):
                rows = _parquet_batch(batch.slice(start, stop - start), row + start)
                # A row that is too long is alone in its run.
                yield rows if stop - start > 1 or lengths[start] <= stored.limit else _shortened(rows, stored.limit)
            row += batch.num_rows


def _shortened(rows: pa.RecordBatch, limit: int) -> pa.RecordBatch:
    """Return one record that is too long with what is kept of it."""
    key, value = record(rows.column("key")[0].as_py(), rows.column("value")[0].as_py(), limit)
    kept = {"key": pa.array([key], pa.binary()), "value": pa.array([value], pa.binary())}
    return pa.RecordBatch.from_arrays([kept.get(name, rows.column(name)) for name in MESSAGES.names], schema=MESSAGES)


def rows_at_once(metadata: pq.FileMetaData, most: int) -> int:
    """Return how many rows of a Parquet file are read at once: fewer than ``most`` where rows are large."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    sizes_of_rows = [group.total_byte_size // group.num_rows for group in groups if group.num_rows]
    largest: int = max([1, *sizes_of_rows])
    return max(1, min(most, _ROWS_BYTES // largest))


_ROWS_BYTES: Final = 64 << 20


def _check_columns(schema: pa.Schema, path: str) -> None:
    kinds = {"topic": _is_bytes, "partition": pa.types.is_integer, "offset": pa.types.is_integer, "value": _is_bytes}
    optional = {"key": _is_bytes, "timestamp": lambda kind: pa.types.is_integer(kind) or pa.types.is_timestamp(kind)}
    missing = [name for name in kinds if name not in schema.names]
    if missing:
        raise LandingError(
            f"{path}: Parquet without column {', '.join(missing)}; Kafka records have topic, partition, offset, "
            "timestamp, key and value"
        )
    if twice := [name for name in (*kinds, *optional) if schema.names.count(name) > 1]:
        raise LandingError(f"{path}: Parquet that names a column twice: {', '.join(twice)}; write each once")
    for name, is_right in {**kinds, **optional}.items():
        if name in schema.names and not is_right(schema.field(name).type):
            raise LandingError(f"{path}: Parquet column {name} is {schema.field(name).type}; write it as Kafka has it")


def _is_bytes(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    kinds = pa.types
    return any(is_kind(kind) for is_kind in (kinds.is_binary, kinds.is_large_binary, *_TEXT, kinds.is_null))


def sizes(batch: pa.RecordBatch, names: Iterable[str]) -> list[int]:
    """Return the bytes of each row in the named columns, counted without expanding a dictionary."""
    total = [0] * batch.num_rows
    for name in names:
        column = batch.column(name)
        if isinstance(column, pa.DictionaryArray):
            lengths = pc.binary_length(column.dictionary).take(column.indices)
        else:
            lengths = pc.binary_length(column.cast(pa.binary()))
        total = [size + (length or 0) for size, length in zip(total, lengths.to_pylist(), strict=True)]
    return total


def runs(sizes: Iterable[int], limit: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of runs of rows. A run has at most ``limit`` bytes, unless a single row has more."""
    start = size = 0
    for row, more in enumerate(sizes):
        if row > start and size + more > limit:
            yield start, row
            start, size = row, 0
        size += more
    yield start, len(list(sizes))


def _parquet_batch(rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    arrays = [pa.array(range(first, first + rows.num_rows), pa.int64())]
    for field in list(MESSAGES)[1:]:
        if field.name in rows.schema.names:
            arrays.append(_column(rows.column(field.name), field))
        else:
            arrays.append(pa.nulls(rows.num_rows, field.type))
    batch = pa.RecordBatch.from_arrays(arrays, schema=MESSAGES)
    unplaced = pc.and_(pc.is_null(batch.column("partition")), pc.is_valid(batch.column("offset")))
    if pc.any(unplaced).as_py():
        raise pa.ArrowInvalid(f"row {first + pc.index(unplaced, value=True).as_py()}: {WITHOUT_PARTITION}")
    return batch


WITHOUT_PARTITION: Final = (
    "an offset without a partition, which orders nothing: write the partition too (0 if the topic has one), or leave "
    "both null, and the place in the file is the order"
)


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    read = _OF_TEXT.get(field.name)
    if read and any(is_text(column.type) for is_text in _TEXT):
        column = pa.array([None if text is None else read(text) for text in column.to_pylist()], pa.binary())
    return column.cast(field.type)


_OF_TEXT: Final = {"key": bytes_of_key, "value": bytes_of_text}
