"""The structure that reads a row of Replicate: by the schema id, or guessed by another name in the message."""

from __future__ import annotations

import functools

from tidemark.errors import MalformedMessageError, MissingMetadataError, MissingTableError
from tidemark.events import Message, TableId
from tidemark.formats._connect import key_struct
from tidemark.formats._json import members, table_id, untyped
from tidemark.formats._replicate.names import TableNames
from tidemark.formats._replicate.structure import Index, S, Structure
from tidemark.formats._replicate.wire import MAGIC, Options, Row


def structure_of_row(
    row: Row, message: Message, options: Options, known: Index[Structure], *, required: bool
) -> tuple[Structure, bool]:
    """Return the table of a row in JSON, with its columns if metadata has them; and whether that is a guess.

    It is found by the schema id, or else guessed by the table that the message or the option names. Only for a row
    without id it is also guessed by its topic, and by its columns. An id that is known of another table than the row
    names does not count, nor does the option then.

    Raises:
        MissingMetadataError: metadata is ``required``, and neither the id nor a structure with the row's columns is
            known.
        MissingTableError: nothing names the table.
    """
    names = _names(row, message, options)
    id_, named = row.id, names.own or names.option
    for each in filter(None, (row.id, row.headers.externalSchemaId)):
        found = known.by_id(each, names)
        if found is not None:
            return found, False
        if known.tables_of_id(each):
            id_, named = each, names.own
    return _guess(row, message, id_, named, known, required=required), True


def structure_of_bytes(id_: str | None, message: Message, options: Options, known: Index[S]) -> S:
    """Return the table of a row in Avro. Only the schema that wrote the row can read it.

    Raises:
        MissingMetadataError: the id is not known of a table that the row may be of; or there is no id, and the table
            does not have exactly one structure.
        MalformedMessageError: nothing names the table.
    """
    if id_:
        found = known.by_id(id_, _names(None, message, options))
        if found is None:
            raise _not_landed(id_, known)
        return found
    named = _option(options)
    if named is None and message.topic is None:
        raise MalformedMessageError(f"no {MAGIC} envelope with a schema id: nothing tells how to read the message")
    table = named or known.table_of_topic(message.topic or "")
    found = known.by_table(table) if table else None
    if found is None or known.versions(found.table) > 1:
        raise MissingMetadataError(
            "the message has no schema id, and not exactly one structure is known of the table that the option "
            f"`table` or the topic names; let the endpoint write {MAGIC} envelopes"
        )
    return found


def structure_named(row: Row, message: Message, options: Options, known: Index[S], table: S) -> S:
    """Return the structure of the table that a row in Avro names. In most cases it is ``table``, which read the row.

    Raises:
        MissingMetadataError: no structure of that table is known by the row's id, or the row has no id.
    """
    if row.id:
        found = known.by_id(row.id, _names(row, message, options))
        if found is None:
            raise _not_landed(row.id, known)
        return found
    if TableNames(own=row.named).fit(table.table):
        return table
    raise MissingMetadataError(
        f"the message names the table {row.named} and has no schema id, and the option `table` or the topic names "
        f"{table.table}; let the endpoint write {MAGIC} envelopes"
    )


def _names(row: Row | None, message: Message, options: Options) -> TableNames:
    return TableNames(row.named if row else None, message.topic, _option(options), options.schema_ids == "unique")


def _not_landed(id_: str, known: Index[S]) -> MissingMetadataError:
    """Return the error for a schema id that is not known, or only known of other tables."""
    tables = ", ".join(known.tables_of_id(id_))
    if tables:
        return MissingMetadataError(
            f"the schema id '{id_[:80]}' is known of {tables[:200]} only, and the message or its topic names "
            "another table; land the dump of the metadata topic, and the message again with it or later; if each id "
            "is of one table, whatever the topics are called, set the option `schema_ids: unique`"
        )
    return MissingMetadataError(
        f"no metadata message with the schema id '{id_[:80]}' has landed; land the dump of the metadata topic, and the "
        "message again with it or later; of rows in JSON see also the options `table` and `metadata`"
    )


def _option(options: Options) -> TableId | None:
    return _table_of(options.table) if options.table else None


def _guess(
    row: Row,
    message: Message,
    id_: str | None,
    named: TableId | None,
    known: Index[Structure],
    *,
    required: bool,
) -> Structure:
    """Return a structure of the row's table that has exactly the columns of the row.

    Another one would take its masks for those of other columns. A table without metadata gets the columns of the row,
    in their order.
    """
    if row.image is None:
        raise MalformedMessageError("neither `data` nor `beforeData` has a row")
    if id_ and required and named is None:
        raise _not_landed(id_, known)
    columns = tuple(members(row.image))
    table = named or _unnamed(id_, message, columns, known)
    found = known.fitting(table, columns)
    if found is not None:
        return found
    if id_ and required:
        raise _not_landed(id_, known)
    if required and known.versions(table):
        raise MissingMetadataError(
            f"no metadata message with exactly the columns of the row has landed for {table}, and the row has no "
            "schema id; land the dump of the metadata topic, and the message again with it or later"
        )
    return _structure_by_row(table, columns, _key(message, columns))


def _unnamed(id_: str | None, message: Message, columns: tuple[str, ...], known: Index[Structure]) -> TableId:
    """Return the table of a row that nothing but its topic names, or its columns."""
    if message.topic:
        return known.table_of_topic(message.topic) or _table_of(message.topic)
    table = None if id_ else known.table_of_columns(columns)
    if table is None:
        raise MissingTableError(
            "the message names no table, no schema id and no topic; set the option `table` in the source file"
        )
    return table


def _key(message: Message, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the columns of the record key, if it is an object with columns of the row."""
    key = key_struct(message.key) if message.key else None
    return key.names if key and key.names and set(key.names) <= set(names) else None


@functools.lru_cache(maxsize=1024)
def _table_of(text: str) -> TableId:
    """Return the table of ``schema.table`` or ``table``, as topics and the option write it."""
    found = table_id(text)
    if found.schema is not None or found.database is None:
        return found
    return TableId(database=None, schema=found.database, name=found.name)


@functools.lru_cache(maxsize=1024)
def _structure_by_row(table: TableId, names: tuple[str, ...], key: tuple[str, ...] | None) -> Structure:
    return Structure(table, untyped(names), {name: bit for bit, name in enumerate(names)}, key)
