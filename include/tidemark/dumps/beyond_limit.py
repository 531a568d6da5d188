"""Messages that are longer than a message may be: what of them lands, so that each is set aside alone.

Of such a message its first bytes, its length and its checksum are kept, behind a mark that no message of a format
begins with. Decoding sets it aside (``reason``). If the limit is raised later, and the dump file is still there, the
message is read again from the file (``normalization.raised_limits``).
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

LIMIT: Final = 16 << 20
"""Most bytes of one message, where the source file does not say (``max_message_mib``)."""

MOST: Final = 128
"""Most MiB that the limit can be raised to. A task holds a few copies of a message in memory."""

KEPT: Final = 64 << 10
"""Bytes that are kept of a longer message."""

MARK: Final = b"\x00tidemark: beyond the limit\n"
"""Begins what is kept of a longer message."""

REASON: Final = "message_too_long"
"""Reason in the quarantine."""


class Header(msgspec.Struct, frozen=True):
    """What is known of a message that is too long. It stands in one line behind the mark, before the first bytes."""

    size: int
    """Bytes."""
    limit: int
    """Bytes that a message could have when it landed."""
    sha256: str
    """Of the message, hexadecimal."""


class TooLong:
    """Takes a message that is too long, piece by piece, and keeps what is kept of it."""

    def __init__(self, limit: int) -> None:
        self.last = b""
        """The last byte that is not blank."""
        self._limit = limit
        self._size = 0
        self._hash = hashlib.sha256()
        self._head = bytearray()
        self._held = b""
        """A carriage return at the end, which may belong to a line end."""

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        piece = self._held + piece
        self._held = b"\r" if piece.endswith(b"\r") else b""
        self._take(piece.removesuffix(b"\r"))

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._hash.update(piece)
        self._head += piece[: KEPT - len(self._head)]
        self.last = piece.rstrip()[-1:] or self.last

    def kept_line(self) -> bytes:
        """Return what lands in place of a line, whose end is no part of it."""
        self._held = b""
        return self.kept()

    def kept(self, size: int | None = None) -> bytes:
        """Return what lands in place of the message; ``size`` if it has other bytes than those taken."""
        self._take(self._held)
        header = Header(self._size if size is None else size, self._limit, self._hash.hexdigest())
        return b"%s%s\n%s" % (MARK, msgspec.json.encode(header), self._head)


def within(message: bytes, limit: int) -> bytes:
    """Return a message as it is, or what is kept of it if it has more bytes than ``limit``."""
    if len(message) <= limit:
        return message
    long = TooLong(limit)
    long.add(message)
    return long.kept()


def record(key: bytes | None, value: bytes | None, limit: int) -> tuple[bytes | None, bytes]:
    """Return the key of a Kafka record that is too long, and what is kept of its value; a key that is too long goes.

    The limit is for key and value together, so the size that is kept is of both.
    """
    long = TooLong(limit)
    long.add(value or b"")
    kept = long.kept(len(key or b"") + len(value or b""))
    return (key if key is None or len(key) <= KEPT else None), kept


def header_of(message: bytes | None) -> Header | None:
    """Return what is known of a message that was too long; None for any other message."""
    if message is None or not message.startswith(MARK):
        return None
    try:
        return msgspec.json.decode(message[len(MARK) :].partition(b"\n")[0], type=Header)
    except msgspec.MsgspecError:
        return None


def detail(header: Header) -> str:
    """Return why a message is set aside, and what to do."""
    needed = -(-header.size // (1 << 20))
    size = f"the message has {header.size} bytes, and at most {header.limit} are read (SHA-256 {header.sha256[:12]}...)"
    if needed > MOST:
        return f"{size}; `max_message_mib` can be {MOST} at most: leave the large column out at the source"
    return (
        f"{size}: write `max_message_mib: {needed}` or more into the source file, leave the dump file where it was, "
        "and run `tidemark quarantine retry`"
    )
