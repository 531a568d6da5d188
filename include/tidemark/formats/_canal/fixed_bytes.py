"""Bytes of BINARY columns, whose zeros at the end MySQL's log leaves out.

A key of such bytes has to be the same in a row of an initial load, which was selected, and in a change of the row.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from tidemark.formats._canal import byte_lists
from tidemark.formats._json import NULL, members, read

_BINARY = re.compile(r"\s*binary\b\s*(?:\(\s*(\d{1,3})\s*\))?", re.IGNORECASE)

_WITHOUT_LENGTH = re.compile(r"\s*var(?:binary|char)\b(?!\s*\()", re.IGNORECASE)
"""A type that MySQL does not have without a length: the producer leaves lengths out, as Huawei DRS does."""

_types = msgspec.json.Decoder(dict[str, str])

_text = msgspec.json.Decoder(str)

_NONE: Mapping[str, int] = MappingProxyType({})


def as_stored(image: bytes, columns: tuple[str, ...], types: msgspec.Raw, writing: byte_lists.Writing) -> bytes:
    """Return a row with its bytes as the database holds them, each one Latin-1 character.

    Args:
        image: the row.
        columns: its columns of bytes.
        types: ``mysqlType``.
        writing: how their values are written.

    Raises:
        UnreadableValueError: as for ``byte_lists.rewritten``.
    """
    image = byte_lists.rewritten(image, columns, writing)
    widths = _widths(bytes(types), lengths=writing != "number_list")
    return _padded(image, widths) if widths else image


@functools.lru_cache(maxsize=1024)
def _widths(types: bytes, *, lengths: bool) -> Mapping[str, int]:
    """Return the number of bytes of each BINARY column, from ``mysqlType``.

    BINARY alone has one byte, unless the producer leaves lengths out: then how many it has is not known.
    """
    if b"inary" not in types and b"INARY" not in types:
        return _NONE
    texts = read(_types, types)
    lengths = lengths and not any(map(_WITHOUT_LENGTH.match, texts.values()))
    found = {name: _BINARY.match(text) for name, text in texts.items()}
    return {name: int(match[1] or 1) for name, match in found.items() if match and (match[1] or lengths)}


def _padded(image: bytes, widths: Mapping[str, int]) -> bytes:
    """Return ``image`` with the zeros that its BINARY columns lack; the same object if they lack none."""
    found = members(image)
    texts = {name: _text.decode(found[name]) for name in widths if bytes(found.get(name, NULL))[:1] == b'"'}
    short = {name: text for name, text in texts.items() if len(text) < widths[name]}
    if not short:
        return image
    whole = {name: msgspec.Raw(msgspec.json.encode(text.ljust(widths[name], "\0"))) for name, text in short.items()}
    return msgspec.json.encode(found | whole)
