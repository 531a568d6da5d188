"""Rows flattened by Debezium's ``ExtractNewRecordState`` or ``ExtractNewDocumentState``: columns at top level.

https://debezium.io/documentation/reference/stable/transformations/event-flattening.html and
``mongodb-event-flattening.html``:

    {"id": 1004, "first_name": "Anne", "__deleted": "false", "__op": "u", "__table": "customers",
     "__source_ts_ms": 1465581029100}

The transform's settings ``add.fields`` and ``add.fields.prefix`` decide which fields a row has besides its columns. It
must have ``__op`` or, with ``delete.handling.mode=rewrite``, ``__deleted``. Without ``__op``, a row that is not deleted
is an UPDATE of the whole row. Only the fields that the transform adds are metadata: a document may have fields of its
own with two leading underscores (``__v`` of Mongoose).

The id of a MongoDB document is ``_id`` in the document and ``id`` in the record key. A deleted document without
pre-image has no columns, so its id stands in the record key only.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidemark.errors import MalformedMessageError, MissingKeyError, UnknownOperationError
from tidemark.events import Operation
from tidemark.formats._connect import Struct
from tidemark.formats._debezium import document_ids
from tidemark.formats._debezium.deleted_rows import with_key
from tidemark.formats._debezium.log_places import Number
from tidemark.formats._debezium.source import Source
from tidemark.formats._json import NULL, members

_OPERATIONS = {
    "c": Operation.INSERT,
    "u": Operation.UPDATE,
    "d": Operation.DELETE,
    "r": Operation.SNAPSHOT,
}

DELETED = "__deleted"
"""The field of rewritten deletes. It has this name whatever the prefix is."""

_IS_DELETED: dict[object, bool] = {True: True, "true": True, False: False, "false": False, msgspec.UNSET: False}
"""Values of ``__deleted``: booleans of documents, texts of rows. The transform writes no others."""

_ENVELOPE = frozenset({"op", "ts_ms", "ts_us", "ts_ns"})
"""Fields that the transform takes from the envelope. It takes any other simple name from ``source`` or
``transaction``."""

_SOURCE = frozenset(Source.__struct_fields__) - {"name", "namespace"} | {
    "ts_ns", "txId", "xmin", "gtid", "server_id", "thread", "lcr_position", "start_scn", "start_ts_ms",
    "redo_sql", "row_id", "rs", "lsid", "txnNumber", "wallTime", "user_name", "userName", "shard", "vgtid", "origin",
    "origin_lsn", "commit_ts", "cluster", "cluster_id",
    "project_id", "instance_id", "change_stream_name", "server_transaction_id", "low_watermark", "read_at_timestamp",
    "number_records_in_transaction", "transaction_tag", "system_transaction", "partition_token", "mod_number",
    "is_last_record_in_transaction_in_partition", "number_of_partitions_in_transaction",
}  # fmt: skip
"""Fields of ``source`` blocks that are metadata under their simple name (``__table``)."""

_ONLY_QUALIFIED = frozenset({"version", "name", "query"})
"""Fields of ``source`` blocks that are metadata as ``__source_version`` only: a column may well be called
``__version``."""

_TRANSACTION = frozenset({"total_order", "data_collection_order"})

_UPDATE_DESCRIPTION = frozenset({"removedFields", "updatedFields", "truncatedArrays"})

_NOTHING = msgspec.Raw(NULL)


class Fields(msgspec.Struct, gc=False):
    """The added fields that do not come from the ``source`` block."""

    op: str | msgspec.UnsetType | None = msgspec.UNSET
    deleted: bool | str | msgspec.UnsetType | None = msgspec.UNSET
    ts_ms: Number = None
    ts_us: Number = None


class AddedFields(NamedTuple):
    """The fields that the transform adds, by their names in a row."""

    envelope: Mapping[str, str]
    """To a field of the envelope."""
    source: Mapping[str, str]
    """To a field of the ``source`` block."""
    others: frozenset[str]
    """Fields that nothing is read from."""

    def marks(self, found: Mapping[str, object]) -> bool:
        """Return whether ``found`` has a field that only a flattened row has: its operation, or ``__deleted``."""
        return DELETED in found or any(name in found for name, field in self.envelope.items() if field == "op")


class FlatRow(NamedTuple):
    """A flattened row, split into its parts."""

    image: bytes
    columns: tuple[str, ...]
    operation: Operation
    source: Source
    ts_ms: Number
    ts_us: Number


@functools.lru_cache(maxsize=64)
def added(setting: str | None, prefix: str) -> AddedFields:
    """Return the fields that the transform adds.

    Args:
        setting: its ``add.fields``; None for the usual names.
        prefix: its ``add.fields.prefix``.
    """
    if setting is None:
        simple = {f"{prefix}{field}": field for field in _SOURCE - _ENVELOPE}
        qualified = {f"{prefix}source_{field}": field for field in _SOURCE | _ONLY_QUALIFIED}
        others = {
            *(f"{prefix}{field}" for field in _TRANSACTION),
            *(f"{prefix}transaction_{field}" for field in {"id", *_TRANSACTION}),
            *(f"{prefix}updateDescription_{field}" for field in _UPDATE_DESCRIPTION),
        }
        return AddedFields({f"{prefix}{field}": field for field in _ENVELOPE}, simple | qualified, frozenset(others))
    fields = [_reference(item.strip(), prefix) for item in setting.split(",") if item.strip()]
    return AddedFields(
        envelope={name: field for name, struct, field in fields if struct == ""},
        source={name: field for name, struct, field in fields if struct == "source"},
        others=frozenset(name for name, struct, _ in fields if struct not in {"", "source"}),
    )


def _reference(item: str, prefix: str) -> tuple[str, str, str]:
    """Return the name in a row, the block and the field of one item: ``op``, ``source.lsn``, ``source.ts_ms:at``."""
    path, _, renamed = item.partition(":")
    struct, dot, field = path.rpartition(".")
    if not dot:
        struct = "" if field in _ENVELOPE else "transaction" if field in {"id", *_TRANSACTION} else "source"
    return f"{prefix}{renamed or path.replace('.', '_')}", struct, field


@functools.lru_cache(maxsize=1024)
def metadata_of(names: tuple[str, ...], setting: str | None, prefix: str) -> frozenset[str]:
    """Return which of ``names`` the transform added. For the settings see ``added``."""
    fields = added(setting, prefix)
    return frozenset(
        name
        for name in names
        if name == DELETED or name in fields.envelope or name in fields.source or name in fields.others
    )


@functools.lru_cache(maxsize=1024)
def source_fields(left_out: frozenset[str], setting: str | None, prefix: str) -> frozenset[str]:
    """Return the fields of the ``source`` block among what the transform added. For the settings see ``added``."""
    fields = added(setting, prefix).source
    return frozenset(fields[name] for name in left_out if name in fields)


def read_row(image: bytes, found: Mapping[str, msgspec.Raw], left_out: frozenset[str], fields: AddedFields) -> FlatRow:
    """Return the parts of a flattened row.

    Args:
        image: the row.
        found: its members.
        left_out: its members that are metadata.
        fields: what the transform adds.

    Raises:
        UnknownOperationError: the operation is not one of c, u, d, r, or ``__deleted`` is neither true nor false.
        MalformedMessageError: an added field has another type.
    """
    envelope, block = {}, {}
    for name in left_out:
        if name == DELETED:
            envelope["deleted"] = found[name]
        elif name in fields.envelope:
            envelope[fields.envelope[name]] = found[name]
        elif name in fields.source:
            block[fields.source[name]] = found[name]
    try:
        head = msgspec.json.decode(msgspec.json.encode(envelope), type=Fields)
        source = msgspec.json.decode(msgspec.json.encode(block), type=Source)
    except msgspec.MsgspecError as error:
        raise MalformedMessageError(f"a field that flattening adds has the wrong type: {error}") from error
    operation = _operation(head)
    columns = tuple(name for name in found if name not in left_out)
    return FlatRow(image, columns, operation, source, head.ts_ms, head.ts_us)


def _operation(head: Fields) -> Operation:
    """Return the operation of a row. A wrong guess would turn a delete into an update, and bring the row back."""
    operation = Operation.UPDATE if head.op is msgspec.UNSET else _OPERATIONS.get(head.op or "")
    if operation is None:
        raise UnknownOperationError(f"`__op` is {_shown(head.op)}; a flattened row has {', '.join(_OPERATIONS)}")
    deleted = _IS_DELETED.get(head.deleted)
    if deleted is None:
        raise UnknownOperationError(f"`{DELETED}` is {_shown(head.deleted)}; the transform writes true and false")
    return Operation.DELETE if deleted else operation


def _shown(value: object) -> str:
    return "null" if value is None else repr(value)[:80]


def key_of(key: Struct | None, row: FlatRow, found: Mapping[str, msgspec.Raw]) -> Struct | None:
    """Return the record key with the names of the row's columns: the ``id`` of a document is its column ``_id``.

    Raises:
        MalformedMessageError: a deleted document has its id in the key alone, and it may mean either of two.
    """
    if key is None or key.names != ("id",) or not _is_document(row):
        return key
    if row.operation is Operation.DELETE and bytes(found.get("_id", _NOTHING)) == NULL:
        return document_key(key)
    return _with_id(bytes(members(key.image)["id"]))


def _is_document(row: FlatRow) -> bool:
    """Return whether a row with the record key ``id`` is a document, whose id is in ``_id``.

    A row without columns is one, because deletes of tables have at least their key.
    """
    if "id" in row.columns and not (row.source.collection or row.source.connector == "mongodb"):
        return False
    return "_id" in row.columns or ("id" not in row.columns and (not row.columns or row.source.collection is not None))


def document_key(key: Struct) -> Struct:
    """Return the record key ``id`` of a document under the name ``_id``, with the id as documents have it."""
    return _with_id(document_ids.plain(bytes(members(key.image)["id"])))


def _with_id(raw: bytes) -> Struct:
    return Struct(b'{"_id":%b}' % raw, None, ("_id",))


def deleted_image(row: FlatRow, key: Struct | None) -> bytes:
    """Return the image of a deleted row, with those key columns that only the record key has.

    Args:
        row: the deleted row.
        key: its record key, with the names of columns.

    Raises:
        MissingKeyError: nothing says which row it is.
    """
    if key is None:
        if not row.columns:
            raise MissingKeyError("a delete with columns in neither row nor record key: which row, nobody can tell")
        return row.image
    return with_key(row.image, key.image, key.names)
