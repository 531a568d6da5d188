"""Dump files as byte streams: opened safely, hashed as they are read, expanded within limits.

The name and the bytes of a dump file are hostile input. A local file is opened once, without following a link, and is
checked on the open descriptor. A compressed file is expanded step by step, so its size does not affect memory.
"""

from __future__ import annotations

import bz2
import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from tidemark.dumps.beyond_limit import LIMIT
from tidemark.dumps.file_states import State, local_state, opened_descriptor, remote_state, state_of
from tidemark.errors import LandingError, UnopenedFileError

EXPANDED_LIMIT: Final = 64 << 30
"""Most bytes of one dump file after expansion."""

RATIO_LIMIT: Final = 200
"""Most expanded bytes for each stored byte, checked beyond ``RATIO_FREE`` bytes and beyond four long messages."""

RATIO_FREE: Final = 64 << 20

READ_STEP: Final = 256 << 10
"""Bytes read at once. Pieces of 1 MiB take six times as long: each time, their memory goes back to the system."""

_REMOTE_BUFFER: Final = 4 << 20

_BZ2_STEP: Final = 64 << 10

_HEAD: Final = 8

_CODECS: Final = (
    ("gzip", re.compile(rb"\x1f\x8b"), (".gz", ".gzip")),
    ("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), (".zst", ".zstd")),
    ("bz2", re.compile(rb"BZh"), (".bz2",)),
)
"""Codec, its magic bytes (RFC 1952 2.3.1; RFC 8878 3.1.1 and 3.1.2), the endings of its file names."""


BINARY: Final = (b"PAR1", b"Obj\x01")
"""First bytes of Parquet, and of Avro object container files."""


T = TypeVar("T")


class StoredFile:
    """The stored bytes of one dump file, read once from start to end and hashed on the way.

    pyarrow takes it as a readable binary file.
    """

    def __init__(
        self,
        path: str,
        source: pa.NativeFile,
        state: Callable[[], State],
        opened_as: State,
        *,
        limit: int = LIMIT,
        size: int | None = None,
    ) -> None:
        self._state = state
        self._opened_as = opened_as
        stored_size = opened_as[0] or 0
        self.path = path
        self.limit = limit
        """Most bytes of one message."""
        self.size = 0
        """Bytes read so far."""
        self.goes_on = size is not None and size < stored_size
        """Whether the file goes on behind the bytes that are read."""
        self.unended = False
        """Whether its last message has no end, so that it may be cut. Its reader knows that behind the last message."""
        self._source = source
        self._bounded = size is not None
        self._expected_size = stored_size if size is None else size
        self._hash = hashlib.sha256()
        self._head = b""
        self._ended = False
        self.closed = False

    def read(self, count: int) -> bytes:
        """Return at most ``count`` bytes; empty at the end of the file.

        Raises:
            LandingError: the store failed; or the file is shorter or longer than when it was opened, so it is still
                being written.
        """
        if self._bounded:
            count = min(count, self._expected_size - self.size)
        with reading(self.path):
            chunk = self._head or self._source.read(count)
        if self._head:
            chunk, self._head = chunk[:count], chunk[count:]
        self._ended = not chunk
        self._hash.update(chunk)
        self.size += len(chunk)
        if self.size > self._expected_size or (not chunk and self.size < self._expected_size):
            raise self._changed()
        return chunk

    def head(self) -> bytes:
        """Return the first bytes of the file. Call it before the first ``read``, which returns them again."""
        with reading(self.path):
            while len(self._head) < _HEAD and (more := self._source.read(_HEAD - len(self._head))):
                self._head += more
        return self._head

    def sha256(self) -> str:
        """Return the hexadecimal SHA-256 of the whole file. It reads the rest of the file first."""
        while not self._ended:
            self.read(READ_STEP)
        return self._hash.hexdigest()

    def sha256_so_far(self) -> str:
        """Return the hexadecimal SHA-256 of the bytes that were read."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Mark the file as closed, for pyarrow. ``opened`` closes the file itself."""
        self.closed = True

    def while_unchanged(self, found: Iterator[T]) -> Iterator[T]:
        """Yield what was found by random access, which reads the file once more after it was hashed.

        Raises:
            LandingError: the file changed since it was opened.
        """
        yield from found
        with reading(self.path):
            state = self._state()
        if state != self._opened_as:
            raise self._changed()

    def _changed(self) -> LandingError:
        return LandingError(f"{self.path}: changed while it was read; land it when its writer is done")

    def random_access(self) -> pa.NativeFile:
        """Return the same file, opened for reading at any place. This does not change the hash or the size."""
        if isinstance(self._source, pa.PythonFile):
            self._source.seek(0)
            return self._source
        filesystem, name = locate(self.path)
        return (filesystem or pafs.LocalFileSystem()).open_input_file(name)


@contextmanager
def opened(path: str, *, limit: int = LIMIT, size: int | None = None) -> Iterator[StoredFile]:
    """Open a dump file for one reading.

    Args:
        path: local, or a URI (``s3://``, ``gs://``, ``hdfs://``, ``file://``).
        limit: most bytes of one message.
        size: read the file as it was when it had this number of bytes; None: all of it.

    Raises:
        UnopenedFileError: it does not exist, is not readable, is a symbolic link, or is not a regular file.
    """
    with reading(path):
        filesystem, name = locate(path)
        remote = None if filesystem is None else filesystem.get_file_info(name)
    if filesystem is None or remote is None:
        descriptor = opened_descriptor(path, name)
        try:
            # Readers of Parquet close the file, and the descriptor has to tell afterwards whether it changed.
            with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
                state = functools.partial(local_state, descriptor)
                yield StoredFile(path, pa.PythonFile(file, mode="r"), state, state(), limit=limit, size=size)
        finally:
            os.close(descriptor)
        return
    if not remote.is_file:
        raise UnopenedFileError(f"{path}: not there, or not a file; give the address of a dump file")
    with reading(path):
        source = filesystem.open_input_stream(name, compression=None, buffer_size=_REMOTE_BUFFER)
    with source:
        state = functools.partial(remote_state, filesystem, name)
        yield StoredFile(path, source, state, state_of(remote), limit=limit, size=size)


def locate(path: str) -> tuple[pafs.FileSystem | None, str]:
    """Return pyarrow's file system of a path or URI (None: the local one) and the name in it."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
        return None, path
    filesystem, name = pafs.FileSystem.from_uri(path)
    return (None if isinstance(filesystem, pafs.LocalFileSystem) else filesystem), name


def expand(stored: StoredFile, step: int) -> Iterator[bytes]:
    """Yield the content of a file in chunks of 1 to ``step`` bytes, expanded when it is gzip, zstd or bzip2.

    Several compressed members that follow one another are one content. No chunk is empty, because readers take an empty
    one for the end.

    Raises:
        LandingError: the stream is damaged or cut, other bytes follow it, the name promises a compression that the
            content does not have, or the expanded bytes exceed a limit.
    """
    expanded = 0
    try:
        for chunk in _EXPANDERS[_codec(stored)](stored, step):
            expanded += len(chunk)
            check_expansion(stored, expanded)
            if chunk:  # an end mark and a member without content expand to nothing
                yield chunk
    except (OSError, pa.ArrowException) as error:
        raise LandingError(
            f"{stored.path}: damaged or cut near stored byte {stored.size} ({error}); fetch the file again"
        ) from error


def check_expansion(stored: StoredFile, expanded: int) -> None:
    """Raise ``LandingError`` if ``expanded`` bytes are too many in total, or for the stored bytes read so far."""
    if expanded > EXPANDED_LIMIT:
        raise LandingError(f"{stored.path}: more than {EXPANDED_LIMIT >> 30} GiB expanded; split the dump")
    free = max(RATIO_FREE, 4 * stored.limit)
    if expanded > free and expanded > RATIO_LIMIT * stored.size:
        raise LandingError(
            f"{stored.path}: expands more than {RATIO_LIMIT} times after {free >> 20} MiB, as a decompression "
            "bomb does; if the dump is sound, expand it before landing"
        )


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn the errors of a store or a codec into a ``LandingError`` that names the file."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise LandingError(f"{path}: cannot be read ({error}); fetch the file again or correct the path") from error


def is_text(stored: StoredFile) -> bool:
    """Return whether the file is neither compressed nor in a binary container, judged by its first bytes."""
    head = stored.head()
    return not head.startswith(BINARY) and not any(magic.match(head) for _, magic, _ in _CODECS)


def _plain(stored: StoredFile, step: int) -> Iterator[bytes]:
    return iter(functools.partial(stored.read, step), b"")


def _by_arrow(codec: str, stored: StoredFile, step: int) -> Iterator[bytes]:
    source = pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), codec)
    return iter(functools.partial(source.read, step), b"")


def _bz2(stored: StoredFile, step: int) -> Iterator[bytes]:
    # Arrow 26 fails on a member without content.
    engine, data = bz2.BZ2Decompressor(), b""
    while data := data or stored.read(_BZ2_STEP):
        if engine.eof:
            engine = bz2.BZ2Decompressor()
        yield engine.decompress(data, step)
        while not (engine.eof or engine.needs_input):
            yield engine.decompress(b"", step)
        data = engine.unused_data
    if not engine.eof:
        raise OSError("the stream ends before its end mark")


_EXPANDERS: Final[dict[str | None, Callable[[StoredFile, int], Iterator[bytes]]]] = {
    None: _plain,
    "gzip": functools.partial(_by_arrow, "gzip"),
    "zstd": functools.partial(_by_arrow, "zstd"),
    "bz2": _bz2,
}


def _codec(stored: StoredFile) -> str | None:
    head = stored.head()
    for codec, magic, _ in _CODECS:
        if magic.match(head):
            return codec
    for codec, _, suffixes in _CODECS:
        if stored.path.lower().endswith(suffixes):
            raise LandingError(
                f"{stored.path}: named {suffixes[0]} but does not begin as {codec}: empty, damaged or misnamed; "
                "fetch the file again, or rename it to what it holds"
            )
    return None
