"""The waist of Tidemark: what every format produces and every stage consumes.

Formats know events, stages know events, and neither knows the other. Nothing here imports Spark, Iceberg or
another module of Tidemark. Images travel as the verbatim bytes of a JSON object, so that no value is rounded,
reordered or made a Python object on its way to the typed column (see ``images.py`` for the reading).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec


class Operation(StrEnum):
    """What happened to a row (TRUNCATE: to all rows) at the source."""

    SNAPSHOT = "SNAPSHOT"
    """A row of an initial load."""
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    TRUNCATE = "TRUNCATE"


class Encoding(StrEnum):
    """How a column's value is written in the JSON of an image: a closed set for all formats.

    ``images.py`` holds one Spark expression for each. JSON null is SQL NULL under every encoding.
    """

    PLAIN = "plain"
    """The JSON value of the column's own kind: a number for numbers, true/false, a string for text and ISO 8601
    dates and times (blank or ``T`` between date and time, with or without zone), Base64 for ``binary``. A nested
    object or array for a ``string`` column is kept as JSON text."""
    TEXT = "text"
    """A JSON string that holds the value's text: ``"12.50"``, ``"2023-03-23 14:30:05.123456"``, ``"true"``, ``"1"``."""
    UNSCALED_BASE64 = "unscaled_base64"
    """Base64 of the big-endian two's complement unscaled integer; the scale is that of the decimal type that
    the message tells."""
    SCALED_STRUCT = "scaled_struct"
    """An object ``{"scale": n, "value": Base64 unscaled}`` (Debezium VariableScaleDecimal)."""
    BASE64 = "base64"
    """Base64 of the bytes (RFC 4648, padding optional, standard or URL alphabet)."""
    LATIN1 = "latin1"
    """A JSON string, each character one byte (ISO-8859-1), as Canal writes binary columns."""
    HEX = "hex"
    """Hexadecimal text of the bytes."""
    EPOCH_SECONDS = "epoch_s"
    EPOCH_MILLIS = "epoch_ms"
    EPOCH_MICROS = "epoch_us"
    EPOCH_NANOS = "epoch_ns"
    """Number since 1970-01-01T00:00:00 (for a ``timestamp`` column: wall clock as if UTC). Nanoseconds below a
    microsecond must be zero, else the value is unreadable."""
    TEXT_OR_MILLIS = "text_or_ms"
    TEXT_OR_MICROS = "text_or_us"
    """As DataHub's producers write values: the JSON value or its text (of bytes Base64), and in a date or timestamp
    column a whole number, bare or in quotes, counts milliseconds or microseconds since 1970-01-01T00:00:00. An empty
    text is null in a column that is neither ``string`` nor ``binary``."""
    EPOCH_DAYS = "epoch_days"
    MILLIS_OF_DAY = "ms_of_day"
    MICROS_OF_DAY = "us_of_day"
    NANOS_OF_DAY = "ns_of_day"
    """A time of day or a MySQL TIME as a number; published as text ``[-]HH:MM:SS[.ffffff]``, as Spark has no time
    type that Iceberg could store, and as MySQL's goes below zero and beyond 24 h."""
    BITS_LE_BASE64 = "bits_le_base64"
    """Base64 of little-endian bytes of a bit string (Debezium Bits); published as ``binary``, big-endian."""


