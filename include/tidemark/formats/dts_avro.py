r"""DTS Avro: what Alibaba Cloud DTS writes to Kafka by default, and what its change tracking delivers.

"Data formats of a Kafka cluster" of DTS, and the schema that it links, ``Record.avsc`` of
https://github.com/LioRoger/subscribe_example. A message is the Avro binary form of one Record, without a container and
without a schema id. This is one as JSON, with short names for the branches of the value union, and without
``safeSourcePosition``, ``id`` and ``version``:

    {"sourceTimestamp": 1696984408, "sourcePosition": "67008@78", "sourceTxid": "0", "source": {"sourceType": "MySQL",
     "version": "8.0.28"}, "operation": "UPDATE", "objectName": "shop.orders", "processTimestamps": null,
     "tags": {"pk_uk_info": "{\"PRIMARY\":[\"id\"]}", "readerThroughoutTime": "1696984408731"},
     "fields": [{"name": "id", "dataTypeNumber": 8}, {"name": "note", "dataTypeNumber": 253}],
     "beforeImages": [{"Integer": {"precision": 8, "value": "1"}}, {"EmptyObject": "NULL"}],
     "afterImages": [{"Integer": {"precision": 8, "value": "1"}}, {"Character": {"charset": "utf8mb4", "value": "a"}}]}

Images are positional: value *i* belongs to field *i*. ``EmptyObject`` NULL is null, and NONE is *not captured*. The
JSON of an image is built here, once: numbers as text, bytes as Base64, times in ISO 8601. The key stands in the tag
``pk_uk_info``. A MySQL position is log and offset. It repeats within a statement, so the place in the dump follows.
Records from shards of PolarDB-X name MySQL as their source, too (``_dts/places``).
"""

from __future__ import annotations

import functools
from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict, field_validator

from tidemark.errors import DecodeError, MalformedMessageError
from tidemark.events import ChangeEvent, ControlEvent, Event, Message, Operation, SchemaChange, Shape, Transaction
from tidemark.formats import Traits
from tidemark.formats._dts import charsets as dts_charsets
from tidemark.formats._dts import record as dts_record
from tidemark.formats._dts.ddl import DIALECTS, refuse_row_change, subject_of, truncated
from tidemark.formats._dts.fields import FieldList, merged
from tidemark.formats._dts.names import key_of, table_of
from tidemark.formats._dts.places import is_physical, placing_of, position_of, ranks_by_commit
from tidemark.formats._dts.record import Image, Record
from tidemark.formats._dts.types import FAMILIES, MYSQL, NONE
from tidemark.formats._dts.values import Style
from tidemark.formats._statements import row_change, statement_only
from tidemark.positions import changed, loaded

TOOLS = ("Alibaba DTS",)

UNTOLD = ("whether a number is unsigned", "text from bytes in a column that is always null")


TRAITS = Traits(ranks_copies=True, placing_of=placing_of, ranks_by_commit=ranks_by_commit)

OPERATIONS = {
    "INSERT": Operation.INSERT,
    "UPDATE": Operation.UPDATE,
    "DELETE": Operation.DELETE,
    "INIT": Operation.SNAPSHOT,
}
"""``INIT`` is a row of an initial load. DTS writes it to Kafka; its change tracking has no initial load."""

CONTROLS = {
    "BEGIN": "transaction_begin",
    "COMMIT": "transaction_end",
    "ROLLBACK": "transaction_rollback",
    "ABORT": "transaction_abort",
    "HEARTBEAT": "heartbeat",
    "CHECKPOINT": "checkpoint",
    "COMMAND": "command",
    "FILL": "fill",
    "FINISH": "finish",
    "CONTROL": "control",
    "RDB": "rdb",
    "NOOP": "noop",
}
"""Control events. One more operation, ``DDL``, is a schema change."""

_LAST_SECOND = 253_402_300_799
"""The last second of the year 9999. A larger number does not count seconds."""

_NO_TRANSACTION = frozenset({"", "0"})

_IN_MICROSECONDS = frozenset({"MySQL", "PostgreSQL"})

