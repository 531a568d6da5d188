"""The interval ``[start, end)`` of a run. Only this module decides it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from airflow.sdk import TaskInstanceState

from tidemark.errors import ConfigurationError
from tidemark.sources.schedules import next_moment
from tidemark.values.iso8601 import interval_between, moment

Interval = tuple[datetime | None, datetime | None]
"""``[start, end)`` in UTC. Both None mean everything that has not been landed yet."""

_LOOK_BACK = 100
"""Most earlier runs, backfills among them, that are searched for the previous scheduled run: a request for each."""


def interval_of(context: Mapping[str, Any], schedule: str | None = None, zone: tzinfo = UTC) -> Interval:
    """Return the interval of a run: from the trigger form, or else the partition, or else the data interval.

    Args:
        context: Airflow's task context: ``params`` (``start``, ``end``), ``dag_run`` (``partition_key``: the start of
            an interval of the schedule, ISO 8601) and ``data_interval_start``, ``data_interval_end``.
        schedule: schedule of the source, which gives the end of a partition.
        zone: time zone of the schedule.

    Raises:
        ConfigurationError: a time cannot be read, the end does not come after the start, or the source has partitions
            but no schedule.
    """
    params = context["params"]
    start, end = moment(params.get("start")), moment(params.get("end"))
    partition = getattr(context.get("dag_run"), "partition_key", None)
    if start is None and end is None and partition:
        start = moment(partition)
        end = _end(start, schedule, zone, partition) if start else None
    elif start is None and end is None:
        start, end = moment(context.get("data_interval_start")), moment(context.get("data_interval_end"))
        if start == end:  # triggered by hand and without a schedule
            return None, None
    return interval_between(start, end)


def with_passed_over(
    context: Mapping[str, Any], interval: Interval, schedule: str | None, zone: tzinfo = UTC
) -> Interval:
    """Return the interval of a run, in which a scheduled run begins where the previous scheduled one ended.

    Airflow makes no run for intervals that passed while it was down, or while the previous run took longer than an
    interval. So the next scheduled run includes them. It does not where more than ``_LOOK_BACK`` runs were backfilled
    in between; land then gives a remark with the files that are in no interval.
    """
    run, params = context.get("dag_run"), context["params"]
    start, end = interval
    at = run.logical_date if run and run.run_type == "scheduled" else None
    if schedule is None or start is None or params.get("start") or params.get("end"):
        return interval
    for _ in range(_LOOK_BACK):
        before = context["ti"].get_previous_ti(TaskInstanceState.SUCCESS, at) if at else None
        if before is None:
            break
        at = before.logical_date
        if at and before.run_id.startswith("scheduled"):
            return min(start, _ended(before.run_id, at, schedule, zone)), end
    return interval


def _ended(run_id: str, at: datetime, schedule: str, zone: tzinfo) -> datetime:
    """Return the end of the interval of a scheduled run.

    Airflow names a run after it. The schedule would tell another end, where it has changed since that run.
    """
    try:
        named = moment(run_id.partition("__")[2])
    except ConfigurationError:
        named = None
    return named or next_moment(schedule, at, zone)


def _end(start: datetime, schedule: str | None, zone: tzinfo, partition: str) -> datetime:
    if schedule is None:
        raise ConfigurationError(
            f"partition '{partition}' has no end without a schedule: give `start` and `end`, or the source a schedule"
        )
    return next_moment(schedule, start, zone)
