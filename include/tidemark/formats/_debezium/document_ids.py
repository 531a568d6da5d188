r"""Ids of flattened documents of MongoDB, as their record keys have them.

The flattening transform converts the record key too: ``{"id": "596e"}``. Where only the value was flattened, the key is
as the connector writes it: text of extended JSON, ``{"id": "{\"$oid\": \"596e\"}"}`` or ``{"id": "\"a\""}``.
"""

from __future__ import annotations

import re

import msgspec

from tidemark.errors import MalformedMessageError

_OBJECT_ID = "$oid"

_INTEGERS = frozenset({"$numberLong", "$numberInt"})

_INTEGER = re.compile(r"-?[0-9]{1,19}")

_encode = msgspec.json.Encoder().encode


def plain(raw: bytes) -> bytes:
    """Return an id as the transform writes it in documents: without wrapping, and without quotation marks of its own.

    Args:
        raw: the JSON of the member ``id``.

    Raises:
        MalformedMessageError: it is the text of an object. The id may be this text, or the object, which documents have
            with other blanks.
    """
    value = _decoded(raw)
    if not isinstance(value, str):
        return _unwrapped(value) or raw
    inner = _decoded(value.encode()) if value[:1] in {"{", '"'} else None
    if isinstance(inner, str):
        return _encode(inner)
    if not isinstance(inner, dict):
        return raw
    unwrapped = _unwrapped(inner)
    if unwrapped is None and _encode(inner) != value.encode():
        raise MalformedMessageError(
            f"the record key has the id {value[:60]!r}, and the deleted document none: is the id this text, or the "
            "object, as the connector writes it? Flatten the record key together with the value"
        )
    return unwrapped or raw


def _decoded(text: bytes) -> object:
    """Return the value of JSON; None for any other text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _unwrapped(value: object) -> bytes | None:
    """Return the JSON of the ObjectId or the whole number that an object wraps; None for any other value."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((name, inner),) = value.items()
    if not isinstance(inner, str):
        return None
    if name == _OBJECT_ID:
        return _encode(inner)
    return inner.encode() if name in _INTEGERS and _INTEGER.fullmatch(inner) else None
