"""Reads messages in parts of files, of ``raw`` or of the quarantine. Spark's workers import it, so it is light.

Messages in quarantine that are past their time (``retention: quarantine_days``) have no bytes there. They are read from
``raw``, as long as it has them. A message without a value is known to have lost it by its detail, which is null then
and never else: a tombstone in quarantine has a detail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.lake.data_files import TableFolder
from tidemark.lake.log_schemas import QUARANTINE
from tidemark.normalization.arrow_rows import filled_batch
from tidemark.values.sealed_messages import SEALED, unsealed_messages
from tidemark.values.sealing import Keys

DETAIL = "detail"
"""Column of the quarantine."""

READ_AGAIN = "read from raw"
"""Detail of a message that got its bytes back."""

_BYTES = ("key", "value", "checksum", SEALED)
"""Columns that come from ``raw``; the checksum says whether an erasure removed the bytes there."""


class RawPart(msgspec.Struct, frozen=True, kw_only=True):
    """Some row groups of one data file of ``raw`` or of the quarantine."""

    path: str
    """In the file system of its table."""
    batch: int
    first: int
    """Row groups ``[first, last)``."""
    last: int | None
    """None: all that follow."""
    raw: tuple[str, ...] = ()
    """Of a file of the quarantine where messages may have lost their bytes: the files that ``raw`` has of the batch."""


def messages_in(
    part: RawPart, read_from: TableFolder, keys: Keys | None = None, columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a part, decrypted.

    Raises:
        ConfigurationError: a key is missing that messages are encrypted with.
    """
    with pq.ParquetFile(read_from.filesystem.open_input_file(part.path)) as file:
        groups = range(part.first, file.num_row_groups if part.last is None else part.last)
        count, read = (_MESSAGES_FROM_RAW, None) if part.raw else (MESSAGES, columns)
        for rows in file.iter_batches(count, row_groups=list(groups), columns=read):
            whole = _with_bytes(rows, part.raw, read_from) if part.raw else rows
            if read != columns:
                whole = whole.select([name for name in columns or () if name in whole.schema.names])
            yield unsealed_messages(whole, keys)


MESSAGES = 40_000
"""Messages that are decoded together: a row group of ``raw``, if messages have the usual size. Arrow is called once for
each table among them. With 20 tables, a message takes a tenth longer if only 10,000 are decoded together."""

_MESSAGES_FROM_RAW = 2_000
"""The same, where bytes come from ``raw``: a row group of rows without bytes says nothing of how large they are."""


def parted(messages: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the messages that can be read, and the rows of those in quarantine whose bytes are nowhere any more."""
    if DETAIL not in messages.schema.names:
        return messages, messages.slice(0, 0)
    is_bare = pc.is_null(messages.column(DETAIL))
    bare = messages.filter(is_bare)
    columns = {name: bare.column(name) for name in bare.schema.names}
    return messages.filter(pc.invert(is_bare)), filled_batch(columns, bare.num_rows, QUARANTINE)


def _with_bytes(rows: pa.RecordBatch, files: Iterable[str], read_from: TableFolder) -> pa.RecordBatch:
    """Return messages of the quarantine; those that lost their bytes have them from files of ``raw``."""
    bare = rows.filter(pc.is_null(rows.column(DETAIL))).select(["file", "place"])
    if not bare.num_rows:
        return rows
    wanted = pc.indices_nonzero(pc.is_null(rows.column(DETAIL))).to_pylist()
    index_of = dict(zip(_places(bare), wanted, strict=True))
    found: list[pa.RecordBatch] = []
    indexes, count = list(range(rows.num_rows)), rows.num_rows
    for messages in _at(index_of.keys(), files, read_from):
        for number, place in enumerate(_places(messages), count):
            indexes[index_of[place]] = number
        found.append(messages)
        count += messages.num_rows
    return _exchanged(rows, pa.Table.from_batches(found), indexes) if found else rows


def _at(places: Iterable[tuple[str, int]], files: Iterable[str], read_from: TableFolder) -> Iterator[pa.RecordBatch]:
    """Yield what files of ``raw`` have at some places."""
    known = set(places)
    numbers = pa.array({place for _, place in known}, pa.int64())
    for path in files:
        with pq.ParquetFile(read_from.filesystem.open_input_file(path)) as file:
            for rows in _numbered(file, numbers):
                yield rows.filter(pa.array([place in known for place in _places(rows)], pa.bool_()))


def _numbered(file: pq.ParquetFile, numbers: pa.Array) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a file whose place is one of these, whichever dump file they are of."""
    for group in range(file.num_row_groups):
        hits = pc.is_in(file.read_row_group(group, columns=["place"])["place"], numbers).combine_chunks()
        if pc.any(hits).as_py():
            yield from file.read_row_group(group, columns=["file", "place", *_BYTES]).filter(hits).to_batches()


def _places(rows: pa.RecordBatch) -> Iterator[tuple[str, int]]:
    return zip(rows.column("file").to_pylist(), rows.column("place").to_pylist(), strict=True)


def _exchanged(rows: pa.RecordBatch, found: pa.Table, indexes: list[int]) -> pa.RecordBatch:
    """Return rows with the bytes of those that are followed, by the indexes, by a message that was found."""
    places = pa.array(indexes, pa.int64())
    later = found.append_column(DETAIL, pa.repeat(pa.scalar(READ_AGAIN), found.num_rows))
    if SEALED not in rows.schema.names:
        rows = rows.append_column(SEALED, pa.nulls(rows.num_rows, pa.string()))
    for name in (*_BYTES, DETAIL):
        field = rows.schema.field(name)
        own = later[name].cast(field.type) if name in later.schema.names else pa.nulls(found.num_rows, field.type)
        both = pa.chunked_array([rows.column(name), *pa.chunked_array(own).chunks])
        values = both.take(places).combine_chunks()
        rows = rows.set_column(rows.schema.get_field_index(name), field, values)
    return rows
