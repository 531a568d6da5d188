"""The parts of Replicate's messages, in JSON and in Avro: headers and images of a row, and the structure of a table.

"Metadata and data messages" of https://help.qlik.com (Qlik Replicate, once Attunity). With every change of its
structure, a table gets a new schema id and ``tableVersion``. There is no DDL. Replicate sends the same structure again
whenever a task starts. So the stored content of a metadata message has no time of writing and no server.
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
    """Facts that Replicate's messages do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    table: str | None = None
    """Table (``schema.table``) of messages that name no table, neither by a known schema id nor otherwise."""
    mask_byte_order: Literal["big", "little"] = "big"
    """``big``: a mask is one hexadecimal number. Replicate writes it so, although the document says little-endian."""
    schema_ids: Literal["shared", "unique"] = "shared"
    """``shared``: tables of one structure may have one schema id, so a row must not name another table than its id.
    ``unique``: each id is of one table, whatever the message or its topic names."""


class Headers(msgspec.Struct, gc=False):
    """The headers of a data message, without ``streamPosition``: ``changeSequence`` is the order."""

    operation: str | None = None
    changeSequence: str | int | None = None  # noqa: N815 - the wire's spelling, as below
    timestamp: str | None = None
    """Time of the change at the source, UTC."""
    transactionId: str | None = None  # noqa: N815
    changeMask: str | None = None  # noqa: N815
    """The columns that changed; in a DELETE, the key columns."""
    columnMask: str | None = None  # noqa: N815
    """The columns that the message has. Any other column is unknown, and null in the images."""
    externalSchemaId: str | None = None  # noqa: N815
    transactionEventCounter: str | int | None = None  # noqa: N815
    transactionLastEvent: str | bool | None = None  # noqa: N815
    schema: str | None = None
    table: str | None = None


class Row(msgspec.Struct, gc=False):
    """A data message without its envelope. Images are JSON, None for null."""

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
        """The new image, or the old one if there is no new image."""
        return self.before if self.data is None else self.data


COLUMN_LIMIT = 10_000

ORDINAL_LIMIT = 100_000


class Lineage(msgspec.Struct, gc=False, omit_defaults=True):
    """The origin of the data."""

    schema: str | None = None
    table: str | None = None
    tableVersion: int | None = None  # noqa: N815 - the wire's spelling, as below
    timestamp: str | None = None
    """Time when the message was written."""


class TableColumn(msgspec.Struct, gc=False, omit_defaults=True):
    """One column. ``length`` is in bytes; ``precision`` and ``scale`` are in digits."""

    ordinal: int
    type: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    primaryKeyPosition: int = 0  # noqa: N815
    """Place in the primary key or a unique index, counted from 1; 0 for a column outside."""


class TableStructure(msgspec.Struct, gc=False):
    """The columns, by name."""

    tableColumns: msgspec.Raw = ABSENT  # noqa: N815


class MetadataBody(msgspec.Struct, gc=False):
    """A metadata message without its envelope."""

    schemaId: str | None = None  # noqa: N815
    lineage: Lineage | None = None
    tableStructure: TableStructure | None = None  # noqa: N815
    dataSchema: str | None = None  # noqa: N815
    """Avro schema of the data messages, if they are in Avro."""


class StoredContent(msgspec.Struct, gc=False, omit_defaults=True):
    """The stored content of a metadata message: its own parts, checked and in a fixed order."""

    schemaId: str  # noqa: N815
    lineage: Lineage
    tableStructure: dict[str, dict[str, TableColumn]]  # noqa: N815
    dataSchema: str | None = None  # noqa: N815


_columns = msgspec.json.Decoder(dict[str, TableColumn])

_content = msgspec.json.Decoder(StoredContent)


def content(body: MetadataBody, envelope_id: str | None = None) -> tuple[str, bytes]:
    """Return the id and the content of a metadata message. Messages about the same structure have equal contents.

    Raises:
        MalformedMessageError: there is no id, or the list of columns is broken or too long.
        MissingTableError: the message names no table.
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
    kept = StoredContent(
        schemaId=id_,
        lineage=Lineage(schema=lineage.schema, table=lineage.table, tableVersion=lineage.tableVersion),
        tableStructure={"tableColumns": dict(sorted(columns.items(), key=lambda item: item[1].ordinal))},
        dataSchema=body.dataSchema or None,
    )
    return id_, msgspec.json.encode(kept)


def _check(columns: dict[str, TableColumn]) -> None:
    ordinals = {column.ordinal for column in columns.values()}
    if not 0 < len(columns) <= COLUMN_LIMIT:
        raise MalformedMessageError(f"a table of {len(columns)} columns; 1 to {COLUMN_LIMIT} are read")
    if len(ordinals) < len(columns) or min(ordinals) < 1 or max(ordinals) > ORDINAL_LIMIT:
        raise MalformedMessageError(f"ordinals of columns that repeat, or are not within 1 and {ORDINAL_LIMIT}")


def parsed(text: bytes) -> StoredContent:
    """Return a content that ``content`` wrote, decoded."""
    return read(_content, text)
