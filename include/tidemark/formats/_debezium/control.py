"""Debezium messages that are not row changes: schema changes, transaction markers, heartbeats.

They come on topics of their own, but a dump may mix them with rows. A row may have columns of the same names, where a
flattening transform adds no mark to it. So each kind is recognised by all its members, and by having no others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import KeysView, Mapping, Sequence

import msgspec

from tidemark.errors import MalformedMessageError, UnknownOperationError
from tidemark.events import ControlEvent, Event, Message, SchemaChange, TableId
from tidemark.formats._debezium import log_places
from tidemark.formats._debezium import source as debezium_source
from tidemark.formats._debezium.log_places import Number
from tidemark.formats._debezium.source import Source, TransactionBlock
from tidemark.formats._json import read
from tidemark.formats._statements import row_change, statement_only
from tidemark.positions import changed

DIALECTS = {"mysql": "mysql", "mariadb": "mysql", "postgresql": "postgres", "oracle": "oracle", "sqlserver": "tsql"}
"""By connector: the sqlglot dialect of its DDL."""

_HEARTBEAT = frozenset({"ts_ms", "ts_us", "ts_ns", "serverName"})
"""The members of a heartbeat. It has ``ts_ms`` at least."""

_HISTORY = frozenset({"source", "historyRecord"})
"""The members of a schema change of Flink CDC."""


class TableChange(msgspec.Struct, gc=False):
    """One table of a schema change. ``id`` is its quoted name: ``"inventory"."customers"``."""

    id: str | None = None


class SchemaChangeMessage(msgspec.Struct, gc=False):
    """A message of the schema change topic."""

    source: Source | None = None
    databaseName: str | None = None  # noqa: N815 - the wire's spelling, as below
    schemaName: str | None = None  # noqa: N815
    ddl: str | None = None
    tableChanges: list[TableChange] | None = None  # noqa: N815
    ts_ms: Number = None
    ts_us: Number = None


class HistoryMessage(msgspec.Struct, gc=False):
    """A schema change as Flink CDC's ``JsonDebeziumDeserializationSchema`` writes it."""

    source: Source
    """Where the change stands in the log."""
    historyRecord: str  # noqa: N815
    """A ``SchemaChangeMessage`` as the text of its JSON. Its own ``source`` has only a part of the fields."""


class CollectionCount(msgspec.Struct, gc=False):
    """How many events of a transaction belong to one collection."""

    data_collection: str
    event_count: Number = None


class TransactionMessage(msgspec.Struct, gc=False):
    """A message of the transaction topic."""

    status: str
    id: str
    event_count: Number = None
    data_collections: list[CollectionCount] | None = None
    ts_ms: Number = None


class Heartbeat(msgspec.Struct, gc=False):
    """A message of the heartbeat topic."""

    ts_ms: Number = None


_schema_change_message = msgspec.json.Decoder(SchemaChangeMessage)

_history_message = msgspec.json.Decoder(HistoryMessage)

_transaction_message = msgspec.json.Decoder(TransactionMessage)

_heartbeat = msgspec.json.Decoder(Heartbeat)


_SCHEMA_CHANGE = frozenset({*SchemaChangeMessage.__struct_fields__, "ts_ns", "position"})
"""The members of a schema change. ``position`` is in the connector's own history of schemas."""

_TRANSACTION = frozenset({*TransactionMessage.__struct_fields__, "ts_us", "ts_ns"})

_COUNTS = frozenset({"event_count", "data_collections"})
"""Members of all markers of transactions. Converters may leave them out of a BEGIN, where they are null."""


def is_no_row(names: KeysView[str]) -> bool:
    """Return whether ``names`` are all members of a message of this module, and no others.

    It is asked where every other message is a flattened row. A marker of a transaction then has all its members.
    """
    is_marker = _is_marker(names) and names >= _COUNTS
    return not names or is_marker or names == _HISTORY or _is_schema_change(names) or _is_heartbeat(names)


def decode(value: bytes, found: Mapping[str, object], message: Message) -> Event | None:
    """Return the event of ``value``, whose members are ``found``; None for any other kind of message.

    Raises:
        DecodeError: the message is set aside.
    """
    names = found.keys()
    if names == _HISTORY:
        return _schema_change(_of_history(read(_history_message, value)), message)
    if _is_schema_change(names):
        return _schema_change(read(_schema_change_message, value), message)
    if _is_marker(names):
        return _transaction(read(_transaction_message, value), names, message)
    if _is_heartbeat(names):
        committed_at = debezium_source.micros(None, read(_heartbeat, value).ts_ms)
        return ControlEvent(kind="heartbeat", position=changed(*message.order), captured_at=committed_at)
    return None


def _is_schema_change(names: KeysView[str]) -> bool:
    return {"source", "databaseName"} <= names <= _SCHEMA_CHANGE and not names.isdisjoint({"ddl", "tableChanges"})


def _is_marker(names: KeysView[str]) -> bool:
    return {"status", "id"} <= names <= _TRANSACTION


