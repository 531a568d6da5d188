"""The thirteen branches of a value in a DTS Record, each read from its Avro binary form to its value in JSON.

Numbers become text, bytes stay bytes (Base64 in JSON), dates and times become ISO 8601. Each value has a kind of
``_dts.types``. Every reader takes (bytes, place, style) and returns (value, kind, place behind the value). Reading past
the end may raise an IndexError only later, so the caller checks the last place.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tidemark.avro.binary import chunk, varint
from tidemark.errors import UnreadableValueError
from tidemark.formats._dts import charsets as dts_charsets
from tidemark.formats._dts.types import (
    BINARY,
    DATE,
    DATETIME,
    DECIMAL,
    FLOAT,
    INSTANT,
    INTEGER,
    NONE,
    NULL,
    TEXT,
    TIME,
    UNTYPED,
    YEAR,
    measured,
)
from tidemark.formats._dts.zones import instant_of
from tidemark.values import iso8601

Value = str | bytes | None

Read = tuple[Value, int, int]
"""Value, kind, place behind the value."""


class Style(NamedTuple):
    """The way in which one kind of source writes its values."""

    charsets: Mapping[str, str]
    charset: str | None
    """Character set of text that names none. None: such text is unreadable."""
    places: int
    """Digits of ``millis``: 6 for microseconds, 9 for nanoseconds."""
    measured: bool
    """Whether a decimal has the precision and scale of its column."""


def _null(_buffer: bytes, place: int, _style: Style) -> Read:
    return None, NULL, place


def _integer(buffer: bytes, place: int, _style: Style) -> Read:
    """Return an integer. Its ``precision``, the width in bytes at the source, is not used."""
    _, place = varint(buffer, place)
    digits, place = chunk(buffer, place)
    text = digits.decode()
    if len(digits) < 19 or (len(digits) <= 20 and -(1 << 63) <= int(text) < 1 << 63):
        return text, INTEGER, place
    return text, UNTYPED, place


def _character(buffer: bytes, place: int, style: Style) -> Read:
    charset, place = chunk(buffer, place)
    content, place = chunk(buffer, place)
    if charset in {b"utf8mb4", b"utf8"}:
        try:
            return content.decode(), TEXT, place
        except UnicodeDecodeError:
            pass  # the general way below says what is wrong
    name = charset.decode() or style.charset or ""
    if name == "binary":
        return content, BINARY, place
    return dts_charsets.decode(content, name, style.charsets), TEXT, place


def _decimal(buffer: bytes, place: int, style: Style) -> Read:
    digits, place = chunk(buffer, place)
    precision, place = varint(buffer, place)
    scale, place = varint(buffer, place)
    text = digits.decode()
    point = text.find(".")
    behind = 0 if point < 0 else len(text) - point - 1
    before = (len(text) if point < 0 else point) - text.startswith("-")
    if not text[-1:].isdecimal():
        return text, UNTYPED, place
    if style.measured and 0 < precision <= 65 and behind <= scale <= precision and before <= max(precision - scale, 1):
        return text, measured(precision, scale), place
    return text, DECIMAL if before <= 20 and behind <= 18 else UNTYPED, place


def _float(buffer: bytes, place: int, _style: Style) -> Read:
    (number,) = struct.unpack_from("<d", buffer, place)
    _, place = varint(buffer, place + 8)
    _, place = varint(buffer, place)
    if number - number != 0:
        return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity", FLOAT, place  # noqa: PLR0124 - only NaN differs from itself
    return repr(number), FLOAT, place


def _timestamp(buffer: bytes, place: int, style: Style) -> Read:
    seconds, place = varint(buffer, place)
    millis, place = varint(buffer, place)
    if millis < 0:
        raise UnreadableValueError(f"a fraction of {millis}")
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{_date(days)}T{clock}{_fraction(millis, style.places)}Z", INSTANT, place


_date = functools.lru_cache(maxsize=4096)(iso8601.date)


def _parts(buffer: bytes, place: int) -> tuple[list[int | None], int]:
    """Return year, month, day, hour, minute, second and fraction, each None if it is not set, and the place behind."""
    parts: list[int | None] = []
    for _ in range(7):
        branch = buffer[place]
        place += 1
        if branch == 2:
            byte = buffer[place]
            if byte < 0x80:
                parts.append((byte >> 1) ^ -(byte & 1))
                place += 1
            else:
                number, place = varint(buffer, place)
                parts.append(number)
        elif branch == 0:
            parts.append(None)
        else:
            raise ValueError("a part of a date that is neither null nor an int")
    return parts, place


def _datetime(buffer: bytes, place: int, style: Style) -> Read:
    day, clock = _usual_day(buffer[place : place + 7]), _usual_clock(buffer[place + 7 : place + 13])
    if day and clock:
        branch, place = buffer[place + 13], place + 14
        if branch == 0:
            return day + clock, DATETIME, place
        if branch == 2:
            millis, place = varint(buffer, place)
            if millis < 0:
                raise UnreadableValueError(f"a fraction below zero: {millis}")
            return day + clock + (_fraction(millis, style.places) if millis else ""), DATETIME, place
        raise ValueError("a fraction that is neither null nor an int")
    parts, place = _parts(buffer, place)
    text, kind = _wall_clock(parts, style.places)
    return text, kind, place


@functools.lru_cache(maxsize=8192)
def _usual_day(raw: bytes) -> str | None:
    """Return the date and a blank, if year (two bytes), month and day (one byte each) are set; else None."""
    if len(raw) < 7 or raw[0:1] + raw[3:4] + raw[5:6] != b"\2\2\2" or not raw[1] & 0x80 or (raw[1] | raw[6]) & 1:
        return None
    year = ((raw[1] & 0x7F) | raw[2] << 7) >> 1
    if (raw[2] | raw[4] | raw[6]) & 0x80 or raw[4] & 1:
        return None
    return f"{year:04d}-{raw[4] >> 1:02d}-{raw[6] >> 1:02d} "


@functools.lru_cache(maxsize=1 << 16)
def _usual_clock(raw: bytes) -> str | None:
    """Return the time of day, if hour, minute and second are set, each in one byte; else None."""
    if len(raw) < 6 or raw[0:5:2] != b"\2\2\2" or (raw[1] | raw[3] | raw[5]) & 0x81:
        return None
    return f"{raw[1] >> 1:02d}:{raw[3] >> 1:02d}:{raw[5] >> 1:02d}"


def _zoned(buffer: bytes, place: int, style: Style) -> Read:
    parts, place = _parts(buffer, place)
    zone, place = chunk(buffer, place)
    text, kind = _wall_clock(parts, style.places)
    if kind == DATETIME:
        return instant_of(text, zone.decode()), INSTANT, place
    if kind == TIME:
        return text + zone.decode(), TIME, place
    raise UnreadableValueError(f"a zone, and no time of day: {text}")


def _wall_clock(parts: list[int | None], places: int) -> tuple[str, int]:
    """Return the text of the parts that are set, and its kind.

    Such texts are ``2026-01-31 23:59:59.000001``, ``2026-01-31``, ``-838:59:59``, ``2026``. A TIME is negative if any
    part is: DTS puts the sign on one part or on all.
    """
    year, month, day, hour, minute, second, millis = parts
    if year is not None and hour is not None:
        if month is None or day is None or minute is None or min(hour, minute, second or 0, millis or 0) < 0:
            raise UnreadableValueError(f"a date and time with a part missing or below zero: {parts}")
        return f"{_day(year, month, day)} {_clock(hour, minute, second, millis, places)}", DATETIME
    if hour is not None:
        if minute is None or month is not None or day is not None:
            raise UnreadableValueError(f"a time of day without minutes, or with half a date: {parts}")
        sign = "-" if min(hour, minute, second or 0, millis or 0) < 0 else ""
        clock = _clock(abs(hour), abs(minute), None if second is None else abs(second), abs(millis or 0), places)
        return sign + clock, TIME
    if year is None or minute is not None or second is not None or millis:
        raise UnreadableValueError(f"neither a date nor a time of day: {parts}")
    if month is None and day is None:
        return str(year), YEAR
    if month is None or day is None:
        raise UnreadableValueError(f"a date without month or day: {parts}")
    return _day(year, month, day), DATE


def _day(year: int, month: int, day: int) -> str:
    return f"{year:04d}-{month:02d}-{day:02d}" if year >= 0 else f"{year:05d}-{month:02d}-{day:02d}"


def _clock(hour: int, minute: int, second: int | None, millis: int | None, places: int) -> str:
    if second is None:
        if millis:
            raise UnreadableValueError("a fraction of a second, and no seconds")
        return f"{hour:02d}:{minute:02d}"
    if millis:
        return f"{hour:02d}:{minute:02d}:{second:02d}{_fraction(millis, places)}"
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def _fraction(millis: int, places: int) -> str:
    """Return the fraction of a second, from the field ``millis``, which holds micro- or nanoseconds."""
    if millis >= 10**places:
        unit = "microseconds" if places == 6 else "nanoseconds"
        raise UnreadableValueError(f"{millis} {unit} are a second or more; see the option `fraction`")
    text = f".{millis:0{places}d}"
    return text[:7] if text.endswith("000") and places == 9 else text


def _bytes(buffer: bytes, place: int, _style: Style) -> Read:
    _, place = chunk(buffer, place)
    content, place = chunk(buffer, place)
    return content, BINARY, place


def _text(buffer: bytes, place: int, _style: Style) -> Read:
    _, place = chunk(buffer, place)
    content, place = chunk(buffer, place)
    return content.decode(), TEXT, place


def _empty(buffer: bytes, place: int, _style: Style) -> Read:
    symbol = buffer[place]
    if symbol not in {0, 2}:
        raise ValueError("an EmptyObject that is neither NULL nor NONE")
    return None, NONE if symbol else NULL, place + 1


READERS: Final[tuple[Callable[[bytes, int, Style], Read], ...]] = (
    _null, _integer, _character, _decimal, _float, _timestamp, _datetime, _zoned,
    _bytes, _text, _bytes, _text, _empty,
)  # fmt: skip
"""Readers, by branch: null, Integer, Character, Decimal, Float, Timestamp, DateTime, TimestampWithTimeZone,
BinaryGeometry, TextGeometry, BinaryObject, TextObject, EmptyObject."""
