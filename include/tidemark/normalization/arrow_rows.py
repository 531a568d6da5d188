"""Messages out of Arrow batches of ``raw``, and Arrow columns of the change log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.dumps.file_names import FileOrder
from tidemark.events import TIMES, Message, Transaction
from tidemark.lake.log_schemas import ERASED, INSTANT

_NO_TRANSACTION = Transaction()

NAME_LIST = pa.list_(pa.string())


FILE_ORDER = "file_order"
"""Column of a batch of ``RAW`` in which paths of files are not in the order of their text; see ``with_file_order``."""


def with_file_order(raw: pa.RecordBatch, order: FileOrder) -> pa.RecordBatch:
    """Return a batch of ``RAW`` with the text that orders the file of each message."""
    if not order.width_at:
        return raw
    files = raw.column("file").dictionary_encode()
    texts = pa.array([order.text(path) for path in files.dictionary.to_pylist()], pa.string())
    return raw.append_column(FILE_ORDER, texts.take(files.indices))


def unerased(raw: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of ``RAW`` without the messages whose bytes an erasure removed."""
    erased = pc.fill_null(pc.equal(raw.column("checksum"), ERASED), pa.scalar(value=False))
    return raw.filter(pc.invert(erased)) if pc.any(erased).as_py() else raw


def messages_of(raw: pa.RecordBatch) -> Iterator[Message]:
    """Yield the messages of a batch of ``RAW``, in its order."""
    start = raw.column("interval_start").cast(pa.int64()).fill_null(0)
    names = ("file", "place", "topic", "partition", "offset", "timestamp", "key", "value")
    values = [_values(raw.column(name)) for name in names]
    ordered = raw.column(FILE_ORDER).to_pylist() if FILE_ORDER in raw.schema.names else repeat(None)
    for interval, file, place, topic, partition, offset, timestamp, key, value, file_order in zip(
        start.to_pylist(), *values, ordered, strict=False
    ):
        yield Message(
            value=value,
            file=file,
            place=place,
            interval=interval,
            key=key,
            topic=topic,
            partition=partition,
            offset=offset,
            timestamp=timestamp,
            file_order=file_order,
        )


def _values(column: pa.Array) -> Iterable[Any]:
    """Return the values of a column; for a column of nulls, None without end."""
    return repeat(None) if column.null_count == len(column) else column.to_pylist()


def image_array(values: list[bytes | None]) -> pa.Array:
    """Return images as an array of strings."""
    # The decoder has checked that images are UTF-8, so their bytes need not become Python text.
    return pa.array(values, pa.binary()).cast(pa.string())


def instant_array(values: list[int | None]) -> pa.Array:
    """Return times (epoch µs, UTC) as an array of ``INSTANT``.

    Raises:
        ValueError: a time is outside of ``TIMES``.
    """
    times = pa.array(values, pa.int64())
    bounds = pc.min_max(times).as_py().values()
    if any(bound is not None and bound not in TIMES for bound in bounds):
        raise ValueError("a time outside of the years 1 to 9999")
    return times.cast(INSTANT)


def transaction_columns(found: list[Transaction | None]) -> dict[str, pa.Array]:
    """Return the columns of the events' transactions; no columns if no event has a transaction."""
    if not any(found):
        return {}
    transactions = [transaction or _NO_TRANSACTION for transaction in found]
    return {
        "transaction_id": pa.array([transaction.id for transaction in transactions], pa.string()),
        "transaction_number": pa.array([transaction.number for transaction in transactions], pa.int64()),
        "transaction_last": pa.array([transaction.last for transaction in transactions], pa.bool_()),
    }


def filled_batch(columns: Mapping[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of ``count`` rows of a schema. Columns that ``columns`` lacks are null."""
    arrays = [columns[field.name] if field.name in columns else pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
