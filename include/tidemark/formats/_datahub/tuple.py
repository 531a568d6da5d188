"""The columns that producers add to rows of a DataHub TUPLE topic, and the types in a topic's ``RecordSchema``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import ClassVar, NamedTuple

import msgspec

from tidemark.errors import MalformedMessageError, UnknownTypeError
from tidemark.events import Column, Encoding
from tidemark.formats._datahub.records import Sequence
from tidemark.formats._json import RowLayout, read

TYPES = {
    "TINYINT": "int",
    "SMALLINT": "int",
    "INTEGER": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BOOLEAN": "boolean",
    "TIMESTAMP": "timestamptz",
    # without a precision: 20 digits before the point and 18 behind it, unless the source file says otherwise
    "DECIMAL": "decimal(38, 18)",
}
"""Type of a field in a ``RecordSchema`` to column type. A TIMESTAMP counts µs since 1970."""


class DataWorks(msgspec.Struct, gc=False):
    """The added columns of DataWorks."""

    PREFIX: ClassVar[str] = ""
    """Prefix of the source's own columns."""
    database: ClassVar[None] = None

    sequence: Sequence = msgspec.field(name="_sequence_id_", default=None)
    operation: str | None = msgspec.field(name="_operation_type_", default=None)
    time: str | int | None = msgspec.field(name="_excute_time_", default=None)  # sic
    table: str | None = msgspec.field(name="_source_table_", default=None)
    before: str | None = msgspec.field(name="_before_image_", default=None)
    after: str | None = msgspec.field(name="_after_image_", default=None)


class Dts(msgspec.Struct, gc=False):
    """The added columns of DTS by its old naming rule, which adds a prefix to the source's own columns too."""

    PREFIX: ClassVar[str] = "dts_"

    sequence: Sequence = msgspec.field(name="dts_record_id", default=None)
    operation: str | None = msgspec.field(name="dts_operation_flag", default=None)
    time: str | int | None = msgspec.field(name="dts_utc_timestamp", default=None)
    database: str | None = msgspec.field(name="dts_db_name", default=None)
    table: str | None = msgspec.field(name="dts_table_name", default=None)
    before: str | None = msgspec.field(name="dts_before_flag", default=None)
    after: str | None = msgspec.field(name="dts_after_flag", default=None)
    instance: msgspec.Raw = msgspec.field(name="dts_instance_id", default=msgspec.Raw())


class NewDts(msgspec.Struct, gc=False):
    """The added columns of DTS by its new naming rule."""

    PREFIX: ClassVar[str] = ""

    sequence: Sequence = msgspec.field(name="new_dts_sync_dts_record_id", default=None)
    operation: str | None = msgspec.field(name="new_dts_sync_dts_operation_flag", default=None)
    time: str | int | None = msgspec.field(name="new_dts_sync_dts_utc_timestamp", default=None)
    database: str | None = msgspec.field(name="new_dts_sync_dts_db_name", default=None)
    table: str | None = msgspec.field(name="new_dts_sync_dts_table_name", default=None)
    before: str | None = msgspec.field(name="new_dts_sync_dts_before_flag", default=None)
    after: str | None = msgspec.field(name="new_dts_sync_dts_after_flag", default=None)
    instance: msgspec.Raw = msgspec.field(name="new_dts_sync_dts_instance_id", default=msgspec.Raw())


Added = DataWorks | Dts | NewDts


class AddedColumns(NamedTuple):
    """One set of added columns."""

    decoder: msgspec.json.Decoder[Added]
    wire: Mapping[str, str]
    """Field of the structs above to name of the column."""
    prefix: str


def _names(added: type[Added]) -> AddedColumns:
    wire = dict(zip(added.__struct_fields__, added.__struct_encode_fields__, strict=True))
    return AddedColumns(decoder=msgspec.json.Decoder(added), wire=wire, prefix=added.PREFIX)


SETS = (_names(DataWorks), _names(NewDts), _names(Dts))
"""The sets, in the order in which their sequence column is looked for in a row."""


class Field(msgspec.Struct, gc=False):
    """One field of a ``RecordSchema``, without ``notnull``."""

    name: str
    type: str


class RecordSchema(msgspec.Struct, gc=False):
    """The schema of a topic."""

    fields: list[Field]


_schema = msgspec.json.Decoder(RecordSchema)


@functools.lru_cache(maxsize=1024)
def record_types(schema: bytes) -> Mapping[str, str]:
    """Return the fields of a ``RecordSchema`` in their order, with the column types; the same object for equal bytes.

    Raises:
        MalformedMessageError: it is not such a schema, or names a field twice.
        UnknownTypeError: TUPLE topics have no such type.
    """
    fields = read(_schema, schema).fields
    for field in fields:
        if field.type.upper() not in TYPES:
            raise UnknownTypeError(f"field '{field.name}' has the type '{field.type}'; a topic has {', '.join(TYPES)}")
    types = {field.name: TYPES[field.type.upper()] for field in fields}
    if len(types) < len(fields):
        raise MalformedMessageError("`RecordSchema` names a field twice")
    return types


class RowReading(NamedTuple):
    """The way to read rows with one set of columns."""

    added: AddedColumns
    columns: tuple[str, ...]
    """Names of the source's own columns."""
    pick: Callable[[Mapping[str, msgspec.Raw]], tuple[msgspec.Raw, ...]]
    """The function that returns their values from a row."""
    layout: RowLayout


@functools.lru_cache(maxsize=1024)
def plan(found: tuple[str, ...], schema: bytes | None) -> RowReading | None:
    """Return the way to read rows with the columns ``found``; None if they have no sequence column.

    Args:
        found: the columns in their order.
        schema: the topic's ``RecordSchema``, if it is known.

    Raises:
        MalformedMessageError: two columns have the same name without the prefix.
        DecodeError: as for ``record_types``.
    """
    added = next((names for names in SETS if names.wire["sequence"] in found), None)
    if added is None:
        return None
    types = record_types(schema) if schema else {}
    metadata = frozenset(added.wire.values())
    own = tuple(name for name in found if name not in metadata)
    columns = tuple(name.removeprefix(added.prefix) or name for name in own)
    if len(set(columns)) < len(columns):
        raise MalformedMessageError(f"without the prefix {added.prefix} two columns have one name: {', '.join(own)}")
    layout = RowLayout(
        Column(name=column, type=types.get(name), encoding=Encoding.TEXT_OR_MICROS)
        for name, column in zip(own, columns, strict=True)
    )
    return RowReading(added, columns, _picker(own), layout)


def _picker(names: tuple[str, ...]) -> Callable[[Mapping[str, msgspec.Raw]], tuple[msgspec.Raw, ...]]:
    """Return an ``itemgetter`` that returns a tuple for a single name, and for none, too."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda row: tuple(row[name] for name in names)
