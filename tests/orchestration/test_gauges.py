"""Where tables stand is sent by Airflow's own metrics, as Airflow is configured: to StatsD, or to OpenTelemetry."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from support.ledgers import Written
from tidemark import INCLUDE
from tidemark.lake.lake import Lake

TASK = """\
from types import SimpleNamespace
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory
from tidemark.orchestration.stage_operator import StageOperator
stats.initialize(factory=get_stats_factory(), export_legacy_names=True)  # as Airflow does before each task
try:
    task = SimpleNamespace(try_number=1, xcom_push=print)
    StageOperator(stage="publish", source="erp").execute({"params": {}, "ti": task})
except AirflowFailException as error:
    print("failed:", error)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home whose source has a published cut, and a newer one that failed its check."""
    (tmp_path / "sources").mkdir()
    text = f"source: erp\nformat: canal_json\nlanding: {tmp_path}/landing/*\n"
    (tmp_path / "sources" / "erp.yaml").write_text(text, "utf-8")
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "sources"))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    written = Written(Lake.open(), "erp")
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    orders = {"events": 9, "applied": 7, "quarantined": 2, "rows_after": 7, "committed_at": hour_ago}
    written.cut(1, {"orders": orders, "items": {"events": 4, "applied": 4, "rows_after": 4}})
    written.cut(2, {"orders": {"events": 3, "applied": 1, "held": 2, "rows_after": 8}}, state="failed")
    written.write()
    return tmp_path


def publish(**metrics: str) -> str:
    """Publish as a task of an Airflow with some settings of metrics; return what it printed."""
    settings = {f"AIRFLOW__METRICS__{name.upper()}": value for name, value in metrics.items()}
    environment = {**os.environ, **settings}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(INCLUDE), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run([sys.executable, "-c", TASK], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_statsd_has_a_name_for_each_table(place: Path) -> None:
    """A publish that refuses its cut sends where the tables stand, with the table in the name of each gauge."""
    pytest.importorskip("statsd")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
        assert "failed a blocking check" in publish(statsd_on="True", statsd_host="127.0.0.1", statsd_port=port)
        listener.setblocking(False)  # noqa: FBT003 - the name of the argument is not public
        packets = list(iter(lambda: _packet(listener), ""))
    gauges = dict(packet.removesuffix("|g").split(":") for packet in packets if "tidemark" in packet)
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


def test_open_telemetry_has_a_tag_for_each_table(place: Path) -> None:
    """There, one gauge has a point for each table."""
    with collecting() as (port, points):
        publish(otel_on="True", otel_host="127.0.0.1", otel_port=str(port))
    assert {key: value for key, value in points.items() if key[0] != "airflow.tidemark.lag"} == {
        ("airflow.tidemark.rows", "erp", "erp.orders"): 8,
        ("airflow.tidemark.held", "erp", "erp.orders"): 2,
        ("airflow.tidemark.quarantined", "erp", "erp.orders"): 2,
        ("airflow.tidemark.rows", "erp", "erp.items"): 4,
        ("airflow.tidemark.held", "erp", "erp.items"): 0,
        ("airflow.tidemark.quarantined", "erp", "erp.items"): 0,
    }
    assert 3600 <= points["airflow.tidemark.lag", "erp", "erp.orders"] < 7200


@contextmanager
def collecting() -> Iterator[tuple[int, dict[tuple[str, str, str], float]]]:
    """Yield the port of a collector, and by name, source and table the values of the gauges that it got."""
    points: dict[tuple[str, str, str], float] = {}

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
