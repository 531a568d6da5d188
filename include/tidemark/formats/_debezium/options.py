"""The options of ``debezium_json``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    """Facts that Debezium messages do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    dialect: Literal["debezium", "lindorm"] = "debezium"
    """Who writes the messages: ``lindorm`` for Lindorm's "Debezium Format V2.0"."""
    table: str | None = None
    """Table (``database.table``, ``database.schema.table``) of messages that name no table."""
    unavailable_value: str = Field(default="__debezium_unavailable_value", min_length=1)
    """The connector's ``unavailable.value.placeholder``."""
    flattened: bool = False
    """Whether every message is a flattened row, even without ``__op`` and ``__deleted``. If ``table`` is set, a
    tombstone deletes a row of that table, and rows without ``__deleted`` are ordered by their place in the dump."""
    add_fields: str | None = None
    """The flattening transform's ``add.fields``, as it stands there (``op,table,source.ts_ms:changed_at``). None: the
    usual names of such fields count."""
    add_fields_prefix: str = "__"
    """The flattening transform's ``add.fields.prefix``."""
    connector: str | None = None
    """The connector (``mongodb``, ``postgresql``) of flattened rows that do not name it."""
    row_image: Literal["full", "partial"] | None = None
    """``partial``: columns that an UPDATE of a flattened row lacks are unchanged. None: so they are of the connector
    ``yugabytedb``, whose own transform leaves out what a change did not set, and of no other."""
    loads: Literal["complete", "partial"] = "complete"
    """``partial``: initial loads may leave out rows, so a load does not replace the rows before it."""
    hbase: bool | None = None
    """For Lindorm: whether tables are of the HBase kind. None: tables with a column ``ROW`` are."""
