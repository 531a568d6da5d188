"""Bytes that are written as lists of signed numbers: ``"[106, 103, -1, 0]"``, as Huawei DRS writes them.

Canal itself writes each byte as one Latin-1 character, and a BLOB may well hold the text ``[1, 2]``. So a text that can
be read in both ways is refused until the option ``bytes`` says which one is meant, and so is a list of unsigned numbers
(``[200]``). A JSON array has one meaning only.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tidemark.errors import UnreadableValueError
from tidemark.formats._json import NULL, members

Writing = Literal["latin1", "number_list"] | None
"""How a producer writes bytes. None: not known."""

_LIST = re.compile(r"\[\s*(?:-?\d{1,3}\s*(?:,\s*-?\d{1,3}\s*)*)?\]", re.ASCII)

_BRACKETS = (b"[", b"u005b", b"u005B")

_encode = msgspec.json.encode


def rewritten(image: bytes, columns: tuple[str, ...], writing: Writing) -> bytes:
    """Return ``image`` with the lists in ``columns`` written as Latin-1 text; the same object if it has none.

    Args:
        image: a row.
        columns: its columns of bytes.
        writing: how their values are written.

    Raises:
        UnreadableValueError: a value is no list of bytes, or it may be a list as well as the bytes themselves.
    """
    if writing == "latin1" or (writing is None and not any(map(image.__contains__, _BRACKETS))):
        return image
    found = members(image)
    lists = {
        name: _latin1(name, bytes(found[name]), writing)
        for name in columns
        if name in found and _is_list(bytes(found[name]), writing)
    }
    return _encode(found | lists) if lists else image


def _is_list(value: bytes, writing: Writing) -> bool:
    """Return whether a value is to be read as a list. With ``number_list``, every value other than null is."""
    if value == NULL:
        return False
    return writing == "number_list" or value[:1] == b"[" or _numbers(_text(value), most=255) is not None


def _latin1(name: str, value: bytes, writing: Writing) -> msgspec.Raw:
    """Return the bytes of a list as JSON text in which each byte is one character."""
    is_text = value[:1] != b"["
    shown = value[:80].decode(errors="replace")
    if is_text and writing is None:
        raise UnreadableValueError(
            f"column '{name}' has bytes written as {shown}: a list of bytes, or the text itself? Write the option "
            "`bytes: number_list` (Huawei DRS) or `bytes: latin1` (Canal) in the source file, then retry"
        )
    numbers = _numbers(_text(value) if is_text else value.decode(errors="replace"))
    if numbers is None:
        raise UnreadableValueError(f"column '{name}' has bytes written as {shown}, which is no list of signed bytes")
    return msgspec.Raw(_encode(numbers.decode("latin-1")))


def _text(value: bytes) -> str:
    """Return the text of a JSON string; "" for any other value."""
    try:
        return msgspec.json.decode(value, type=str)
    except msgspec.MsgspecError:
        return ""


def _numbers(text: str, most: int = 127) -> bytes | None:
    """Return the bytes that a list of numbers from -128 to ``most`` names; None if the text is no such list."""
    if _LIST.fullmatch(text) is None:
        return None
    numbers = [int(number) for number in text.strip("[] \t\r\n").split(",") if number.strip()]
    if not all(-128 <= number <= most for number in numbers):
        return None
    return bytes(number & 0xFF for number in numbers)
