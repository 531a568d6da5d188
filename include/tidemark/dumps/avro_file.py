"""Avro object container files: the messages in them, block by block.

https://avro.apache.org/docs/1.12.0/specification/#object-container-files. The schema decides what a datum becomes:

- A record with the fields ``topic``, ``partition``, ``offset`` and ``value`` is a Kafka record. It may also have
  ``key`` and ``timestamp`` (epoch ms; a logical type may make it µs). A key or value that is text or bytes is read as
  in other containers of Kafka records, null is null, and a value of any other type stays in its binary form.
- Bytes, or a string, are one message.
- Any other datum, such as a DTS Record, is one message. Its value is the binary form of the datum: the same bytes as in
  the file. A format that does not know the schema sets the message aside.
- A union is the datum of its branch, without the branch number in front. The published list of DTS's types makes a
  union.

A file is refused as a whole if it is cut, if the marker between two blocks is missing, if a block does not hold the
data that the schema describes, or if the schema is beyond the limits of ``avro.skipping``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import zstandard

from tidemark.avro.binary import varint
from tidemark.avro.skipping import SCHEMA_LIMIT, parse
from tidemark.dumps.avro_messages import Read, Row, reader
from tidemark.dumps.beyond_limit import MARK, TooLong, record
from tidemark.dumps.kafka_records import MESSAGES
from tidemark.dumps.stored_file import EXPANDED_LIMIT, READ_STEP, StoredFile, check_expansion
from tidemark.errors import LandingError

MAGIC: Final = b"Obj\x01"

BLOCK_LIMIT: Final = 64 << 20
"""Most bytes of one block, both as stored and expanded; with a higher limit for messages, four times that limit."""

_MARKER: Final = 16


class Container(NamedTuple):
    """An opened file."""

    kafka: bool
    batches: Iterator[pa.RecordBatch]
    """Batches of ``MESSAGES``. Iterating raises a LandingError where the file is damaged."""


def opened(stored: StoredFile, chunks: Iterator[bytes], *, batch_messages: int, batch_bytes: int) -> Container:
    """Read the header of a container, whose content begins with ``MAGIC``, and return the opened container.

    Raises:
        LandingError: the header is cut or damaged, the codec is unknown, or the schema cannot be read.
    """
    stream = _Stream(chunks, stored.path)
    stream.take(len(MAGIC))
    metadata = _metadata(stream)
    marker = stream.take(_MARKER)
    codec = metadata.get("avro.codec", b"null")
    if codec not in _CODECS:
        known = ", ".join(name.decode() for name in _CODECS)
        raise LandingError(
            f"{stored.path}: Avro with codec {codec[:40]!r}; known are {known}: write it with one of them"
        )
    try:
        kafka, read = reader(parse(metadata.get("avro.schema", b"")))
    except ValueError as error:
        raise LandingError(f"{stored.path}: the schema in the Avro file is not read: {error}") from error
    blocks = _blocks(stream, marker, _CODECS[codec], stored)
    return Container(kafka, _batches(_rows(blocks, read, stored), batch_messages, batch_bytes))


class _Stream:
    """The bytes of a file, which come in chunks of any size."""

    def __init__(self, chunks: Iterator[bytes], path: str) -> None:
        self.path = path
        self.passed = 0
        """Bytes taken so far."""
        self._chunks = chunks
        self._text = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        parts, missing = [], count
        while True:
            part = self._text[self._at : self._at + missing]
            parts.append(part)
            missing -= len(part)
            self._at += len(part)
            if not missing:
                self.passed += count
                return b"".join(parts)
            if not self._more():
                raise LandingError(
                    f"{self.path}: cut: the Avro file ends {missing} bytes before the end of what begins at byte "
                    f"{self.passed}; fetch the file again"
                )

    def skip(self, count: int, long: TooLong) -> bytes:
        """Hand on the next ``count`` bytes piece by piece; return none of them."""
        while count:
            piece = self.take(min(count, READ_STEP))
            long.add(piece)
            count -= len(piece)
        return b""

    def number(self) -> int:
        """Return the next long."""
        raw = self.take(1)
        while raw[-1] >= 0x80 and len(raw) < 11:
            raw += self.take(1)
        try:
            return varint(raw, 0)[0]
        except (ValueError, IndexError) as error:
            raise LandingError(f"{self.path}: byte {self.passed} of the Avro file: {error}; fetch it again") from error

    def ended(self) -> bool:
        """Return whether the file ends here."""
        return self._at == len(self._text) and not self._more()

    def _more(self) -> bool:
        """Read the next chunk; False at the end of the file. Call it only when the last chunk is used up."""
        self._text, self._at = next(self._chunks, b""), 0
        return bool(self._text)


def _metadata(stream: _Stream) -> dict[str, bytes]:
    metadata: dict[str, bytes] = {}
    count = stream.number()
    while count:
        if count < 0:
            stream.number()
        for _ in range(abs(count)):
            name, value = _short(stream), _short(stream)
            metadata[name.decode(errors="replace")] = value
        count = stream.number()
        if stream.passed > 4 * SCHEMA_LIMIT:
            break
    return metadata


def _short(stream: _Stream) -> bytes:
    size = stream.number()
    if not 0 <= size <= SCHEMA_LIMIT or stream.passed > 4 * SCHEMA_LIMIT:
        raise LandingError(f"{stream.path}: a header of an Avro file with an entry of {size} bytes; fetch it again")
    return stream.take(size)


def _blocks(
    stream: _Stream, marker: bytes, expand: Callable[[bytes, int], bytes], stored: StoredFile
) -> Iterator[tuple[int, bytes]]:
    """Yield the number of data in a block, and its expanded bytes.

    A block that is too large, with one datum in it, is yielded with no datum and with what is kept of its bytes.
    """
    number, expanded, limit = 0, 0, max(BLOCK_LIMIT, 4 * stored.limit)
    while not stream.ended():
        number += 1
        count, size = stream.number(), stream.number()
        if count < 0 or not 0 <= size <= (limit if count > 1 else EXPANDED_LIMIT):
            raise LandingError(
                f"{stream.path}: Avro block {number}: {count} data in {size} bytes, and a block may have "
                f"{limit >> 20} MiB; fetch the file again, or write it in smaller blocks"
            )
        long = TooLong(stored.limit)
        raw = stream.take(size) if size <= limit else stream.skip(size, long)
        if stream.take(_MARKER) != marker:
            raise LandingError(f"{stream.path}: Avro block {number}: no sync marker behind it; fetch the file again")
        if size > limit:
            yield 0, long.kept()
            continue
        try:
            content = expand(raw, limit)
        except _TooLargeError as error:
            if count > 1:
                raise LandingError(
                    f"{stream.path}: Avro block {number}: {error}; write it in smaller blocks"
                ) from error
            long.add(raw)
            yield 0, long.kept(error.size)
            continue
        except (ValueError, IndexError, OSError, zlib.error, zstandard.ZstdError, pa.ArrowException) as error:
            raise LandingError(
                f"{stream.path}: Avro block {number}: damaged ({error}); fetch the file again"
            ) from error
        expanded += len(content)
        check_expansion(stored, expanded)
        yield count, content


class _TooLargeError(Exception):
    """A block expands to more bytes than it may have; ``size``, as far as they were counted."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"more than {limit >> 20} MiB expanded")
        self.size = size


