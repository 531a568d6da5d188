"""The waist of Tidemark: the events that every format produces and every stage consumes.

Formats and stages know events, and not each other. Nothing here imports Spark or Iceberg, and of Tidemark's modules
only ``positions``, the order of events. An image stays the verbatim bytes of a JSON object until its values become
typed columns (``values/images.py``): no value is rounded, reordered or made a Python object on the way.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import NamedTuple

import msgspec

from tidemark.positions import Position


class Operation(StrEnum):
    """The change of a row (for TRUNCATE, of all rows) at the source."""

    SNAPSHOT = "SNAPSHOT"
    """A row of an initial load."""
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    TRUNCATE = "TRUNCATE"


class Encoding(StrEnum):
    """How a column's value is written in the JSON of an image. The set is closed and the same for all formats.

    ``values/plain.py`` defines each encoding. JSON null is SQL NULL in every encoding.
    """

    PLAIN = "plain"
    """The JSON value of the column's own kind: a number for numbers, true or false for booleans, a string for text and
    for ISO 8601 dates and times (blank or ``T`` between date and time, with or without zone), Base64 for ``binary``.
    A nested object or array in a ``string`` column is kept as JSON text."""
    TEXT = "text"
    """A JSON string with the value's text: ``"12.50"``, ``"2023-03-23 14:30:05.123456"``, ``"true"``, ``"1"``."""
    UNSCALED_BASE64 = "unscaled_base64"
    """Base64 of the unscaled integer, big-endian in two's complement. The column's decimal type gives the scale."""
    SCALED_STRUCT = "scaled_struct"
    """An object ``{"scale": n, "value": Base64 unscaled}`` (Debezium VariableScaleDecimal)."""
    BASE64 = "base64"
    """Base64 of the bytes (RFC 4648; padding is optional; standard or URL alphabet)."""
    LATIN1 = "latin1"
    """A JSON string in which each character is one byte (ISO-8859-1), as Canal writes binary columns."""
    HEX = "hex"
    """Hexadecimal text of the bytes."""
    EPOCH_SECONDS = "epoch_s"
    EPOCH_MILLIS = "epoch_ms"
    EPOCH_MICROS = "epoch_us"
    EPOCH_NANOS = "epoch_ns"
    """A number of these units since 1970-01-01T00:00:00. For a ``timestamp`` column, it is the wall clock time counted
    as if it were UTC. Nanoseconds must be whole microseconds, or else the value is unreadable."""
    TEXT_OR_MILLIS = "text_or_ms"
    TEXT_OR_MICROS = "text_or_us"
    """As DataHub's producers write values: the JSON value or its text; for bytes, Base64. In a date or timestamp
    column, a whole number, with or without quotes, is milliseconds or microseconds since 1970-01-01T00:00:00. An empty
    text is null in a column that is neither ``string`` nor ``binary``."""
    EPOCH_DAYS = "epoch_days"
    MILLIS_OF_DAY = "ms_of_day"
    MICROS_OF_DAY = "us_of_day"
    NANOS_OF_DAY = "ns_of_day"
    """A time of day, or a MySQL TIME, as a number. It is published as text ``[-]HH:MM:SS[.ffffff]``, because Spark has
    no time type that Iceberg could store, and because a TIME of MySQL can be negative or longer than 24 h."""
    BITS_LE_BASE64 = "bits_le_base64"
    """Base64 of the little-endian bytes of a bit string (Debezium Bits). It is published as ``binary``, big-endian."""


