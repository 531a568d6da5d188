r"""Documents of MongoDB, as Debezium writes them: the images are texts of extended JSON.

https://debezium.io/documentation/reference/stable/connectors/mongodb.html ("Create events"):

    {"after": "{\"_id\": {\"$numberLong\": \"1004\"},\"first_name\": \"Anne\"}", "op": "c",
     "source": {"connector": "mongodb", "db": "inventory", "collection": "customers", "ts_ms": 1558965508000,
     "ord": 31}}

The id also stands in the record key, as text of extended JSON (``{"id": "1004"}``). Without pre-images, a delete has it
nowhere else. Documents of one collection may have different fields, so a document becomes a row of two columns:
``_id``, the text of the id without blanks (``1004``, ``"a"``, ``{"$oid":"596e..."}``), and ``document``, the text as
sent.
"""

from __future__ import annotations

import msgspec

from tidemark.errors import MalformedMessageError, MissingKeyError
from tidemark.events import Column, Operation
from tidemark.formats._debezium.envelope import Row
from tidemark.formats._json import ABSENT, NULL, RowLayout, members

LAYOUT = RowLayout((Column(name="_id", type="string"), Column(name="document", type="string")))

KEY = ("_id",)

_WRAPPED_INTEGERS = ({"$numberLong"}, {"$numberInt"})

_BARE = "; the connector writes the id as text of extended JSON, so a transform or a converter of the key changed it"

_encode = msgspec.json.Encoder().encode


def row_of(operation: Operation, before: bytes | None, after: bytes | None, key: bytes | None) -> Row:
    """Return the row of a document.

    Args:
        operation: of the envelope.
        before: the pre-image, where there is one.
        after: the document.
        key: the struct of the record key, where there is one.

    Raises:
        MalformedMessageError: ``after`` is missing, or a text is not a JSON object.
        MissingKeyError: nothing gives the document's id.
    """
    if operation is Operation.DELETE:
        return Row(operation, _deleted_row(before, key), None, LAYOUT, key=KEY)
    if after is None:
        raise MalformedMessageError("`after` is missing or null; set capture.mode to change_streams_update_full")
    old = _row(before, key) if before is not None and operation is Operation.UPDATE else None
    return Row(operation, old, _row(after, key), LAYOUT, key=KEY)


def _row(document: bytes, key: bytes | None) -> bytes:
    """Return the image of a document. The id is taken from the record key or, without a key, from the document."""
    found = members(_text(document).encode())
    own = bytes(found.get("_id", ABSENT))
    identity = _of_key(key) if key is not None else own
    if not identity:
        raise MissingKeyError("a document without `_id`, and no record key that tells it")
    canonical = _canonical(identity)
    if own[:1] == b'"' and canonical[:1] != '"':  # `1004` and `"1004"` are two documents
        raise MalformedMessageError(f"the record key has the id {canonical[:60]}, and the document {own[:60]!r}{_BARE}")
    return b'{"_id":%b,"document":%b}' % (_encode(canonical), document)


def _deleted_row(before: bytes | None, key: bytes | None) -> bytes:
    """Return the image of a deleted document: the pre-image, or else the id of the record key alone."""
    if before is not None:
        return _row(before, key)
    if key is None:
        raise MissingKeyError("a delete with neither a pre-image nor a record key: which document, nobody can tell")
    return b'{"_id":%b}' % _encode(_canonical(_of_key(key)))


def _of_key(key: bytes) -> bytes:
    """Return the id in a record key: ``{"id": "1004"}``."""
    identity = members(key).get("id")
    if identity is None or bytes(identity) == NULL:
        raise MissingKeyError("the record key of a document has no `id`")
    return _text(bytes(identity)).encode()


def _text(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except msgspec.MsgspecError as error:
        raise MalformedMessageError(f"not the text of a document: {error}") from error


def _canonical(identity: bytes) -> str:
    """Return an id without blanks, and without the wrapping of integers, which record keys do not have."""
    try:
        value = msgspec.json.decode(identity)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedMessageError(f"the id of a document is no extended JSON: {error}{_BARE}") from error
    if isinstance(value, dict) and value.keys() in _WRAPPED_INTEGERS:
        (value,) = value.values()
        return str(value)
    return _encode(value).decode()
