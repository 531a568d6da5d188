"""Values that stand in two places of a message: whether they are the same, however they are written."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import msgspec

from tidemark.formats._json import NULL, read


def differ(one: bytes, other: bytes) -> bool:
    """Return whether two values of one column are certainly not the same: two texts, two numbers or two flags."""
    if one == other or NULL in {one, other}:
        return False
    value, key = _scalar(one), _scalar(other)
    return type(value) is type(key) and value != key


def _scalar(raw: bytes) -> str | Decimal | bool | None:
    """Return a text, a number or a flag; None for any other value."""
    if raw[:1] == b'"':
        return read(_text, raw)
    if raw[:1] in b"tf[{":
        return {b"true": True, b"false": False}.get(raw)
    try:
        return Decimal(raw.decode())
    except InvalidOperation:  # JSON allows exponents of any length
        return None


_text = msgspec.json.Decoder(str)