def _within(size: int, limit: int) -> int:
    if size > limit:
        raise _TooLargeError(size, limit)
    return size


def _plain(raw: bytes, _limit: int) -> bytes:
    return raw


def _deflate(raw: bytes, limit: int) -> bytes:
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    content = engine.decompress(raw, limit + 1)
    _within(len(content), limit)
    if not engine.eof:  # bytes may follow the end: fastavro leaves three of zlib's checksum
        raise ValueError("the compressed data end too early")
    return content


def _snappy(raw: bytes, limit: int) -> bytes:
    size, shift = 0, 0
    for byte in raw[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > limit:  # the first bytes claim this size, and nothing confirms it
        raise ValueError(f"more than {limit >> 20} MiB expanded")
    content = pa.decompress(raw[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(content).to_bytes(4, "big") != raw[-4:]:
        raise ValueError("the checksum is another")
    return bytes(content)


def _zstandard(raw: bytes, limit: int) -> bytes:
    reader = zstandard.ZstdDecompressor(max_window_size=limit).stream_reader(raw, read_across_frames=True)
    content = reader.read(limit + 1)
    _within(len(content), limit)
    return content


_CODECS: Final[dict[bytes, Callable[[bytes, int], bytes]]] = {
    b"null": _plain,
    b"deflate": _deflate,
    b"snappy": _snappy,
    b"zstandard": _zstandard,
}


def _rows(blocks: Iterator[tuple[int, bytes]], read: Read, stored: StoredFile) -> Iterator[Row]:
    number = 0
    for count, content in blocks:
        if not count and content.startswith(MARK):
            number += 1
            yield None, content, None, None, None, None
        else:
            yield from _data(content, range(number + 1, number + 1 + count), read, stored)
            number += count


def _data(content: bytes, numbers: Iterable[int], read: Read, stored: StoredFile) -> Iterator[Row]:
    place, number = 0, 0
    for number in numbers:
        try:
            row, end = read(content, place)
            if end > len(content):
                raise IndexError("it is longer than its block")  # noqa: TRY301 - one message for all of them
        except (ValueError, IndexError) as error:
            raise LandingError(
                f"{stored.path}: datum {number} of the Avro file is none of its schema ({error}); fetch the file again"
            ) from error
        if len(row[0] or b"") + len(row[1] or b"") > stored.limit:
            row = (*record(row[0], row[1], stored.limit), *row[2:])
        place = end
        yield row
    if place != len(content):
        raise LandingError(
            f"{stored.path}: {len(content) - place} bytes follow datum {number} in its Avro block; fetch the file again"
        )


def _batches(rows: Iterator[Row], batch_messages: int, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    pending: list[Row] = []
    size, first = 0, 1
    for row in rows:
        pending.append(row)
        size += len(row[0] or b"") + len(row[1] or b"")
        if len(pending) >= batch_messages or size >= batch_bytes:
            yield _batch(pending, first)
            first, size, pending = first + len(pending), 0, []
    if pending:
        yield _batch(pending, first)


def _batch(rows: list[Row], first: int) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, list(MESSAGES)[1:], strict=True)]
    return pa.RecordBatch.from_arrays([pa.array(range(first, first + len(rows)), pa.int64()), *arrays], schema=MESSAGES)
