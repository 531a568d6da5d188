"""Schedules of source files, as Airflow reads them: five cron fields, or a word for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice

from croniter import CroniterBadDateError, croniter

from tidemark.sources.fields import wrong
from tidemark.text import suggestion
from tidemark.values.iso8601 import EPOCH

SCHEDULES: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
"""Word -> its cron fields, as Airflow has them. croniter knows most of these words and not ``@quarterly``."""

_BEYOND = (CroniterBadDateError, OverflowError, ValueError)
"""What croniter raises where a schedule has no moment before the end of the calendar."""


def schedule(text: str) -> str:
    """Return a schedule, which must be five cron fields or one of ``SCHEDULES``, and must come again and again."""
    if text.startswith("@") and text not in SCHEDULES:
        raise wrong(f"unknown schedule '{text}'.{suggestion(text, SCHEDULES)[:-1]}, or five cron fields, or null.")
    fields = SCHEDULES.get(text, text)
    # croniter's R is a number by chance: each time that the schedule is read, it would name other moments.
    by_chance = any(field.startswith(("r", "R")) for field in fields.split())
    if len(fields.split()) != 5 or by_chance or not croniter.is_valid(fields):
        raise wrong(f"'{text}' is no cron expression: five fields (minute hour day month weekday), '@daily' or null.")
    if not comes_after(text, EPOCH):
        raise wrong(f"'{text}' never comes: no month that it names has such a day.")
    return text


def times(text: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of a schedule after ``after`` to the end of the calendar, as the clock of its zone shows both."""
    cron = _cron(text, after)
    while True:
        try:
            found: datetime = cron.get_next(datetime)
        except _BEYOND:
            return
        yield found


def comes_after(text: str, after: datetime, zone: tzinfo = UTC) -> bool:
    """Return whether a schedule has an interval after a moment: in the calendar, and before its end in year 9999."""
    try:
        next_moment(text, next_moment(text, after, zone), zone)
    except _BEYOND:
        return False
    return True


@lru_cache(maxsize=64)
def longest_wait(text: str, after: datetime, zone: tzinfo = UTC) -> timedelta:
    """Return the longest time from the start of an interval to the end of the one behind it, or an hour behind its own.

    Looks at the first thirteen intervals after a moment. That is enough if all days are alike and the thirteen span two
    days, if the schedule has a time in each hour of all days, or if they span a year. Otherwise it also finds every
    interval of an hour or more in the first day and, if days differ, every one of six hours or more in the first forty
    days. So nights, weekends and the rest of a month are among them. Where clocks of the zone are put back, the time is
    as much longer.
    """
    local = after.astimezone(zone).replace(tzinfo=None)
    first = list(islice(times(text, local), 14))
    found = [_wait(*three) for three in zip(first, first[1:], [*first[2:], first[-1]], strict=False)]
    for wait in _looked_at(text, first[-1] - first[0]):
        try:
            found += _waits_around(text, local + wait + timedelta(seconds=30))
        except _BEYOND:
            continue
    year = timedelta(days=183)
    offsets = {(after + number * year).astimezone(zone).utcoffset() or timedelta(0) for number in range(2)}
    return max(found) + (max(offsets) - min(offsets))


def _looked_at(text: str, known: timedelta) -> Iterator[timedelta]:
    """Yield how far from the first moment longer intervals are looked for, where they may be; ``known`` was read."""
    _, hours, *days = SCHEDULES.get(text, text).split()
    are_alike = set(days) == {"*"}
    if known >= timedelta(days=2 if are_alike else 366) or (are_alike and hours == "*"):
        return
    yield from (timedelta(hours=hour) for hour in range(24))
    if not are_alike:
        yield from (timedelta(hours=6 * number) for number in range(4, 160))


def _waits_around(text: str, moment: datetime) -> list[timedelta]:
    """Return the waits of the interval around a moment, at which the schedule has none, and of the one before."""
    behind, before = _cron(text, moment), _cron(text, moment)
    end, due = (behind.get_next(datetime) for _ in range(2))
    begin, earlier = (before.get_prev(datetime) for _ in range(2))
    return [_wait(begin, end, due), _wait(earlier, begin, end)]


def _wait(begin: datetime, end: datetime, due: datetime) -> timedelta:
    return max(due, end + timedelta(hours=1)) - begin


def next_moment(text: str, after: datetime, zone: tzinfo = UTC) -> datetime:
    """Return the first moment of a schedule after ``after``, in UTC, as Airflow's timetables find it.

    Clocks of the zone may be put forward or back in between. A schedule for every hour goes on by the time that passes;
    any other schedule names times that the clock shows, the second time where it shows them twice.
    """
    now = datetime.fromtimestamp(after.timestamp(), UTC)  # Airflow's own kind of datetime computes otherwise
    local = now.astimezone(zone).replace(tzinfo=None)
    cron = _cron(text, local)
    shown: datetime = cron.get_next(datetime)
    if cron.expanded[1] == ["*"]:
        return now + (shown - local)
    return max(shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def _cron(text: str, after: datetime) -> croniter:
    return croniter(SCHEDULES.get(text, text), after)
