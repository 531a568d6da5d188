"""Gauges of the published tables, sent by Airflow's own metrics: where a table stands after check and publish.

Airflow's section ``[metrics]`` says where they go: StatsD, Datadog or OpenTelemetry. Where it says nothing, nothing is
read. A gauge that cannot be sent fails nothing.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowRescheduleException
from airflow.sdk.observability import stats

from tidemark.stages import STAGES
from tidemark.text import first_line

GAUGES = ("tidemark.rows", "tidemark.lag", "tidemark.held", "tidemark.quarantined")
"""Rows, seconds since the newest commit, and events that are held and set aside, as ``tidemark status`` counts them."""

log = logging.getLogger(__name__)


@contextmanager
def sent_after(stage: str, source: str | None) -> Iterator[None]:
    """Send the gauges of a source after a stage that a run may end with, whatever becomes of it."""
    try:
        yield
    finally:
        put_off: Any = AirflowRescheduleException  # Any: Airflow does not type it
        if source and stage in _LAST and not isinstance(sys.exception(), put_off):
            _send(source)


_LAST = frozenset(STAGES[-2:])
"""Stages that a run ends with: check, if it fails, else publish."""


def _send(source: str) -> None:
    """Send the gauges of each table of a source, as its ledger has them now."""
    if not any(_is_on(name) for name in (*_WITH_TAGS, "statsd_on")):
        return
    from tidemark.lake.lake import Lake  # noqa: PLC0415 - a DAG is parsed without an engine
    from tidemark.queries.status import status_of  # noqa: PLC0415

    try:
        tables = status_of(Lake.open(), source)["tables"]
    except Exception as error:  # noqa: BLE001 - the stage is over, and its end must not depend on this
        log.warning("gauges of %s not sent: %s", source, first_line(error))
        return
    for table, status in tables.items():
        for gauge, value in zip(
            GAUGES, (status["rows"], status["lag_seconds"], status["held"], status["quarantined"]), strict=True
        ):
            if value is not None:
                stats.gauge(_name(gauge, table), value, tags={"source": source, "table": table})


_WITH_TAGS = ("otel_on", "statsd_datadog_enabled", "statsd_influxdb_enabled")
"""Settings of Airflow by which metrics have tags. StatsD itself has none."""


def _name(gauge: str, table: str) -> str:
    """Return the name of a gauge. If no tag can name the table, the name of the gauge does."""
    if any(map(_is_on, _WITH_TAGS)):
        return gauge
    return stats.normalize_name_for_stats(f"{gauge}.{table}", log_warning=False)


def _is_on(name: str) -> bool:
    return bool(conf.getboolean("metrics", name, fallback=False))
