"""Schedules of source files, as Airflow reads them: five cron fields, or a word for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, pairwise

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


def widths(text: str, after: datetime, zone: tzinfo = UTC) -> list[timedelta]:
    """Return how long the next intervals of a schedule are by the clock of its zone, in their order.

    They are thirteen, or all of eight days if these are more, so that nights and weekends are among them; but a
    thousand at most, and sixty of a schedule for every hour, whose hours are alike. They are fewer where the calendar
    ends.
    """
    most = 60 if SCHEDULES.get(text, text).split()[1:] == ["*"] * 4 else 1000
    moments: list[datetime] = []
    for moment in islice(times(text, after.astimezone(zone).replace(tzinfo=None)), most + 1):
        moments.append(moment)
        if len(moments) > 13 and moment - moments[0] > timedelta(days=8):
            break
    return [end - begin for begin, end in pairwise(moments)]


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
