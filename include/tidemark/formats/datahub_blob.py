"""Messages of a DataHub BLOB topic ("StreamX"), as Data Integration of DataWorks writes them.

"DataHub message formats" of DataWorks, "Blob message format". One message is one row change or one statement:

    {"schema": {"dataColumn": [{"name": "id", "type": "LONG"}, {"name": "name", "type": "STRING"},
     {"name": "comment", "type": "STRING"}], "source": {"dbName": "yunshi_db", "dbType": "MySQL",
     "tableName": "t_shiyu_pk"}, "primaryKey": ["id", "name"]}, "payload": {"op": "INSERT",
     "after": {"dataColumn": {"id": 1, "name": "joe", "comment": "comment"}}, "sequenceId": "1605339516000000004",
     "timestamp": {"eventTime": 1605339932000, "systemTime": 1605339932736, "checkpointTime": 1605339932000}},
     "version": "0.0.1"}

An update is two messages with the same ``sequenceId``, before and after. Some writers send one UPDATE_AFTER with both
images. A row of an initial load is an INSERT whose ``sequenceId`` is "-1". Writers leave out nulls, so a column that an
image lacks is null. ``ddl.ddlMeta`` is a serialised Java object. It is not in the envelope, and never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict

from tidemark.errors import DecodeError, MalformedMessageError, UnknownOperationError
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, SchemaChange
from tidemark.formats import Placing, Traits
from tidemark.formats import _truncations as truncations
from tidemark.formats._datahub import records as datahub_records
from tidemark.formats._datahub.blob import Described, Envelope, Payload, RowState, Timestamps, described
from tidemark.formats._json import NULL, RowLayout, image_of, is_empty, members, read, table_of_option, untyped
from tidemark.formats._positions import of_a_sequence
from tidemark.formats._statements import row_change, row_change_of_query, schema_change, statement_only
from tidemark.positions import Position, changed, loaded

TOOLS = ("Alibaba DataHub (Blob topics)", "DataWorks Data Integration")

UNTOLD = ("a column that is absent from one that is null", "decimal types")


def _placing_of(parts: Sequence[str]) -> Placing | None:
    """Return what a statement's position can be compared with: nothing if it has no sequence, as rows have one."""
    return Placing.LOG if len(parts) == 3 else None


TRAITS = Traits(pairs_updates=True, orders_by_offset=True, placing_of=_placing_of, ranks_by_commit=of_a_sequence)

OPERATIONS = {
    "INSERT": Operation.INSERT,
    "UPDATE_BEFOR": Operation.UPDATE,  # sic: the spelling of the document
    "UPDATE_BEFORE": Operation.UPDATE,  # the spelling of some writers
    "UPDATE_AFTER": Operation.UPDATE,
    "DELETE": Operation.DELETE,
}

SCHEMA_CHANGES = ("CREATE", "ALTER", "RENAME", "ERASE", "TRUNCATE", "CINDEX", "DINDEX")
"""``ERASE`` is defined by its statement, mostly a DROP. ``CINDEX`` and ``DINDEX`` create and drop an index."""

CONTROLS = {
    "QUERY": "query",
    "TRANSACTION_BEGIN": "transaction_begin",
    "TRANSACTION_END": "transaction_end",
    "GTID": "gtid",
    "XACOMMIT": "xa_commit",
    "XAROLLBACK": "xa_rollback",
    "MHEARTBEAT": "heartbeat",
}
"""``QUERY`` is the SQL text of a change. It may annotate rows that have messages of their own (``annotations``)."""

_ANNOTATED = (
    ". If the log is in ROW format and its rows have messages of their own, write the option `annotations: true`"
)

_INITIAL_LOAD = frozenset({"-1", -1})

_WITH_AFTER = frozenset({"INSERT", "UPDATE_AFTER"})

_OF_LOADS = frozenset({"INSERT", "CREATE", "CINDEX", "DINDEX"})
"""Operations that an initial load may have: its rows, and what makes its tables."""