def _is_heartbeat(names: KeysView[str]) -> bool:
    return {"ts_ms"} <= names <= _HEARTBEAT


def _of_history(history: HistoryMessage) -> SchemaChangeMessage:
    """Return the schema change in a message of Flink CDC."""
    change = read(_schema_change_message, history.historyRecord.encode())
    change.source = history.source
    return change


def _schema_change(change: SchemaChangeMessage, message: Message) -> Event:
    """Return the DDL, or a control event for a description of a table.

    Descriptions are only counted, because images give the same columns. SQL Server sends nothing but descriptions. An
    initial load begins with statements (``DROP TABLE IF EXISTS``, ``CREATE TABLE``) that describe what it found. They
    were not executed, so they are descriptions too.
    """
    source = change.source or Source()
    describes = not change.ddl or not debezium_source.is_streamed(source)
    position = debezium_source.statement_position(source, message, () if describes else None)
    committed_at = debezium_source.micros(source.ts_us, source.ts_ms)
    captured_at = debezium_source.micros(change.ts_us, change.ts_ms)
    if describes or not change.ddl:
        return ControlEvent(
            kind="table_description", position=position, committed_at=committed_at, captured_at=captured_at
        )
    dialect = DIALECTS.get(source.connector or "", "mysql")
    if verb := row_change(change.ddl, dialect):
        raise statement_only(verb, change.ddl)
    table = _table(change, source)
    database, schema = _namespace(change, source) if table is None else (None, None)
    return SchemaChange(
        table=table,
        database=database,
        schema=schema,
        position=position,
        statement=change.ddl,
        dialect=dialect,
        committed_at=committed_at,
        captured_at=captured_at,
        together=_together(source),
    )


def _together(source: Source) -> tuple[str, ...]:
    """Return the tables of a statement that changes several: the connector sends a part of it for each of them.

    Of a RENAME they are the new names. The parts share the place of the statement in the log.
    """
    names = tuple((source.table or "").split(","))
    return names if len(names) > 1 else ()


def _table(change: SchemaChangeMessage, source: Source) -> TableId | None:
    """Return the first changed table, or else the one in ``source``, which lists them for a DROP of several tables.

    A statement about a table that the connector does not know names none: that of a database that is not captured.
    """
    database, schema = _namespace(change, source)
    name = source.table
    if change.tableChanges and change.tableChanges[0].id:
        name = change.tableChanges[0].id.strip('"').split('"."')[-1]
    return TableId(database=database, schema=schema, name=name) if name else None


def _namespace(change: SchemaChangeMessage, source: Source) -> tuple[str | None, str | None]:
    """Return the database and the schema of a statement."""
    return change.databaseName or source.keyspace or source.db or None, change.schemaName or source.schema or None


_LOGICAL_MESSAGE = re.compile(
    r"LOGICAL_DECODING_MESSAGE|io\.debezium\.connector\.postgresql\.LogicalDecodingMessageMonitor\$[\w$]+@[0-9a-f]+"
)
"""The collection of logical messages. Some versions write the name of a Java object, another one for each message."""


def _transaction(marker: TransactionMessage, names: KeysView[str], message: Message) -> ControlEvent:
    """Return the begin or the end of a transaction.

    The ``number`` of the end is the count of its events. If ``data_collections`` has more, it is their count: events
    that any of both counts are waited for.

    Raises:
        UnknownOperationError: it is neither.
        MalformedMessageError: a count is there and cannot be read, or a row may have the same members.
    """
    kinds = {"BEGIN": "transaction_begin", "END": "transaction_end"}
    if marker.status not in kinds:
        raise UnknownOperationError(f"`status` is {marker.status!r}; a transaction has BEGIN and END")
    last = marker.status == "END"
    if names.isdisjoint(_COUNTS if last else _TRANSACTION - {"status", "id"}):
        raise MalformedMessageError(
            f"{marker.status} of a transaction without its other members, or a flattened row with the columns "
            f"{', '.join(names)}: if it is a row, set the option `flattened`"
        )
    counts = _counts(marker.data_collections) if last and marker.data_collections else None
    block = TransactionBlock(id=marker.id)
    if last:
        total = log_places.number(marker.event_count, "event_count")
        totals = (total, sum(counts.values()) if counts else None)
        block.total_order = max((total for total in totals if total is not None), default=None)
    return ControlEvent(
        kind=kinds[marker.status],
        position=changed(*message.order),
        committed_at=debezium_source.micros(None, marker.ts_ms),
        transaction=debezium_source.transaction(block, last=last),
        counts=counts,
    )


def _counts(collections: Sequence[CollectionCount]) -> dict[str, int] | None:
    """Return the events by collection; None if any of the counts is missing.

    Raises:
        MalformedMessageError: a count is there and cannot be read. The end would seem to need fewer events.
    """
    counts = Counter[str]()
    for each in collections:
        number = log_places.number(each.event_count, "data_collections.event_count")
        if number is None:
            return None
        counts["" if _LOGICAL_MESSAGE.fullmatch(each.data_collection) else each.data_collection] += number
    return dict(counts)