_encode = msgspec.json.Encoder().encode


class Options(BaseModel):
    """Facts that DTS Records do not contain."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    table: str | None = None
    """Table (``database.table``, ``database.schema.table``) of rows that name no table."""
    charset: str | None = None
    """Character set (``utf8mb4``, ``gbk``) of text that names no character set."""
    fraction: Literal["source", "microseconds", "nanoseconds"] = "source"
    """The unit of the field ``millis``. ``source``: microseconds for MySQL and PostgreSQL, nanoseconds for all other
    sources and for readers of physical logs."""
    order: Literal["source", "dump"] = "source"
    """``dump`` if ``sourcePosition`` does not rise, for example after a failover to a server with other logs."""

    @field_validator("charset")
    @classmethod
    def _known(cls, charset: str | None) -> str | None:
        known = sorted({*dts_charsets.MYSQL, *dts_charsets.OTHERS})
        if charset is not None and charset.lower() not in known:
            raise ValueError(f"unknown character set {charset!r}; known are {', '.join(known)}")
        return charset


def decode(message: Message, options: Options) -> list[Event]:
    """Return the row change of ``message``, or its schema change or control event.

    Raises:
        DecodeError: the whole message is set aside.
    """
    if message.value is None:
        return [ControlEvent(kind="tombstone", position=changed(*message.order))]
    charset, fraction = options.charset, options.fraction

    def style_of(source: str, position: str) -> Style:
        return _style_of(source, charset, fraction, physical=is_physical(position))

    try:
        record = dts_record.read(message.value, style_of)
    except MalformedMessageError:
        if len(message.value) == dts_record.FILLER:
            return [ControlEvent(kind="noop", position=changed(*message.order))]
        raise
    if not 0 <= record.seconds <= _LAST_SECOND:
        raise MalformedMessageError(f"`sourceTimestamp` is {record.seconds}, which are no seconds since 1970")
    if operation := OPERATIONS.get(record.operation):
        return [_row(record, operation, message, options)]
    if record.operation == "DDL":
        return _schema_change(record, message, options)
    return [_control(record, message)]


@functools.lru_cache(maxsize=256)
def _style_of(source: str, charset: str | None, fraction: str, *, physical: bool) -> Style:
    usual = "microseconds" if source in _IN_MICROSECONDS and not physical else "nanoseconds"
    return Style(
        charsets=dts_charsets.names_of(source),
        charset=charset,
        places=6 if (usual if fraction == "source" else fraction) == "microseconds" else 9,
        measured=FAMILIES.get(source) is MYSQL,
    )


def _row(record: Record, operation: Operation, message: Message, options: Options) -> ChangeEvent:
    before, after = record.before, record.after
    if isinstance(before, str) or isinstance(after, str) or not isinstance(record.fields, FieldList):
        raise _rowless(record)
    if operation is Operation.DELETE:
        after = None
    elif operation is not Operation.UPDATE:
        before = None
    if (after or before) is None or (after is None and operation is not Operation.DELETE):
        missing = "beforeImages" if operation is Operation.DELETE else "afterImages"
        raise MalformedMessageError(f"`{missing}` is null, and the operation is {record.operation}")
    fields = record.fields
    shape = _shape(fields, before, after)
    absent = _absent(fields, after)
    return ChangeEvent(
        table=table_of(record.object_name, record.tags.get(b"l_db_name"), record.tags.get(b"l_tb_name"), options.table),
        operation=operation,
        position=loaded(*message.order)
        if operation is Operation.SNAPSHOT
        else position_of(record, message, options.order),
        committed_at=record.seconds * 1_000_000,
        captured_at=_captured_at(record),
        transaction=_transaction(record),
        before=_json(fields, before),
        after=_json(fields, after),
        shape=shape,
        partial=bool(absent),
        absent=absent,
        key=key_of(record.tags.get(b"pk_uk_info"), fields),
    )


def _rowless(record: Record) -> DecodeError:
    """Return why a row change with a text in place of columns is set aside."""
    texts = [image for image in (record.after, record.before) if isinstance(image, str)]
    for text in texts if DIALECTS.get(record.source) == "mysql" else ():
        if verb := row_change(text):
            return statement_only(verb, text)
    return MalformedMessageError(f"a text where the columns of a row belong, and the operation is {record.operation}")


def _shape(fields: FieldList, before: Image | None, after: Image | None) -> Shape:
    if not fields.names:
        raise MalformedMessageError("`fields` is empty: a row without columns")
    if before is not None and after is not None:
        return fields.shape(merged(fields, before.kinds, after.kinds))
    image = after or before
    return fields.shape(image.kinds if image else ())


def _json(fields: FieldList, image: Image | None) -> bytes | None:
    """Return an image as a JSON object, without columns that were not captured."""
    if image is None:
        return None
    row = dict(zip(fields.names, image.values, strict=True))
    if NONE in image.kinds:
        row = {name: row[name] for name, kind in zip(fields.names, image.kinds, strict=True) if kind != NONE}
    return _encode(row)


def _absent(fields: FieldList, after: Image | None) -> tuple[str, ...]:
    if after is None or NONE not in after.kinds:
        return ()
    return tuple(name for name, kind in zip(fields.names, after.kinds, strict=True) if kind == NONE)


def _transaction(record: Record) -> Transaction | None:
    return None if record.transaction in _NO_TRANSACTION else Transaction(id=record.transaction)


def _captured_at(record: Record) -> int | None:
    """Return the time when the reader took the change: ``readerThroughoutTime`` (a tag, ms), or ``bornTimestamp``."""
    millis = record.tags.get(b"readerThroughoutTime", b"")
    if len(millis) <= 14 and millis.isdigit():
        return int(millis) * 1000
    if not record.born or not 0 < record.born <= _LAST_SECOND * 1000:
        return None
    # The document says ms, but streams have s. Up to 10**11 it is s: as ms it would be before 1974, as s before 6000.
    return record.born * (1000 if record.born > 10**11 else 1_000_000)


def _control(record: Record, message: Message) -> ControlEvent:
    """Return the control event, which is only counted. A row under such an operation is refused, not lost silently."""
    if isinstance(record.before, Image) or isinstance(record.after, Image):
        raise MalformedMessageError(
            f"{record.operation} carries a row, and only {', '.join(OPERATIONS)} do: what is to become of it?"
        )
    transaction = _transaction(record)
    if transaction is not None and record.operation == "COMMIT":
        transaction = Transaction(id=transaction.id, last=True)
    return ControlEvent(
        kind=CONTROLS[record.operation],
        position=changed(*message.order),
        committed_at=record.seconds * 1_000_000,
        captured_at=_captured_at(record),
        transaction=transaction,
    )


def _schema_change(record: Record, message: Message, options: Options) -> list[Event]:
    """Return the DDL. If it is a TRUNCATE, a truncation of each of its tables follows."""
    statement = record.after
    if isinstance(record.before, Image):
        raise MalformedMessageError("a DDL carries a row: what is to become of it?")
    if not isinstance(statement, str) or not statement.strip():
        raise MalformedMessageError("a DDL without the text of its statement in `afterImages`")
    dialect = DIALECTS.get(record.source, "mysql")
    refuse_row_change(statement, DIALECTS.get(record.source, ""))
    subject = subject_of(statement, record.object_name, record.tags)
    emptied = truncated(statement, dialect, subject)
    table = subject if subject and subject.name else next(iter(emptied), None)
    change = SchemaChange(
        table=table,
        database=subject.database if subject and table is None else None,
        position=position_of(record, message, options.order, 0),
        statement=statement,
        dialect=dialect,
        committed_at=record.seconds * 1_000_000,
        captured_at=_captured_at(record),
    )
    truncations = [
        ChangeEvent(
            table=each,
            operation=Operation.TRUNCATE,
            position=position_of(record, message, options.order, number),
            committed_at=change.committed_at,
            captured_at=change.captured_at,
            transaction=None,  # a statement commits by itself: no COMMIT follows to wait for
        )
        for number, each in enumerate(emptied, start=1)
    ]
    return [change, *truncations]
