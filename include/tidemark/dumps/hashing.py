"""The checksums of a dump file: of all of it, of the part that was landed before, and of its whole lines."""

from __future__ import annotations

import hashlib

import msgspec

from tidemark.dumps.beyond_limit import LIMIT
from tidemark.dumps.json_text import is_valid
from tidemark.dumps.stored_file import READ_STEP, StoredFile, is_text, opened
from tidemark.errors import LandingError


class ToHash(msgspec.Struct, frozen=True, kw_only=True):
    """One dump file that may have to land."""

    path: str
    landed: int = 0
    """Bytes that it had when it was landed before; 0 if it was not."""
    size: int | None = None
    """Bytes that it had when it was listed, if it may grow while it is read. Only these are read."""
    limit: int = LIMIT
    """Most bytes of one message: a longer line shows no end of its own."""


class Hashed(msgspec.Struct, frozen=True, kw_only=True):
    """The SHA-256 of a dump file, or the problem why it is refused."""

    path: str
    size: int = 0
    """Bytes that the checksum is of."""
    checksum: str = ""
    landed: str = ""
    """Checksum of the part that was landed before; empty if there is none."""
    waiting: int = 0
    """Bytes behind ``size`` that are a line without its end."""
    problem: str | None = None


def hashed(file: ToHash) -> Hashed:
    """Return the checksums of a dump file. A file that may grow is hashed up to its last whole message."""
    try:
        with opened(file.path, size=file.size) as stored:
            lines = _Lines(file.limit) if file.size is not None and is_text(stored) else None
            landed = _read(stored, file.landed, lines)
            checksum = stored.sha256()
            if lines is not None and not lines.are_whole():
                return Hashed(
                    path=file.path, size=lines.size, checksum=lines.checksum(), landed=landed, waiting=lines.waiting
                )
            return Hashed(path=file.path, size=stored.size, checksum=checksum, landed=landed)
    except LandingError as error:
        return Hashed(path=file.path, problem=str(error))


def _read(stored: StoredFile, landed: int, lines: _Lines | None) -> str:
    """Read all of a file; return the checksum of its first ``landed`` bytes, nothing if it has fewer."""
    found = ""
    while chunk := stored.read(min(READ_STEP, landed - stored.size) if stored.size < landed else READ_STEP):
        if lines is not None:
            lines.add(chunk)
        if stored.size == landed:
            found = stored.sha256_so_far()
    return found


class _Lines:
    """Takes a text piece by piece, and hashes its whole lines."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.size = 0
        """Bytes of the whole lines."""
        self.waiting = 0
        """Bytes behind the last line end."""
        self._text = hashlib.sha256()
        self._lines = self._text.copy()
        self._last = bytearray()

    def add(self, chunk: bytes) -> None:
        """Take the next piece."""
        end = chunk.rfind(b"\n") + 1
        if end:
            self._text.update(chunk[:end])
            self._lines = self._text.copy()
            self.size += self.waiting + end
            self.waiting = 0
            self._last.clear()
        rest = chunk[end:]
        self._text.update(rest)
        self.waiting += len(rest)
        self._last += rest[: self._limit - len(self._last)]

    def are_whole(self) -> bool:
        """Return whether nothing is behind them, or only a JSON object or array, which shows its own end."""
        last = self._last.strip()
        return self.waiting <= self._limit and (not last or (last[:1] in b"{[" and is_valid(bytes(last))))

    def checksum(self) -> str:
        """Return their hexadecimal SHA-256."""
        return self._lines.hexdigest()
