"""What Replicate's messages have, in JSON and in Avro: headers and images of a row, and the structure of a table.

"Metadata and data messages" of https://help.qlik.com (Qlik Replicate, once Attunity). A table gets a new schema id and
``tableVersion`` with every change of its structure; there is no DDL. The same structure is told again whenever a task
starts, so what is kept of a metadata message leaves out when and by which server it was written.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict

from tidemark.errors import MalformedMessageError, MissingTableError
from tidemark.events import TableId
from tidemark.formats._json import ABSENT, members, read

MAGIC = "atMSG"

METADATA, DATA = "MD", "DT"

METADATA_MARK = b"tableStructure"


class Options(BaseModel):
    """What Replicate's messages cannot tell."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str | None = None
    """Table (``schema.table``) of messages that name none, by a known schema id or otherwise."""
    mask_byte_order: Literal["big", "little"] = "big"
    """``big``: a mask is one hexadecimal number, as Replicate writes it. The document says little-endian."""


class Headers(msgspec.Struct, gc=False):
    """The headers of a data message. ``streamPosition`` is left out: ``changeSequence`` orders."""

    operation: str | None = None
    changeSequence: str | int | None = None  # noqa: N815 - the wire's spelling, as below
    timestamp: str | None = None
    """When the source changed, UTC."""
    transactionId: str | None = None  # noqa: N815
    changeMask: str | None = None  # noqa: N815
    """Columns that changed; of a DELETE those of the key."""
    columnMask: str | None = None  # noqa: N815
    """Columns that the message has; any other is unknown, whatever ``data`` shows."""
    externalSchemaId: str | None = None  # noqa: N815
    transactionEventCounter: str | int | None = None  # noqa: N815
    transactionLastEvent: str | bool | None = None  # noqa: N815
    schema: str | None = None
    table: str | None = None


class Row(msgspec.Struct, gc=False):
    """A data message without its envelope: images as JSON, None for null."""

    headers: Headers
    data: bytes | None = None
    before: bytes | None = None
    schema: str | None = None
    table: str | None = None
    id: str | None = None
    """``messageSchemaId`` of the envelope."""

    @property
    def named(self) -> TableId | None:
        """The table that the message itself names."""
        name = self.table or self.headers.table
        return TableId(None, self.schema or self.headers.schema or None, name) if name else None

    @property
    def image(self) -> bytes | None:
        """The one image that any message has."""
        return self.before if self.data is None else self.data


COLUMN_LIMIT = 10_000

ORDINAL_LIMIT = 100_000


class Lineage(msgspec.Struct, gc=False, omit_defaults=True):
    """Where the data comes from."""

    schema: str | None = None
    table: str | None = None
    tableVersion: int | None = None  # noqa: N815 - the wire's spelling, as below
    timestamp: str | None = None
    """When the message was written."""


class TableColumn(msgspec.Struct, gc=False, omit_defaults=True):
    """One column: ``length`` counts bytes, ``precision`` and ``scale`` digits."""

    ordinal: int
    type: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    primaryKeyPosition: int = 0  # noqa: N815
    """From 1, in the primary key or a unique index; 0 for a column outside."""


class TableStructure(msgspec.Struct, gc=False):
    """The columns by name."""

    tableColumns: msgspec.Raw = ABSENT  # noqa: N815


class MetadataBody(msgspec.Struct, gc=False):
    """A metadata message without its envelope."""

    schemaId: str | None = None  # noqa: N815
    lineage: Lineage | None = None
    tableStructure: TableStructure | None = None  # noqa: N815
    dataSchema: str | None = None  # noqa: N815
    """Avro schema of the data messages, where they are in Avro."""


class Content(msgspec.Struct, gc=False, omit_defaults=True):
    """What is kept of a metadata message: the same, read and put in order."""

    schemaId: str  # noqa: N815
    lineage: Lineage
    tableStructure: dict[str, dict[str, TableColumn]]  # noqa: N815
    dataSchema: str | None = None  # noqa: N815


_columns = msgspec.json.Decoder(dict[str, TableColumn])

_content = msgspec.json.Decoder(Content)


def content(body: MetadataBody, envelope_id: str | None = None) -> tuple[str, bytes]:
    """Return id and content of a metadata message; messages that tell the same have the same content.

    Raises:
        MalformedMessageError: no id, a broken or boundless list of columns.
        MissingTableError: no table.
    """
    id_, lineage = body.schemaId or envelope_id, body.lineage
    if not id_:
        raise MalformedMessageError("a metadata message without `schemaId`")
    if lineage is None or not lineage.table:
        raise MissingTableError("a metadata message whose `lineage` names no table")
    raw = bytes(body.tableStructure.tableColumns) if body.tableStructure else b""
    members(raw)
    columns = read(_columns, raw)
    _check(columns)
    told = Content(
        schemaId=id_,
        lineage=Lineage(schema=lineage.schema, table=lineage.table, tableVersion=lineage.tableVersion),
        tableStructure={"tableColumns": dict(sorted(columns.items(), key=lambda item: item[1].ordinal))},
        dataSchema=body.dataSchema or None,
    )
    return id_, msgspec.json.encode(told)


def _check(columns: dict[str, TableColumn]) -> None:
    ordinals = {column.ordinal for column in columns.values()}
    if not 0 < len(columns) <= COLUMN_LIMIT:
        raise MalformedMessageError(f"a table of {len(columns)} columns; 1 to {COLUMN_LIMIT} are read")
    if len(ordinals) < len(columns) or min(ordinals) < 1 or max(ordinals) > ORDINAL_LIMIT:
        raise MalformedMessageError(f"ordinals of columns that repeat, or are not within 1 and {ORDINAL_LIMIT}")


def parsed(text: bytes) -> Content:
    """Read what ``content`` wrote."""
    return read(_content, text)
