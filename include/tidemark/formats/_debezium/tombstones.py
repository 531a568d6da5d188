"""Tombstones of flattened rows: with ``delete.tombstone.handling.mode=tombstone`` they are all that is left of deletes.

A tombstone names no table, so the options ``flattened`` and ``table`` say whose rows tombstones delete. It has a place
in the dump and none in the log. So the rows that it deletes are ordered by their place in the dump too, whatever place
in the log they have.
"""

from __future__ import annotations

from collections.abc import Container

from tidemark.errors import IncompleteMessageError, MissingKeyError, MissingTableError
from tidemark.events import Event, Message, SchemaChange, TableId
from tidemark.formats._connect import Struct, has_value, key_struct
from tidemark.formats._debezium.flattened import DELETED, document_key
from tidemark.formats._debezium.options import Options
from tidemark.formats._debezium.source import Source, table
from tidemark.formats._json import table_of_option


def log_and_table(source: Source, message: Message, options: Options, found: Container[str]) -> tuple[Source, TableId]:
    """Return the block from which the place of a row in the log is read, and the table of the row.

    Args:
        source: the block that the added fields make.
        message: the row.
        options: of the source.
        found: the members of the row.

    Raises:
        MissingTableError: no table is named, or another than the one whose rows the tombstones delete.
    """
    named = table(source)
    if not _dies_by_tombstone(message, options, found):
        return source, named or table_of_option(options.table)
    given = table_of_option(options.table)
    parts = named or given
    if (
        parts.name != given.name
        or parts.database not in {None, given.database}
        or parts.schema not in {None, given.schema}
    ):
        raise MissingTableError(
            f"the row is of {named}, and the option `table` says that tombstones delete rows of {given}: name one "
            "table as its rows do, or set the transform's `delete.tombstone.handling.mode` to `rewrite`"
        )
    return Source(), given


def refuse_statement(event: Event, options: Options) -> None:
    """Raise an error for a statement about the table whose rows the dump orders.

    Raises:
        IncompleteMessageError: nothing tells which of the rows came before the statement.
    """
    if not (options.flattened and options.table):
        return
    given = table_of_option(options.table)
    if isinstance(event, SchemaChange) and event.table is not None and event.table.name == given.name:
        raise IncompleteMessageError(
            f"a statement about {given}, whose rows are ordered by the dump, as their deletes are: nothing tells "
            "which of them came before it; leave the topic of schema changes out of the dump (columns follow the "
            "rows), or set the transform's `delete.tombstone.handling.mode` to `rewrite` and leave out `flattened`"
        )


def deleted_key(message: Message, options: Options) -> Struct | None:
    """Return the key of the row that a tombstone deletes; None if it deletes none.

    Raises:
        MissingTableError: it deletes a row of a table that nothing names.
        MissingKeyError: its record key does not name the columns of the key.
    """
    if not options.flattened or message.key is None or not has_value(message.key):
        return None
    if options.table is None:
        raise MissingTableError(
            "a tombstone of flattened rows names no table: capture one table a source and name it in the option "
            "`table`, or set the transform's `delete.tombstone.handling.mode` to `rewrite` and leave out `flattened`"
        )
    key = key_struct(message.key)
    if key is None:
        raise MissingKeyError(
            "a tombstone of flattened rows, whose record key names no columns: which row it deletes, nobody can tell; "
            "leave out the transform or the converter that takes the names from the key (`ExtractField$Key`, "
            "`StringConverter`), or set the flattening transform's `delete.tombstone.handling.mode` to `rewrite`"
        )
    return document_key(key) if options.connector == "mongodb" and key.names == ("id",) else key


def _dies_by_tombstone(message: Message, options: Options, found: Container[str]) -> bool:
    """Return whether a row is deleted by a tombstone with its record key.

    If the row has ``__deleted``, the transform rewrites deletes, and a tombstone only follows one.
    """
    return options.flattened and options.table is not None and message.key is not None and DELETED not in found
