"""Schedules of source files: which are taken, and that each of them comes again and again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tidemark.errors import InvalidSourceError
from tidemark.sources.files import load_source
from tidemark.sources.schedules import SCHEDULES, longest_wait, next_moment, times

FILE = "source: a\nformat: canal_json\nlanding: /landing/*\n"


def declared(folder: Path, **keys: str) -> Path:
    """Write a source file with these keys and return its path."""
    path = folder / "a.yaml"
    path.write_text(FILE + "".join(f"{key}: {value}\n" for key, value in keys.items()), "utf-8")
    return path


@pytest.mark.parametrize("word", SCHEDULES)
def test_each_word_that_is_allowed_has_intervals(tmp_path: Path, word: str) -> None:
    """A word that the errors list is one that a DAG can be built with."""
    source = load_source(declared(tmp_path, schedule=f'"{word}"', start_date="2026-01-01"))
    assert source.schedule == word
    assert longest_wait(word, source.start_date, source.zone) > timedelta(0)


def test_a_quarter_begins_every_third_month() -> None:
    """``@quarterly`` is what Airflow takes it for."""
    assert next_moment("@quarterly", datetime(2026, 2, 3, tzinfo=UTC)) == datetime(2026, 4, 1, tzinfo=UTC)
    assert next_moment("@quarterly", datetime(2026, 4, 1, tzinfo=UTC)) == datetime(2026, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize("cron", ["0 0 31 4 *", "0 0 30 2 *", "0 0 31 2,4,6 *"])
def test_a_schedule_that_never_comes_is_refused(tmp_path: Path, cron: str) -> None:
    """A day that no month of the schedule has is found before Airflow looks for it."""
    with pytest.raises(InvalidSourceError, match=r"a\.yaml:4:11: schedule: '.*' never comes"):
        load_source(declared(tmp_path, schedule=f'"{cron}"'))


@pytest.mark.parametrize("cron", ["0 0 29 2 *", "0 0 31 4 1", "0 0 31 1,4 *", "0 0 * MAR FRI"])
def test_a_rare_schedule_is_taken(tmp_path: Path, cron: str) -> None:
    """Leap days, a weekday beside an impossible day, and names with the letter R are schedules."""
    assert load_source(declared(tmp_path, schedule=f'"{cron}"')).schedule == cron


@pytest.mark.parametrize("cron", ["0 0 * 2 0#5", "0 0 29 2 *"])
def test_times_end_with_the_calendar(cron: str) -> None:
    """The times of a rare schedule are fewer than are asked for, and no error."""
    found = list(times(cron, datetime(9000, 1, 1, tzinfo=UTC)))
    assert found
    assert {(time.month, time.day) for time in found} == {(2, 29)}
    assert found == sorted(set(found))
    assert 9900 < found[-1].year <= 9999


@pytest.mark.parametrize("cron", ["R R * * *", "0 r/6 * * *", "0 0 R(1-9) * *", "H H * * *"])
def test_a_schedule_by_chance_is_refused(tmp_path: Path, cron: str) -> None:
    """Each reading of such a schedule would name other moments."""
    with pytest.raises(InvalidSourceError, match="is no cron expression"):
        load_source(declared(tmp_path, schedule=f'"{cron}"'))


@pytest.mark.parametrize(
    ("schedule", "date", "zone"),
    [
        ("@daily", "9999-12-31", "UTC"),
        ("@yearly", "9998-06-01", "America/New_York"),
        ("@daily", "0001-01-01T00:00:00Z", "America/New_York"),
    ],
)
def test_a_start_date_leaves_room_for_an_interval(tmp_path: Path, schedule: str, date: str, zone: str) -> None:
    """A start date at the edge of the calendar is refused with its schedule, and taken without one."""
    with pytest.raises(InvalidSourceError, match=rf"a\.yaml:4:13: start_date: '{schedule}' does not come twice"):
        load_source(declared(tmp_path, start_date=date, timezone=zone, schedule=f'"{schedule}"'))
    assert load_source(declared(tmp_path, start_date=date, timezone=zone)).zone == ZoneInfo(zone)


@pytest.mark.parametrize(
    ("cron", "zone", "wait"),
    [
        ("@daily", "UTC", timedelta(days=2)),
        ("@daily", "Europe/Berlin", timedelta(days=2, hours=1)),
        ("@daily", "Asia/Shanghai", timedelta(days=2)),
        ("@hourly", "UTC", timedelta(hours=2)),
        ("*/5 * * * *", "UTC", timedelta(hours=1, minutes=5)),
        ("*/5 * * * 1-5", "UTC", timedelta(days=2, hours=1, minutes=5)),
        ("*/5 9-17 * * 1-5", "UTC", timedelta(days=2, hours=16, minutes=5)),
        ("0 6 * * 1-5", "UTC", timedelta(days=4)),
        ("0 6,12,18 * * *", "UTC", timedelta(hours=18)),
        ("0 2 1-15 * *", "UTC", timedelta(days=18)),
        ("@monthly", "UTC", timedelta(days=62)),
    ],
)
@pytest.mark.parametrize("day", [1, 5])
def test_the_longest_wait_has_nights_weekends_and_the_rest_of_a_month(
    cron: str, zone: str, wait: timedelta, day: int
) -> None:
    """Whichever day of the week comes first."""
    assert longest_wait(cron, datetime(2026, 1, day, tzinfo=ZoneInfo(zone)), ZoneInfo(zone)) == wait


def test_a_wait_at_the_end_of_the_calendar() -> None:
    """One interval is left."""
    assert longest_wait("@yearly", datetime(9997, 6, 1, tzinfo=UTC)) >= timedelta(days=365, hours=1)
