"""Dates and times as ISO 8601 text, in any year that a 64-bit count of microseconds reaches, before 1582 too."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, tzinfo

from tidemark.errors import ConfigurationError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MICROSECOND = timedelta(microseconds=1)

DAY = 86_400_000_000
"""Microseconds of a day."""

_DATE = re.compile(r"([+-]?[0-9]{4,6})-([0-9]{2})-([0-9]{2})")

_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?")

_ZONE = re.compile(r" ?(?:Z|UTC|([+-])([01][0-9]|2[0-3]):?([0-5][0-9])?)")


def to_micros(at: datetime) -> int:
    """Return a moment in epoch µs."""
    return (at - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment of epoch µs, in UTC."""
    return EPOCH + micros * _MICROSECOND


def text_of(at: datetime | None) -> str | None:
    """Return a time as JSON has it; None for none."""
    return None if at is None else at.isoformat()


def instant(micros: int, nanos: int = 0) -> str:
    """Write epoch µs, and ns beyond them, as ``2026-01-31T23:59:59.000001``, in any year."""
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    return f"{date(days)}T{clock(seconds)}.{fraction:06d}{finer(nanos)}"


def clock(seconds: int) -> str:
    """Write a time of day, or a longer time."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def finer(nanos: int) -> str:
    """Write the nanoseconds behind six digits of a fraction, without zeros at the end."""
    return f"{nanos:03d}".rstrip("0") if nanos else ""


def date(days: int) -> str:
    """Write days since 1970 as ISO 8601, in any year of the Gregorian calendar, before 1582 too."""
    # days of March-based years, so that the leap day is the last: https://howardhinnant.github.io/date_algorithms.html
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (month <= 2)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{month:02d}-{day + 1:02d}"


def moment(given: object, zone: tzinfo = UTC) -> datetime | None:
    """Return a moment of an interval or a schedule, in UTC; None for nothing.

    Args:
        given: a date, a time, or its ISO 8601 text.
        zone: the zone of a time that has none.

    Raises:
        ConfigurationError: it is no ISO 8601 time.
    """
    if given is None or given == "":
        return None
    try:
        found = datetime.fromisoformat(str(given))
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):  # in UTC it may be in the year 0 or 10000
        raise ConfigurationError(f"'{given}' is no time: write 2026-01-31 or 2026-01-31T06:00:00Z") from None


def interval_between(start: object, end: object) -> tuple[datetime | None, datetime | None]:
    """Return the bounds of an interval ``[start, end)``, each as ``moment`` reads it.

    Raises:
        ConfigurationError: a bound is no ISO 8601 time, or the end does not come after the start.
    """
    bounds = moment(start), moment(end)
    if bounds[0] and bounds[1] and bounds[0] >= bounds[1]:
        raise ConfigurationError(
            f"the interval ends ({end}) before it starts ({start}), or as it does: the end must come after the start"
        )
    return bounds


def _days(match: re.Match[str]) -> int:
    """Return the days since 1970 of a date that exists."""
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(2000 + year % 400, month)[1]:
        raise ValueError("no such day")
    year -= month <= 2
    era, rest = divmod(year, 400)
    return era * 146_097 + rest * 365 + rest // 4 - rest // 100 + (153 * ((month + 9) % 12) + 2) // 5 + day - 719_469


def read(text: str) -> tuple[int, int]:
    """Read a date, a time if any and a zone if any: wall clock as µs since 1970, and the zone's offset in µs."""
    day = _DATE.match(text)
    if day is None:
        raise ValueError("not a date")
    micros, end = _days(day) * DAY, day.end()
    time = _TIME.match(text, end + 1) if text[end : end + 1] in {" ", "T"} else None
    if time is not None:
        micros, end = micros + _micros_of_day(time), time.end()
    zone = _ZONE.fullmatch(text, end)
    if zone is None and end != len(text):
        raise ValueError("not a date and time")
    if zone is None or zone[1] is None:
        return micros, 0
    offset = (int(zone[2]) * 60 + int(zone[3] or 0)) * 60_000_000
    return micros, -offset if zone[1] == "-" else offset


def _micros_of_day(match: re.Match[str]) -> int:
    hour, minute, second, fraction = int(match[1]), int(match[2]), int(match[3] or 0), match[4] or ""
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("no such time of day")
    if fraction[6:].strip("0"):
        raise ValueError("finer than a microsecond")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
