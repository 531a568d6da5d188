"""Rows flattened by Debezium's ``ExtractNewRecordState``: columns at top level, metadata in fields named ``__...``.

https://debezium.io/documentation/reference/stable/transformations/event-flattening.html:

    {"id": 1004, "first_name": "Anne", "__deleted": "false", "__op": "u", "__table": "customers",
     "__source_ts_ms": 1465581029100}

The transform's setting ``add.fields`` decides which fields a row has. It must have ``__op`` or, with
``delete.handling.mode=rewrite``, ``__deleted``. Without ``__op``, a row that is not deleted is an UPDATE of the whole
row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidemark.errors import MalformedMessageError, UnknownOperationError
from tidemark.events import Operation
from tidemark.formats._debezium.source import Number, Source

_OPERATIONS = {
    "c": Operation.INSERT,
    "u": Operation.UPDATE,
    "d": Operation.DELETE,
    "r": Operation.SNAPSHOT,
}


class Fields(msgspec.Struct, rename=lambda name: f"__{name}", gc=False):
    """The added fields that do not come from the ``source`` block."""

    op: str | None = None
    deleted: bool | str | None = None
    ts_ms: Number = None


class FlatRow(NamedTuple):
    """A flattened row, split into its parts."""

    image: bytes
    columns: tuple[str, ...]
    operation: Operation
    source: Source
    ts_ms: Number


_fields = msgspec.json.Decoder(Fields)

_source_fields = frozenset(Source.__struct_fields__)


def read_row(image: bytes, found: Mapping[str, msgspec.Raw]) -> FlatRow:
    """Return the parts of a flattened row, whose members are ``found``.

    Raises:
        UnknownOperationError: ``__op`` is not one of c, u, d, r.
        MalformedMessageError: an added field has another type.
    """
    try:
        fields = _fields.decode(image)
        source = msgspec.json.decode(msgspec.json.encode(_source(found)), type=Source)
    except msgspec.MsgspecError as error:
        raise MalformedMessageError(f"a field that flattening adds has the wrong type: {error}") from error
    deleted = fields.deleted in {True, "true"}
    operation = Operation.DELETE if deleted else _OPERATIONS.get(fields.op or "u")
    if operation is None:
        raise UnknownOperationError(f"`__op` is {fields.op!r}; a flattened row has {', '.join(_OPERATIONS)}")
    columns = tuple(name for name in found if not name.startswith("__"))
    return FlatRow(image, columns, operation, source, fields.ts_ms)


def _source(found: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """Return the added members of the ``source`` block. Both ``__table`` and ``__source_table`` are ``table``."""
    block = {}
    for name, raw in found.items():
        field = name.removeprefix("__").removeprefix("source_")
        if name.startswith("__") and field in _source_fields and name != "__ts_ms":
            block[field] = raw
    return block
