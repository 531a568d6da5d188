r"""Documents of MongoDB, as Debezium writes them: the images are texts of extended JSON.

https://debezium.io/documentation/reference/stable/connectors/mongodb.html ("Create events"):

    {"after": "{\"_id\": {\"$numberLong\": \"1004\"},\"first_name\": \"Anne\"}", "op": "c",
     "source": {"connector": "mongodb", "db": "inventory", "collection": "customers", "ts_ms": 1558965508000,
     "ord": 31}}

The id stands in the record key too, as text of extended JSON (``{"id": "1004"}``), and a delete has it nowhere else
unless pre-images are on. Documents of one collection need not have the same fields, so a document is a row of two
columns: ``_id``, the text of the id without blanks (``1004``, ``"a"``, ``{"$oid":"596e..."}``), and ``document``, the
text as sent.
"""

from __future__ import annotations

import msgspec

from tidemark.errors import MalformedMessageError, MissingKeyError
from tidemark.events import Column
from tidemark.formats._json import ABSENT, NULL, RowLayout, members

LAYOUT = RowLayout((Column(name="_id", type="string"), Column(name="document", type="string")))

KEY = ("_id",)

_WRAPPED_INTEGERS = ({"$numberLong"}, {"$numberInt"})

_encode = msgspec.json.Encoder().encode


def row(document: bytes, key: bytes | None) -> bytes:
    """Return the row of a document, whose id is that of the record key or, without one, the document's own.

    Raises:
        MalformedMessageError: the text of no JSON object.
        MissingKeyError: a document without ``_id``.
    """
    found = members(_text(document).encode())
    identity = _of_key(key) if key is not None else bytes(found.get("_id", ABSENT))
    if not identity:
        raise MissingKeyError("a document without `_id`, and no record key that tells it")
    return b'{"_id":%b,"document":%b}' % (_encode(_canonical(identity)), document)


def deleted_row(before: bytes | None, key: bytes | None) -> bytes:
    """Return the row of a deleted document: the pre-image, else the id of the record key."""
    if before is not None:
        return row(before, key)
    if key is None:
        raise MissingKeyError("a delete with neither a pre-image nor a record key: which document, nobody can tell")
    return b'{"_id":%b}' % _encode(_canonical(_of_key(key)))


def _of_key(key: bytes) -> bytes:
    """Return the id in a record key: ``{"id": "1004"}``."""
    told = members(key).get("id")
    if told is None or bytes(told) == NULL:
        raise MissingKeyError("the record key of a document has no `id`")
    return _text(bytes(told)).encode()


def _text(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.MsgspecError as error:
        raise MalformedMessageError(f"not the text of a document: {error}") from error


def _canonical(identity: bytes) -> str:
    """Write an id without blanks and without the wrapping of integers, which record keys leave out."""
    try:
        value = msgspec.json.decode(identity)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedMessageError(f"the id of a document is no extended JSON: {error}") from error
    if isinstance(value, dict) and value.keys() in _WRAPPED_INTEGERS:
        (value,) = value.values()
        return str(value)
    return _encode(value).decode()
