"""Where tables stand is sent by Airflow's own metrics, as Airflow is configured: to StatsD, or to OpenTelemetry."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from typing import NamedTuple

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from support.ledgers import Written
from tidemark import INCLUDE
from tidemark.lake.lake import Lake

TASKS = """\
import json, os, sys
from types import SimpleNamespace
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory
from tidemark.orchestration.stage_operator import StageOperator
for settings in json.loads(sys.argv[1]):
    os.environ |= settings
    stats.initialize(factory=get_stats_factory(), export_legacy_names=True)  # as Airflow does before each task
    try:
        task = SimpleNamespace(try_number=1, xcom_push=print)
        StageOperator(stage="publish", source="erp").execute({"params": {}, "ti": task})
    except AirflowFailException as error:
        print("failed:", error)
    for name in settings:
        del os.environ[name]
"""
Points = dict[tuple[str, str, str], float]
"""By name, source and table: the values of gauges."""


class Sent(NamedTuple):
    """What two publishes printed and sent, of Airflows with other settings of metrics."""

    printed: str
    packets: list[str]
    """To StatsD."""
    points: Points
    """To OpenTelemetry."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a home whose source has a published cut, and a newer one that failed its check."""
    place = tmp_path_factory.mktemp("gauges")
    (place / "sources").mkdir()
    text = f"source: erp\nformat: canal_json\nlanding: {place}/landing/*\n"
    (place / "sources" / "erp.yaml").write_text(text, "utf-8")
    own = {
        "TIDEMARK_HOME": str(place / "home"),
        "TIDEMARK_SOURCES": str(place / "sources"),
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[1]"}',
        "PYTHONPATH": os.pathsep.join(filter(None, [str(INCLUDE), os.environ.get("PYTHONPATH", "")])),
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_HOME", own["TIDEMARK_HOME"])
        _write_ledger()
    return {**os.environ, **own}


def _write_ledger() -> None:
    written = Written(Lake.open(), "erp")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    orders = {"events": 9, "applied": 7, "quarantined": 2, "rows_after": 7, "committed_at": hour_ago}
    written.cut(1, {"orders": orders, "items": {"events": 4, "applied": 4, "rows_after": 4}})
    written.cut(2, {"orders": {"events": 3, "applied": 1, "held": 2, "rows_after": 8}}, state="failed")
    written.write()


@pytest.fixture(scope="module")
def sent(environment: dict[str, str]) -> Sent:
    """Publish twice, as a task of an Airflow does: with StatsD, where its client is installed, and with OpenTelemetry.

    Both in one process, which takes some seconds to begin.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener, collecting() as (otel_port, points):
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)  # noqa: FBT003 - the name of the argument is not public
        statsd = {"statsd_on": "True", "statsd_host": "127.0.0.1", "statsd_port": str(listener.getsockname()[1])}
        otel = {"otel_on": "True", "otel_host": "127.0.0.1", "otel_port": str(otel_port)}
        every = [statsd, otel] if find_spec("statsd") else [otel]
        settings = [{f"AIRFLOW__METRICS__{name.upper()}": value for name, value in each.items()} for each in every]
        command = [sys.executable, "-c", TASKS, json.dumps(settings)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        packets = list(iter(lambda: _packet(listener), ""))
    return Sent(done.stdout, packets, points)


def test_statsd_has_a_name_for_each_table(sent: Sent) -> None:
    """A publish that refuses its cut sends where the tables stand, with the table in the name of each gauge."""
    pytest.importorskip("statsd")
    assert sent.printed.count("failed a blocking check") == 2
    gauges = dict(packet.removesuffix("|g").split(":") for packet in sent.packets if "tidemark" in packet)
    lag = float(gauges.pop("airflow.tidemark.lag.erp.orders"))
    assert 3600 <= lag < 7200
    assert gauges == {
        "airflow.tidemark.rows.erp.orders": "8",
        "airflow.tidemark.held.erp.orders": "2",
        "airflow.tidemark.quarantined.erp.orders": "2",
        "airflow.tidemark.rows.erp.items": "4",
        "airflow.tidemark.held.erp.items": "0",
        "airflow.tidemark.quarantined.erp.items": "0",
    }


def _packet(listener: socket.socket) -> str:
    """Return the next packet that has arrived; empty if there is none."""
    try:
        return listener.recv(4096).decode()
    except BlockingIOError:
        return ""


def test_open_telemetry_has_a_tag_for_each_table(sent: Sent) -> None:
    """There, one gauge has a point for each table."""
    assert {key: value for key, value in sent.points.items() if key[0] != "airflow.tidemark.lag"} == {
        ("airflow.tidemark.rows", "erp", "erp.orders"): 8,
        ("airflow.tidemark.held", "erp", "erp.orders"): 2,
        ("airflow.tidemark.quarantined", "erp", "erp.orders"): 2,
        ("airflow.tidemark.rows", "erp", "erp.items"): 4,
        ("airflow.tidemark.held", "erp", "erp.items"): 0,
        ("airflow.tidemark.quarantined", "erp", "erp.items"): 0,
    }
    assert 3600 <= sent.points["airflow.tidemark.lag", "erp", "erp.orders"] < 7200


@contextmanager
def collecting() -> Iterator[tuple[int, Points]]:
    """Yield the port of a collector, and by name, source and table the values of the gauges that it got."""
    points: Points = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportMetricsServiceRequest()
            request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
            for resource in request.resource_metrics:
                for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                    for point in metric.gauge.data_points:
                        tags = {each.key: each.value.string_value for each in point.attributes}
                        if "tidemark" in metric.name:
                            points[metric.name, tags["source"], tags["table"]] = point.as_int or point.as_double
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, points
    server.shutdown()
    server.server_close()
