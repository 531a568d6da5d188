"""The types of the plain reader: a value that was brought from its encoding must fit its column's type exactly."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from decimal import Context, Decimal, Inexact

from tidemark.events import TIMES, Column
from tidemark.values import iso8601
from tidemark.values.message_types import decimal_declared

Value = str | bool | None
"""A value as printed: numbers as text, bytes as Base64, dates and times as ISO 8601."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")

_NOT_FINITE = {
    "nan": "NaN",
    **dict.fromkeys(("inf", "infinity", "positive_infinity"), "Infinity"),
    **dict.fromkeys(("-inf", "-infinity", "negative_infinity"), "-Infinity"),
}
"""Words in any case. The long ones are Debezium's."""

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}

EXACT = Context(prec=20_000, Emax=999_999_999, Emin=-999_999_999, traps=[Inexact])

INTEGER = re.compile(r"[+-]?[0-9]{1,400}")


def _string(written: str | bytes, _column: Column) -> str:
    return written.decode() if isinstance(written, bytes) else written


def _binary(written: str | bytes, _column: Column) -> str:
    return base64.b64encode(written if isinstance(written, bytes) else written.encode()).decode()


def _boolean(written: str | bytes, column: Column) -> bool:
    return _BOOLEANS[_string(written, column).lower()]


def _whole(bits: int) -> Callable[[str | bytes, Column], str]:
    def fit(written: str | bytes, column: Column) -> str:
        text = _string(written, column)
        if not INTEGER.fullmatch(text):
            raise ValueError("not an integer")
        return str(within(int(text), bits))

    return fit


def within(number: int, bits: int) -> int:
    """Return the number if a signed integer of so many bits holds it.

    Raises:
        ValueError: it does not.
    """
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"beyond {bits} bits")
    return number


def _decimal(written: str | bytes, column: Column) -> str:
    text, typed = _string(written, column), decimal_declared(column.type)
    if typed is None or not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    number = Decimal(text).normalize(EXACT)
    digits, scale = typed
    if number and number.adjusted() >= digits - scale:
        raise ValueError(f"more than {digits - scale} digits before the point")
    if number and int(number.as_tuple().exponent) < -scale:
        raise ValueError(f"more than {scale} digits after the point")
    # as written, but without leading zeros (MySQL's ZEROFILL) and exponents
    written_scale = int(Decimal(text).as_tuple().exponent) <= 0
    return f"{Decimal(text) if written_scale else number:f}"


def _floating(fit: str) -> Callable[[str | bytes, Column], str]:
    def read(written: str | bytes, column: Column) -> str:
        text = _string(written, column)
        if text.lower() in _NOT_FINITE:
            return _NOT_FINITE[text.lower()]
        if not _NUMBER.fullmatch(text):
            raise ValueError("not a number")
        number = float(text)
        try:
            struct.pack(fit, number)
        except OverflowError as error:
            raise ValueError("too large") from error
        if number in {float("inf"), float("-inf")}:
            raise ValueError("too large")
        return text

    return read


def _as_date(written: str | bytes, column: Column) -> str:
    days, rest = divmod(_wall_clock(_string(written, column)), iso8601.DAY)
    if rest:
        raise ValueError("a date with a time of day")
    _readable(days * iso8601.DAY)
    return iso8601.date(days)


def _as_timestamp(written: str | bytes, column: Column) -> str:
    return iso8601.instant(_readable(_wall_clock(_string(written, column))))


def _wall_clock(text: str) -> int:
    """Return a wall-clock time as written. UTC in the text does not shift it; with another zone it is an instant."""
    micros, offset = iso8601.read(text)
    if offset:
        raise ValueError("an instant with an offset, and no wall-clock time")
    return micros


def _as_timestamptz(written: str | bytes, column: Column) -> str:
    """Return the instant in UTC. A text without a zone is in UTC."""
    micros, offset = iso8601.read(_string(written, column))
    return f"{iso8601.instant(_readable(micros - offset))}Z"


def _readable(micros: int) -> int:
    """Return epoch µs of a date or time that readers of the lake know."""
    if micros not in TIMES:
        raise ValueError("outside of the years 1 to 9999, which is all that readers of dates and times know")
    return micros


TYPES: dict[str, Callable[[str | bytes, Column], Value]] = {
    "string": _string,
    "binary": _binary,
    "boolean": _boolean,
    "int": _whole(32),
    "long": _whole(64),
    "decimal": _decimal,
    "float": _floating("<f"),
    "double": _floating("<d"),
    "date": _as_date,
    "timestamp": _as_timestamp,
    "timestamptz": _as_timestamptz,
}
