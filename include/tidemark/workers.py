"""What runs on Spark's Python workers: light to import, Arrow batches in, Arrow batches out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from tidemark import containers
from tidemark.decode import decode_message, metadata_of
from tidemark.errors import LandingError
from tidemark.events import Message
from tidemark.formats import Known, informed, resolve
from tidemark.rows import INSTANT, RAW, change_log_batches

INSPECTED = pa.schema(
    [
        ("path", pa.string()),
        ("checksum", pa.string()),
        ("size", pa.int64()),
        ("messages", pa.int64()),
        ("container", pa.string()),
        ("problem", pa.string()),
    ]
)
"""One row a file: what reading it through told, or the ``problem`` for which it is refused."""

METADATA = pa.schema([("id", pa.string()), ("content", pa.binary())])
"""One row a metadata message: what the format's ``metadata`` gave."""

Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def inspector() -> Batches:
    """Batches with a column ``path`` in, batches of ``INSPECTED`` out."""
    return _inspect


def reader(batch: int, landed_at: int) -> Batches:
    """Batches with columns ``path``, ``interval_start`` (epoch µs) and ``checksum`` in, batches of ``RAW`` out."""
    return partial(_read, batch=batch, landed_at=landed_at)


def metadata_mark(format_name: str) -> bytes | None:
    """Return bytes that every metadata message of a format holds; None where the format needs none of them."""
    module = informed(resolve(format_name))
    return None if module is None else module.METADATA_MARK


def collector(format_name: str, options: Mapping[str, Any]) -> Batches:
    """Batches with a column ``value`` in, batches of ``METADATA`` out."""
    return partial(_collect, format_name=format_name, options=dict(options))


def decoder(format_name: str, options: Mapping[str, Any], known: Known | None = None) -> Batches:
    """Batches of ``RAW`` in, batches of ``CHANGE_LOG`` out; ``known`` is what metadata messages told."""
    return partial(_decode, format_name=format_name, options=dict(options), known=known)


def _inspect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pylist(
            [inspected(path) for path in batch.column("path").to_pylist()], schema=INSPECTED
        )


def inspected(path: str) -> dict[str, object]:
    """Read one file through: a row of ``INSPECTED``."""
    try:
        found = containers.inspect(path)
    except LandingError as error:
        return {"path": path, "problem": str(error)}
    return {
        "path": path,
        "checksum": found.sha256,
        "size": found.size,
        "messages": found.messages,
        "container": found.container,
        "problem": None,
    }


def _read(batches: Iterable[pa.RecordBatch], *, batch: int, landed_at: int) -> Iterator[pa.RecordBatch]:
    for files in batches:
        for file in files.to_pylist():
            for messages in containers.read(file["path"], sha256=file["checksum"]):
                yield _as_raw(messages, file, batch, landed_at)


def _as_raw(messages: pa.RecordBatch, file: Mapping[str, Any], batch: int, landed_at: int) -> pa.RecordBatch:
    constants = {
        "batch": batch,
        "interval_start": file["interval_start"] or None,
        "file": file["path"],
        "checksum": file["checksum"],
        "landed_at": landed_at,
    }
    arrays = [
        _repeated(constants[field.name], field.type, len(messages))
        if field.name in constants
        else messages.column(field.name).cast(field.type)
        for field in RAW
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RAW)


def _repeated(value: object, kind: pa.DataType, length: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64() if kind == INSTANT else kind), length).cast(kind)


def _collect(
    batches: Iterable[pa.RecordBatch], *, format_name: str, options: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    module = informed(resolve(format_name))
    if module is None:
        return
    checked = module.Options.model_validate(options)
    for batch in batches:
        messages = (Message(value=value, file="", place=0) for value in batch.column("value").to_pylist())
        told = dict.fromkeys(metadata_of(module, messages, checked))
        yield pa.RecordBatch.from_pylist([{"id": id_, "content": content} for id_, content in told], schema=METADATA)


def _decode(
    batches: Iterable[pa.RecordBatch], *, format_name: str, options: Mapping[str, Any], known: Known | None
) -> Iterator[pa.RecordBatch]:
    module = resolve(format_name)
    decode = partial(decode_message, module, options=module.Options.model_validate(options), known=known)
    yield from change_log_batches(batches, decode)
