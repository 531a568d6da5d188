"""The plain reader of column values: what each ``Encoding`` means, one value at a time, exact or not at all.

``tidemark decode`` prints values with it. ``values.image_reader`` reads batches with it, where no compiled code of
``values.columnar`` is surely right. A value is first brought from its encoding to text or bytes. The text must then fit
the column's type: it is never rounded or replaced by a default.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal

import msgspec

from tidemark.errors import UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.values import iso8601
from tidemark.values.message_types import decimal_declared, table_type
from tidemark.values.plain_types import EXACT, INTEGER, TYPES, Value, within

_LONGEST = 450
"""The most bytes of an unscaled number."""

_TIMES = frozenset({"date", "timestamp", "timestamptz"})


def read_value(raw: bytes, column: Column, declared: str | None = None) -> Value:
    """Return the value of ``raw``, one JSON value of an image, read as ``column`` says; None for JSON null.

    A column without a type keeps JSON's own kind: true and false, and otherwise the text (digits as written).

    Args:
        raw: the bytes of the JSON value.
        column: name, type and encoding of the column.
        declared: the type that the messages declare, where the column has another type.

    Raises:
        UnreadableValueError: the value does not fit the type exactly.
    """
    if raw == b"null" or (raw == b'""' and _is_empty_null(column)):
        return None
    if column.type is None and raw in {b"true", b"false"}:
        return raw == b"true"
    declared = declared or column.type
    column = _as_table_column(column)
    try:
        if column.encoding is Encoding.UNSCALED_BASE64:
            return _type(column)(_unscaled(raw, Column(column.name, declared)), column)
        return _type(column)(_ENCODINGS[column.encoding](raw, column), column)
    except (ValueError, KeyError, ArithmeticError, msgspec.MsgspecError) as error:
        shown = raw[:80].decode(errors="replace")
        raise UnreadableValueError(
            f"column '{column.name}': {shown} is no {column.type or 'value'} written as {column.encoding}: {error}"
            f"{_remedy(raw, column, declared)}"
        ) from error


def _remedy(raw: bytes, column: Column, declared: str | None) -> str:
    """Return the end of a message that says which type keeps the value; empty where neither text nor bytes does."""
    for kind, kept in (("string", "it as text"), ("binary", "its bytes")):
        if column.type in {None, "binary", kind} or (kind == "binary" and column.type != "string"):
            continue
        try:
            read_value(raw, Column(column.name, kind, column.encoding), declared)
        except UnreadableValueError:
            continue
        return f"; `columns: {{{column.name}: {kind}}}` keeps {kept}"
    return ""


def _as_table_column(column: Column) -> Column:
    """Return the column with the type that it has in a table."""
    kind = table_type(column.type) if column.type else None
    return column if kind == column.type else Column(column.name, kind, column.encoding)


def _is_empty_null(column: Column) -> bool:
    if column.encoding not in {Encoding.TEXT_OR_MILLIS, Encoding.TEXT_OR_MICROS}:
        return False
    return column.type not in {None, "string", "binary"}


def _type(column: Column) -> Callable[[str | bytes, Column], Value]:
    name = (column.type or "string").partition("(")[0]
    if name not in TYPES:
        raise ValueError(f"no value is read as {column.type}")
    return TYPES[name]


def text_of(raw: bytes) -> str:
    """Return the text of a JSON string, and any other JSON as it is written."""
    return msgspec.json.decode(raw, type=str) if raw[:1] == b'"' else raw.decode()


def _text(raw: bytes, _column: Column) -> str:
    return text_of(raw)


def _plain(raw: bytes, column: Column) -> str | bytes:
    """Return the value as written. JSON has no bytes, so a ``binary`` column holds Base64."""
    return _base64(raw, column) if column.type == "binary" else text_of(raw)


def _written_octets(raw: bytes) -> str:
    """Return the text of a JSON string that stands for bytes.

    Raises:
        ValueError: it is other JSON. Its digits and letters would be read as bytes that nobody wrote.
    """
    if raw[:1] != b'"':
        raise ValueError("bytes are written as a string")
    return text_of(raw)


def _integer(raw: bytes, _column: Column) -> int:
    text = text_of(raw)
    if not INTEGER.fullmatch(text):
        raise ValueError("not an integer")
    return int(text)


def _base64(raw: bytes, _column: Column) -> bytes:
    text = _written_octets(raw).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not Base64, {error}") from error


def _unscaled(raw: bytes, column: Column) -> str:
    if raw[:1] != b'"':
        # with decimal.format=NUMERIC, Kafka Connect writes plain numbers under the same schema
        return text_of(raw)
    declared = decimal_declared(column.type)
    if declared is None:
        raise ValueError("only a decimal type tells the scale")
    return _scaled(_base64(raw, column), declared[1])


def _scaled(unscaled: bytes, scale: int) -> str:
    if not 0 < len(unscaled) <= _LONGEST or not -1100 <= scale <= 17_000:
        raise ValueError("no unscaled number, or one of more than a thousand digits")
    return f"{Decimal(int.from_bytes(unscaled, signed=True)).scaleb(-scale, EXACT):f}"


def _scaled_struct(raw: bytes, column: Column) -> str:
    if raw[:1] != b"{":
        return text_of(raw)
    parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    return _scaled(_base64(bytes(parts["value"]), column), _integer(bytes(parts["scale"]), column))


def _epoch(per_unit: int, units: int = 1) -> Callable[[bytes, Column], str]:
    """Return a reader of a count since 1970 in units of ``per_unit / units`` µs."""

    def read(raw: bytes, column: Column) -> str:
        micros, rest = divmod(within(_integer(raw, column), 64) * per_unit, units)
        if column.type in {None, "string"}:
            within(micros // iso8601.DAY, 32)
            return iso8601.instant(micros, rest)
        if rest:
            raise ValueError("finer than a microsecond")
        return iso8601.instant(within(micros, 64))

    return read


def _text_or_epoch(per_unit: int) -> Callable[[bytes, Column], str | bytes]:
    """Return a reader of text. It reads bytes as Base64, and a count of ``per_unit`` µs since 1970 as a time."""
    epoch = _epoch(per_unit)

    def read(raw: bytes, column: Column) -> str | bytes:
        if column.type == "binary":
            return _base64(raw, column)
        if column.type in _TIMES and INTEGER.fullmatch(text_of(raw)):
            return epoch(raw, column)
        return text_of(raw)

    return read


def _epoch_days(raw: bytes, column: Column) -> str:
    return iso8601.date(within(_integer(raw, column), 32))


def _time_of_day(per_unit: int, units: int = 1) -> Callable[[bytes, Column], str]:
    def read(raw: bytes, column: Column) -> str:
        count = within(_integer(raw, column), 64)
        micros, rest = divmod(within(abs(count), 64) * per_unit, units)
        seconds, fraction = divmod(micros, 1_000_000)
        digits = f".{fraction:06d}{iso8601.finer(rest)}" if fraction or rest else ""
        return ("-" if count < 0 else "") + iso8601.clock(seconds) + digits

    return read


_ENCODINGS: dict[Encoding, Callable[[bytes, Column], str | bytes]] = {
    Encoding.PLAIN: _plain,
    Encoding.TEXT: _text,
    Encoding.SCALED_STRUCT: _scaled_struct,
    Encoding.BASE64: _base64,
    Encoding.LATIN1: lambda raw, _column: _written_octets(raw).encode("latin-1"),
    Encoding.HEX: lambda raw, _column: binascii.unhexlify(_written_octets(raw)),
    Encoding.EPOCH_SECONDS: _epoch(1_000_000),
    Encoding.EPOCH_MILLIS: _epoch(1000),
    Encoding.EPOCH_MICROS: _epoch(1),
    Encoding.EPOCH_NANOS: _epoch(1, 1000),
    Encoding.TEXT_OR_MILLIS: _text_or_epoch(1000),
    Encoding.TEXT_OR_MICROS: _text_or_epoch(1),
    Encoding.EPOCH_DAYS: _epoch_days,
    Encoding.MILLIS_OF_DAY: _time_of_day(1000),
    Encoding.MICROS_OF_DAY: _time_of_day(1),
    Encoding.NANOS_OF_DAY: _time_of_day(1, 1000),
    Encoding.BITS_LE_BASE64: lambda raw, column: _base64(raw, column)[::-1],
}
