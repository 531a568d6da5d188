"""The one place that says which interval ``[start, end)`` a run is for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from croniter import croniter

from tidemark.errors import ConfigurationError

Interval = tuple[datetime | None, datetime | None]
"""``[start, end)`` in UTC; both None: everything that has not been landed yet."""


def interval_of(context: Mapping[str, Any], schedule: str | None = None) -> Interval:
    """Return the interval of a run: what the trigger form says, else the partition, else the data interval.

    Args:
        context: Airflow's task context: ``params`` (``start``, ``end``), ``dag_run`` (``partition_key``: the start of
            an interval of the schedule, ISO 8601) and ``data_interval_start``, ``data_interval_end``.
        schedule: of the source; tells where a partition ends.

    Raises:
        ConfigurationError: a time that is none, an end that does not come after the start, or a partition of a source
            that has no schedule.
    """
    params = context["params"]
    start, end = moment(params.get("start")), moment(params.get("end"))
    partition = getattr(context.get("dag_run"), "partition_key", None)
    if start is None and end is None and partition:
        start = moment(partition)
        end = _next(start, schedule, partition) if start else None
    elif start is None and end is None:
        start, end = moment(context.get("data_interval_start")), moment(context.get("data_interval_end"))
        if start == end:  # triggered by hand and without a schedule
            return None, None
    if start and end and start >= end:
        raise ConfigurationError(f"interval [{start}, {end}) is empty: the end must come after the start")
    return start, end


def width(schedule: str, after: datetime) -> timedelta:
    """Time between the next two moments of a schedule."""
    moments = croniter(schedule, after)
    first: datetime = moments.get_next(datetime)
    return moments.get_next(datetime) - first


def next_moment(schedule: str, after: datetime) -> datetime:
    """First moment of a schedule after another."""
    found: datetime = croniter(schedule, after).get_next(datetime)
    return found


def moment(given: str | datetime | None) -> datetime | None:
    """Read a time; UTC unless it has a zone; None for none.

    Raises:
        ConfigurationError: it is no ISO 8601 time.
    """
    if not given:
        return None
    try:
        found = datetime.fromisoformat(str(given))
    except ValueError:
        raise ConfigurationError(f"'{given}' is no time: write 2026-01-31T06:00:00Z") from None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _next(start: datetime, schedule: str | None, partition: str) -> datetime:
    if schedule is None:
        raise ConfigurationError(
            f"partition '{partition}' has no end without a schedule: give `start` and `end`, or the source a schedule"
        )
    return next_moment(schedule, start)
