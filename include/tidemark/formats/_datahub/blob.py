"""The envelope of a DataHub Blob message ("StreamX"), and the table in its ``schema``."""

from __future__ import annotations

import functools
from typing import NamedTuple

import msgspec

from tidemark.errors import MalformedMessageError, UnknownTypeError
from tidemark.events import Column, Encoding, TableId
from tidemark.formats._datahub.records import Millis, Sequence
from tidemark.formats._json import ABSENT, NULL, RowLayout, read

TYPES = {
    "BOOLEAN": ("boolean", Encoding.TEXT),
    "DOUBLE": ("double", Encoding.TEXT),
    "LONG": ("long", Encoding.TEXT),
    "STRING": ("string", Encoding.TEXT),
    "DATE": ("timestamptz", Encoding.TEXT_OR_MILLIS),
    "BYTES": ("binary", Encoding.BASE64),
}
"""``dataColumn.type`` to column type and encoding. Values of any type may be JSON strings."""

DIALECTS = {
    **dict.fromkeys(("mysql", "mariadb", "polardb", "drds", "polardbx", "oceanbase", "adb", "tidb"), "mysql"),
    **dict.fromkeys(("postgresql", "postgres", "hologres"), "postgres"),
    "oracle": "oracle",
    "sqlserver": "tsql",
    "db2": "",
}
"""``dbType``, in lower case, to the sqlglot dialect of its DDL. Empty: the general dialect."""


class DataColumn(msgspec.Struct, gc=False):
    """One column of ``schema.dataColumn``."""

    name: str
    type: str


class SourceTable(msgspec.Struct, gc=False):
    """The table of a change at the source."""

    dbType: str | None = None  # noqa: N815 - the wire's spelling, as below
    dbName: str | None = None  # noqa: N815
    schemaName: str | None = None  # noqa: N815
    tableName: str | None = None  # noqa: N815


class TableSchema(msgspec.Struct, gc=False):
    """``schema``: the same bytes in all messages of a table, until its columns change; ``{}`` in a heartbeat."""

    dataColumn: list[DataColumn] | None = None  # noqa: N815
    primaryKey: tuple[str, ...] | None = None  # noqa: N815
    source: SourceTable | None = None


class RowState(msgspec.Struct, gc=False):
    """``before`` or ``after``."""

    dataColumn: msgspec.Raw = ABSENT  # noqa: N815


class Timestamps(msgspec.Struct, gc=False):
    """Times in epoch ms; -1 in an initial load. ``checkpointTime`` is left out: it says nothing about the change."""

    eventTime: Millis = None  # noqa: N815
    """Time at the source."""
    systemTime: Millis = None  # noqa: N815
    """Time at the capture tool."""


class Ddl(msgspec.Struct, gc=False):
    """``ddl`` of a schema change."""

    text: str | None = None


class Payload(msgspec.Struct, gc=False):
    """``payload``: the change."""

    op: str | None = None
    sequenceId: Sequence = None  # noqa: N815
    before: RowState | None = None
    after: RowState | None = None
    timestamp: Timestamps | None = None
    ddl: Ddl | None = None


class Envelope(msgspec.Struct, gc=False):
    """A message, without ``version`` ("1.0.0" in the text of the document, "0.0.1" in its examples)."""

    payload: Payload | None = None
    schema: msgspec.Raw = ABSENT


_schema = msgspec.json.Decoder(TableSchema)


class Described(NamedTuple):
    """The facts in a ``schema``."""

    table: TableId | None
    layout: RowLayout | None
    """None if it lists no columns."""
    key: tuple[str, ...] | None
    dialect: str
    database: str | None
    schema: str | None
    """Beside a table or without one, which a statement may lack."""


@functools.lru_cache(maxsize=1024)
def described(schema: bytes) -> Described:
    """Return the facts in ``schema``; the same object for the same bytes.

    Raises:
        MalformedMessageError: it is not as in the document, or names a column twice.
        UnknownTypeError: StreamX has no such type.
    """
    table_schema = read(_schema, schema) if schema and schema != NULL else TableSchema()
    source = table_schema.source or SourceTable()
    database, schema_name = source.dbName or None, source.schemaName or None
    table = TableId(database, schema_name, source.tableName) if source.tableName else None
    layout = RowLayout(map(_column, table_schema.dataColumn)) if table_schema.dataColumn else None
    if layout is not None and len(layout.names) < len(layout.shape.columns):
        raise MalformedMessageError("`schema.dataColumn` names a column twice")
    dialect = DIALECTS.get((source.dbType or "mysql").lower(), "")
    return Described(table, layout, table_schema.primaryKey, dialect, database, schema_name)


def _column(column: DataColumn) -> Column:
    if column.type not in TYPES:
        raise UnknownTypeError(f"column '{column.name}' has the type '{column.type}'; StreamX has {', '.join(TYPES)}")
    type_, encoding = TYPES[column.type]
    return Column(name=column.name, type=type_, encoding=encoding)