class TableId(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """The name of a table at the source. Parts of the name that the source does not have are None."""

    database: str | None
    schema: str | None
    name: str

    def __str__(self) -> str:
        """Return ``database.schema.name`` without the missing parts: the name in source files (``shop.orders``)."""
        return ".".join(self.parts)

    @property
    def parts(self) -> list[str]:
        """The parts that the source has."""
        return [part for part in (self.database, self.schema, self.name) if part]

    @property
    def is_dotted(self) -> bool:
        """Whether a part holds a dot: ``b`` of ``shop.a`` and ``a.b`` of ``shop`` have the same text."""
        return any("." in part for part in self.parts)


class Column(msgspec.Struct, frozen=True):
    """One column, as the messages describe it."""

    name: str
    type: str | None = None
    """Iceberg type string (``long``, ``decimal(18, 2)``, ...). None: the source file or the values decide."""
    encoding: Encoding = Encoding.PLAIN
    masked: str | msgspec.UnsetType = msgspec.UNSET
    """How values in images were masked (``Masks.label``): they are text then. Unset, a shape's id is without it."""
    bounds: str | msgspec.UnsetType = msgspec.UNSET
    """What the source's type allows, where the Iceberg type allows more (``values.bounds``); unset as ``masked``."""


class Shape(msgspec.Struct, frozen=True):
    """The columns that messages of one schema version have, in the source's order. Stored with the change log."""

    columns: tuple[Column, ...]

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits, which are the same for equal shapes on every machine."""
        return hashlib.sha256(msgspec.json.encode(self.columns)).hexdigest()[:16]


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """The source transaction of an event. What the format does not have is None."""

    id: str | None = None
    number: int | None = None
    """Number of the event in its transaction."""
    last: bool | None = None
    """True for the transaction's last event. None if the format does not mark it."""


TIMES = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
"""Valid times of an event, epoch µs: the years 1 to 9999, because readers of the lake know no other years."""


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One undecoded unit as it was delivered, and its place in the dump."""

    value: bytes | None
    """None for a Kafka record with a null value (tombstone)."""
    file: str
    place: int
    """Counted from 1: the line in a file of JSON lines, or else the number of the message in the file."""
    interval: int = 0
    """Start of the period that the path of the file names, as the clock of its zone shows it, in µs since 1970 of that
    clock. 0 if the landing path has no fields of time."""
    key: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    """Time of the Kafka record, epoch ms."""
    file_order: str | None = None
    """The text that stands for ``file`` in the order of files; None if the path itself does."""

    @property
    def order(self) -> Position:
        """Place in the dump: the partition and offset of a Kafka record, or else interval, file and place."""
        if self.offset is not None:
            return (1, self.partition or 0, self.offset)
        return (0, self.interval, self.file_order or self.file, self.place)


class ChangeEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change of one row at the source (for TRUNCATE, of all rows of one table).

    An INSERT and a SNAPSHOT have ``after`` only. A DELETE has ``before`` only. An UPDATE has ``after``, and ``before``
    if the format has it. A TRUNCATE has neither.

    An update that the format writes as two messages is two events: an UPDATE with ``before`` only, whose position ends
    in 0, and an UPDATE with ``after`` only, whose position is the same but ends in 1.
    """

    table: TableId
    operation: Operation
    position: Position
    """Totally ordered within one table of one source; compared part by part. It begins with ``changed(...)`` or
    ``loaded(...)``. If the format's own sequence is unique for each row change, the position ends there, and a copy has
    the same position. A format whose sequence may be the same for several changes, and whose producer sends events
    again, adds the delivery (``placed``). Others append ``message.order`` and the number of the row in its message."""
    committed_at: int | None = None
    """Commit time at the source; epoch µs, UTC."""
    captured_at: int | None = None
    """Time at the capture tool; epoch µs, UTC."""
    transaction: Transaction | None = None
    before: bytes | None = None
    """Verbatim JSON object, or the key alone. A column with null is SQL NULL; an absent one was *not captured*."""
    after: bytes | None = None
    shape: Shape | None = None
    """Columns of ``after`` (for a DELETE, of ``before``). It has every column of the image."""
    partial: bool = False
    """False: columns that ``after`` lacks are null. True: they, and those in ``absent``, are unchanged, or unknown."""
    absent: tuple[str, ...] = ()
    """Columns of ``shape`` that are missing in ``after``, or have a placeholder there; only if ``partial``."""
    upsert: bool = False
    """Whether a ``partial`` UPDATE also makes its row, where there is none."""
    key: tuple[str, ...] | None = None
    """Key columns that the message itself names. None if it names none; empty if it says that there is no key."""
    load: Position | None = None
    """For a row of a *complete* initial load: the place in the log where the load began, the same for all its rows and
    below their positions. A later load replaces what came before it. None for other events, and if loads look alike."""
    after_commit: tuple[str, int] | None = None
    """Who read the log, and where the last commit before the event's own lies in it (docs/adr/0082), if known."""
    of_database: str | None = None
    """The database of the row, or what tells it from others, where the message has it and ``table`` leaves it out."""


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change of a table's schema. It never changes a row."""

    table: TableId | None
    database: str | None = None
    """The database in which the statement ran, where the message names no table."""
    schema: str | None = None
    """The schema in which it ran, where the message names no table."""
    position: Position
    statement: str
    """DDL text. It is data: it is parsed and never executed."""
    dialect: str = "mysql"
    """Dialect of ``statement``, by sqlglot's name."""
    committed_at: int | None = None
    captured_at: int | None = None
    shape: Shape | None = None
    """The table's columns after the change, if the message has them."""
    together: tuple[str, ...] = ()
    """Names of all tables that the statement changed, where messages have a part of it each, for one of them."""


class ControlEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A heartbeat, begin or end of a transaction, tombstone record or logical message. Counted, never applied."""

    kind: str
    """``heartbeat``, ``transaction_begin``, ``transaction_end``, ``tombstone``, ``message``, ``gtid``, ..."""
    position: Position
    committed_at: int | None = None
    captured_at: int | None = None
    transaction: Transaction | None = None
    counts: dict[str, int] | None = None
    """At the end of a transaction: events by collection (a table as the tool names it; none: no row changes)."""


Event = ChangeEvent | SchemaChange | ControlEvent


class Quarantined(NamedTuple):
    """Why a message goes to quarantine: a stable reason (``errors.DecodeError.reason``) and a sentence for people."""

    reason: str
    detail: str
