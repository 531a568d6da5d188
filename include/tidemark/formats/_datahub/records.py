"""Parts that both kinds of DataHub topics share: sequences, times, and the wrappings of records.

A record of a BLOB topic is bytes. DataHub's REST interface and most dump tools write them as Base64. An answer of the
*get records* call has several records in an array, ``Records``.
"""

from __future__ import annotations

import binascii
from typing import Annotated

import msgspec

from tidemark.errors import MalformedMessageError
from tidemark.events import TIMES
from tidemark.formats._json import read

Sequence = str | int | None
"""A sequence as the wire has it, nearly always as text."""

Millis = Annotated[int, msgspec.Meta(ge=TIMES.start // 1000, le=TIMES.stop // 1000 - 1)] | None
"""Epoch ms in the years 1 to 9999."""


class BlobRecord(msgspec.Struct, gc=False):
    """A record of a BLOB topic, without ``Sequence`` and ``SystemTime``, which are about its arrival."""

    Data: str
    """Base64."""


class BlobAnswer(msgspec.Struct, gc=False):
    """An answer of *get records*, or one of its records alone."""

    Records: list[BlobRecord] | None = None
    Data: str | None = None


_LEADING = b"\xef\xbb\xbf \t\r\n"

_text = msgspec.json.Decoder(str)

_answer = msgspec.json.Decoder(BlobAnswer)


def sequence(value: Sequence, name: str) -> int:
    """Return a sequence as a number. As text it would not sort, because it gets more digits with time.

    Raises:
        MalformedMessageError: it is missing, is not a whole number, or has more than 99 digits.
    """
    digits = str(value)
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 99):
        shown = "missing" if value is None else f"{digits[:120]!r}"
        raise MalformedMessageError(f"`{name}` is {shown}; it must be a whole number, as the order hangs on it")
    return int(digits)


def micros(millis: int | None) -> int | None:
    """Return epoch ms as epoch µs; None for -1, which rows of an initial load have."""
    return None if millis is None or millis == -1 else millis * 1000


def trimmed(value: bytes) -> bytes:
    """Return a message without a byte order mark and without blanks around it."""
    return value if value[:1] == b"{" else value.strip(_LEADING)


def unwrapped(value: bytes) -> bytes:
    """Return ``value`` if it is a JSON object, or the JSON object that it holds as Base64 (with or without quotes).

    Raises:
        MalformedMessageError: it is neither.
    """
    text = trimmed(value)
    if text[:1] == b"{":
        return text
    return from_base64(read(_text, text) if text[:1] == b'"' else text)


def from_base64(text: str | bytes) -> bytes:
    """Return the JSON object that Base64 text holds (RFC 4648 with padding, as ``java.util.Base64`` writes it).

    Raises:
        MalformedMessageError: it is not Base64, or holds no object.
    """
    try:
        value = binascii.a2b_base64(text, strict_mode=True).strip(_LEADING)
    except ValueError as error:
        raise MalformedMessageError(f"neither a JSON object nor Base64 of one: {error}") from error
    if value[:1] != b"{":
        raise MalformedMessageError(f"the Base64 text holds no JSON object but {value[:40]!r}")
    return value


def blob_records(value: bytes) -> list[bytes]:
    """Return the messages in an answer of *get records*, or in one of its records.

    Raises:
        MalformedMessageError: it is neither, or a record holds no JSON object.
    """
    answer = read(_answer, value)
    if answer.Records is not None:
        return [from_base64(record.Data) for record in answer.Records]
    if answer.Data is not None:
        return [from_base64(answer.Data)]
    raise MalformedMessageError("neither a Blob message with `payload` nor DataHub's `Records` or `Data`")