_OF_INDEXES = frozenset({"CINDEX", "DINDEX"})
"""Operations that need no statement. TRUNCATE needs none where the message names the table."""


class Options(BaseModel):
    """Facts that Blob messages do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    table: str | None = None
    """Table (``database.table``, ``database.schema.table``) of messages that name no table."""
    annotations: bool = False
    """True: the log is in ROW format, and SQL text of row changes (``QUERY``) only annotates them."""


_envelope = msgspec.json.Decoder(Envelope)

_NO_TIMES = Timestamps()


class Moment(NamedTuple):
    """The place of a message, and its times in epoch µs."""

    order: Position
    committed_at: int | None
    captured_at: int | None


def decode(message: Message, options: Options) -> list[Event]:
    """Return the event of ``message``. If it is an answer of *get records*, return the event of each record.

    An update in two messages is two events with one sequence: the first has ``before`` only, the second ``after`` only.

    Raises:
        DecodeError: the whole message is set aside.
    """
    if message.value is None or message.value == NULL:
        return [ControlEvent(kind="tombstone", position=changed(*message.order))]
    value = datahub_records.unwrapped(message.value)
    envelope = read(_envelope, value)
    if envelope.payload is not None:
        return _events(envelope, envelope.payload, message.order, options)
    events: list[Event] = []
    for number, record in enumerate(datahub_records.blob_records(value)):
        envelope = read(_envelope, record)
        if envelope.payload is None:
            raise MalformedMessageError(f"record {number + 1} of the answer is no message: it has no `payload`")
        events += _events(envelope, envelope.payload, (*message.order, number), options)
    return events


def _events(envelope: Envelope, payload: Payload, order: Position, options: Options) -> list[Event]:
    times = payload.timestamp or _NO_TIMES
    moment = Moment(order, datahub_records.micros(times.eventTime), datahub_records.micros(times.systemTime))
    op = payload.op or ""
    if op in OPERATIONS:
        return [_row_change(payload, OPERATIONS[op], described(bytes(envelope.schema)), moment, options)]
    if op not in SCHEMA_CHANGES and op not in CONTROLS:
        allowed = ", ".join([*OPERATIONS, *SCHEMA_CHANGES, *CONTROLS])
        raise UnknownOperationError(f"`op` is {payload.op!r}; a Blob message has {allowed}")
    _refuse_rows(payload)
    schema = described(bytes(envelope.schema))
    text = (payload.ddl.text if payload.ddl else None) or ""
    verb = None
    if op == "QUERY" or op in SCHEMA_CHANGES:
        verb = (row_change_of_query if op == "QUERY" else row_change)(text, schema.dialect)
    if verb and not options.annotations:
        raise statement_only(verb, text, _ANNOTATED)
    if op in SCHEMA_CHANGES or (op == "QUERY" and not verb and schema_change(text)):
        return _schema_change(payload, schema, moment, options)
    return [
        ControlEvent(
            kind=CONTROLS[op],
            position=changed(*order),
            committed_at=moment.committed_at,
            captured_at=moment.captured_at,
        )
    ]


def _refuse_rows(payload: Payload) -> None:
    """Refuse a message that has a row, and an operation of which no row is expected: it would be lost.

    Raises:
        MalformedMessageError: it has one.
    """
    for name, state in (("before", payload.before), ("after", payload.after)):
        if state is not None and not is_empty(bytes(state.dataColumn)):
            raise MalformedMessageError(f"`{name}` holds a row, and `op` is {payload.op}: what is to become of it?")


def _row_change(
    payload: Payload, operation: Operation, schema: Described, moment: Moment, options: Options
) -> ChangeEvent:
    """Return the row change. The operation decides which image counts. UPDATE_AFTER may have both."""
    before = None if payload.op == "INSERT" else _image(payload.before)
    after = _image(payload.after) if payload.op in _WITH_AFTER else None
    image = after if payload.op in _WITH_AFTER else before
    if image is None:
        raise _rowless(payload, schema.dialect)
    layout = _layout(image, schema.layout)
    if before is not None and after is not None:
        before, layout = _completed(before, layout)
    if payload.sequenceId in _INITIAL_LOAD:
        operation = _loaded(payload)
    return ChangeEvent(
        table=schema.table or table_of_option(options.table),
        operation=operation,
        position=_position(payload, moment, 0 if after is None else 1),
        committed_at=moment.committed_at,
        captured_at=moment.captured_at,
        before=before,
        after=after,
        shape=layout.shape,
        key=schema.key,
    )


def _rowless(payload: Payload, dialect: str) -> DecodeError:
    """Return why a row change without its row is set aside."""
    text = (payload.ddl.text if payload.ddl else None) or ""
    if verb := row_change(text, dialect):
        return statement_only(verb, text)
    name = "after" if payload.op in _WITH_AFTER else "before"
    return MalformedMessageError(f"`{name}` holds no row, and `op` is {payload.op}")


def _loaded(payload: Payload) -> Operation:
    if payload.op not in _OF_LOADS:
        raise MalformedMessageError(
            f"`sequenceId` is -1, as in an initial load, and `op` is {payload.op}, which no load has: nothing ranks it "
            "among the changes; deliver it with its sequence, or load the table again"
        )
    return Operation.SNAPSHOT


def _position(payload: Payload, moment: Moment, half: int) -> Position:
    """Return the sequence and the half of an update (0 before, 1 after). Rows of an initial load have no sequence."""
    if payload.sequenceId in _INITIAL_LOAD:
        return loaded(*moment.order, half)
    return changed(datahub_records.sequence(payload.sequenceId, "sequenceId"), half)


def _image(state: RowState | None) -> bytes | None:
    return None if state is None else image_of(state.dataColumn)


def _layout(image: bytes, typed: RowLayout | None) -> RowLayout:
    """Return the layout of an image. A column that the image lacks is null; one that the schema lacks has no type."""
    if typed is not None and typed.fits(image):
        return typed
    found = members(image)
    return untyped(tuple(found)) if typed is None else typed.widened(found)


def _completed(before: bytes, layout: RowLayout) -> tuple[bytes, RowLayout]:
    """Return ``before`` with the nulls that it lacks, which would mean *unchanged*, and the layout of both images."""
    if layout.fits(before):
        return before, layout
    found = members(before)
    layout = layout.widened(found)
    nulls = dict.fromkeys(layout.missing(found), msgspec.Raw(NULL))
    return (msgspec.json.encode(found | nulls) if nulls else before), layout


def _schema_change(payload: Payload, schema: Described, moment: Moment, options: Options) -> list[Event]:
    """Return the statement. If it is a TRUNCATE, the truncation of the table follows."""
    if payload.sequenceId in _INITIAL_LOAD:
        _loaded(payload)
    statement = (payload.ddl.text if payload.ddl else None) or ""
    table = schema.table or (table_of_option(options.table) if options.table else None)
    says_so = payload.op == "TRUNCATE"
    needless = payload.op in _OF_INDEXES or (says_so and table is not None)
    if not needless and truncations.is_blank(statement):
        found = "holds no statement" if statement else "is missing"
        raise MalformedMessageError(f"`ddl.text` {found}, and `op` is {payload.op}")
    truncates = table is not None and truncations.empties(table, statement, schema.dialect, says_so=says_so)
    # the sequence matters only for what changes rows, and the document promises it for row changes only
    placed = truncates or payload.sequenceId is not None
    change = SchemaChange(
        table=table,
        database=schema.database if table is None else None,
        schema=schema.schema if table is None else None,
        position=_position(payload, moment, 0) if placed else changed(*moment.order, 0),
        statement=statement,
        dialect=schema.dialect,
        committed_at=moment.committed_at,
        captured_at=moment.captured_at,
    )
    if table is None or not truncates:
        return [change]
    truncation = ChangeEvent(
        table=table,
        operation=Operation.TRUNCATE,
        position=_position(payload, moment, 1),
        committed_at=moment.committed_at,
        captured_at=moment.captured_at,
    )
    return [change, truncation]