class TableId(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A table as the source names it; parts that the source does not have are None."""

    database: str | None
    schema: str | None
    name: str

    def __str__(self) -> str:
        """``database.schema.name`` without the missing parts: the name used in source files (``shop.orders``)."""
        return ".".join(part for part in (self.database, self.schema, self.name) if part)


class Column(msgspec.Struct, frozen=True):
    """One column as the messages tell it."""

    name: str
    type: str | None = None
    """Iceberg type string (``long``, ``decimal(18, 2)``, ``timestamp``, ``timestamptz``, ...); None when the
    messages do not tell: then the source file or the values seen decide."""
    encoding: Encoding = Encoding.PLAIN


class Shape(msgspec.Struct, frozen=True):
    """The columns that messages of one schema version tell, in the source's order; stored with the change log."""

    columns: tuple[Column, ...]

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits, equal for equal shapes on every machine."""
        return hashlib.sha256(msgspec.json.encode(self.columns)).hexdigest()[:16]


class Transaction(msgspec.Struct, frozen=True, gc=False):
    """The source transaction of an event, as far as the format tells."""

    id: str | None = None
    number: int | None = None
    """Number of the event in its transaction."""
    last: bool | None = None
    """True for the transaction's last event; None when the format does not mark it."""


Position = tuple[int | str, ...]

TIMES = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
"""What the times of an event may be, epoch µs: the years 1 to 9999, as readers of the lake know no others."""


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One undecoded unit as delivered, and where it stood."""

    value: bytes | None
    """None: a Kafka record with a null value (tombstone)."""
    file: str
    place: int
    """1-based: the line of a JSON-lines file, else the ordinal of the message in the file."""
    interval: int = 0
    """Start of the interval that the file belongs to, epoch µs, UTC; 0 when the landing path names none."""
    key: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    """Kafka record time, epoch ms."""

    @property
    def order(self) -> Position:
        """The place in the dump, the order of last resort: Kafka partition and offset, else interval, file, place."""
        if self.offset is not None:
            return (1, self.partition or 0, self.offset)
        return (0, self.interval, self.file, self.place)


class ChangeEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row changed at the source (or, for TRUNCATE, all rows of one table).

    An INSERT and a SNAPSHOT have ``after`` only, a DELETE ``before`` only, an UPDATE ``after`` and, where the format
    tells it, ``before``; a TRUNCATE neither.

    An update that the format writes as two messages is two events: an UPDATE with ``before`` only, whose position ends
    in 0, and an UPDATE with ``after`` only, whose position is the same but for a 1 at its end.
    """

    table: TableId
    operation: Operation
    position: Position
    """Totally ordered within one table of one source, compared part by part. Begin with ``changed(...)`` or
    ``loaded(...)``. A format whose own sequence is unique per row change ends there, so that a re-sent event has the
    same position; any other appends ``message.order`` and the number of the row in its message."""
    committed_at: int | None = None
    """At the source; epoch µs, UTC."""
    captured_at: int | None = None
    """At the capture tool; epoch µs, UTC."""
    transaction: Transaction | None = None
    before: bytes | None = None
    """Verbatim JSON object: key present with null is SQL NULL, key absent is *not captured*. May hold only the key."""
    after: bytes | None = None
    shape: Shape | None = None
    """Columns of ``after`` (of ``before`` on a DELETE); every column of the image is in it."""
    partial: bool = False
    """False: ``after`` is the whole row, a column of the table that it lacks is null. True: columns that it lacks,
    and those in ``absent``, are unchanged."""
    absent: tuple[str, ...] = ()
    """Columns of ``shape`` whose value in ``after`` is missing or a placeholder; only when ``partial``."""
    key: tuple[str, ...] | None = None
    """Key columns that the message itself names; None when it does not tell, empty when it says there is none."""
    load: Position | None = None
    """Of a row of a *complete* initial load: where in the source's log the load began, the same for all of its rows and
    below their positions. A load that began later in the log replaces what came before it. None for any other event,
    and where the format cannot tell one load from another."""


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change of a table's schema, never of a row."""

    table: TableId | None
    position: Position
    statement: str
    """DDL text, kept as data: parsed, never executed."""
    dialect: str = "mysql"
    """sqlglot dialect of ``statement``."""
    committed_at: int | None = None
    captured_at: int | None = None
    shape: Shape | None = None
    """The table after the change, where the message tells it."""


class ControlEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Heartbeat, transaction begin or end, tombstone record, logical message: counted, never applied."""

    kind: str
    """``heartbeat``, ``transaction_begin``, ``transaction_end``, ``tombstone``, ``message``, ``gtid``, ..."""
    position: Position
    committed_at: int | None = None
    captured_at: int | None = None
    transaction: Transaction | None = None


Event = ChangeEvent | SchemaChange | ControlEvent


class Quarantined(NamedTuple):
    """A message set aside: a stable reason (``errors.DecodeError.reason``) and a sentence for people."""

    reason: str
    detail: str


def changed(*sequence: int | str) -> Position:
    """Begin the position of a change: ranks above every initial-load row that carries no position."""
    return (1, *sequence)


def loaded(*sequence: int | str) -> Position:
    """Begin the position of an initial-load row that carries no position of its own."""
    return (0, *sequence)


_ESCAPES = str.maketrans({character: f"%{ord(character):02X}" for character in map(chr, [*range(0x30), 0x25])})
"""Every character that would sort at or below the separator, and the escape sign itself."""


def encode_position(position: Iterable[int | str]) -> str:
    """Write a position as text that sorts, byte by byte, as the position compares part by part.

    A number is its count of digits (two characters) and its digits, so that numbers of any length up to 99 digits
    compare as numbers; a text is escaped so that no character of it sorts below the separator ``.``.

    Raises:
        ValueError: a negative number, or one of more than 99 digits.

    >>> encode_position((1, 9)) < encode_position((1, 10))
    True
    """
    return ".".join([_SMALL.get(part) or _encode_part(part) for part in position])


def _encode_part(part: int | str) -> str:
    if type(part) is not int:
        return _encode_text(str(part))
    digits = str(part)
    if len(digits) > 99 or digits[0] == "-":
        raise ValueError(f"a position holds numbers of 0 to 99 digits, not {digits[:120]}")
    return _COUNTS[len(digits)] + digits


@functools.lru_cache(maxsize=64)
def _encode_text(part: str) -> str:
    """Most often the name of a file, which many positions share."""
    return f"~{part.translate(_ESCAPES)}"


_COUNTS = tuple(f"{count:02d}" for count in range(100))

_SMALL: dict[int | str, str] = {number: f"{len(str(number)):02d}{number}" for number in range(1000)}
"""The parts that most positions have."""

OLD_HALF, NEW_HALF = encode_position((0,)), encode_position((1,))
"""Last parts of the positions of an update in two events."""
