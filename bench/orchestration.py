"""Measures runs under a real Airflow: seconds of orchestration beside seconds of work, of small and of empty intervals.

    .venv/bin/python bench/orchestration.py                       # against a warm Spark Connect server
    .venv/bin/python bench/orchestration.py --spark 'local[*]'    # spark-submit

One source, one table, a day an interval, one run at a time. A run is as long as Airflow says, from its start to its
end; its work is the sum of its tasks' durations. See ``results.md`` for figures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemark.services.airflow import AirflowService
from tidemark.services.spark_connect import SparkConnectServer
from tidemark.spark.session import local_settings
from tidemark.stages import STAGES

ROOT = Path(__file__).parents[1]
SOURCE = """\
source: bench
format: canal_json
landing: {landing}/%Y-%m-%d/*.jsonl
schedule: "@daily"
start_date: 2026-01-01
tables:
  shop.orders:
    checks:
      - {{type: expect_column_values_to_be_between, column: id, min_value: 0}}
"""
DAG = "cdc_bench"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 1000


def main() -> int:
    """Run both kinds of intervals and print what they took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--spark", default="connect", metavar="connect|MASTER", help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=4, help="of each kind; default %(default)s")
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="tidemark-bench-"))
    os.environ["TIDEMARK_HOME"] = str(home)
    try:
        (home / "sources").mkdir()
        (home / "sources" / "bench.yaml").write_text(SOURCE.format(landing=home / "landing"), "utf-8")
        for number in range(arguments.runs + 1):
            _write(home / "landing", number)
        with _spark(home, arguments.spark) as connection, _airflow(home, connection) as airflow:
            airflow.wait_dags([DAG])
            for kind, first, count in (
                ("warming up", 0, 1),
                ("small", 1, arguments.runs),
                ("empty", arguments.runs + 1, arguments.runs),
            ):
                print(_measure(airflow, kind, FIRST + timedelta(days=first), count), flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0


def _write(landing: Path, number: int) -> None:
    day = FIRST + timedelta(days=number)
    at = int(day.timestamp() * 1000)
    head = {"database": "shop", "table": "orders", "type": "INSERT", "isDdl": False, "pkNames": ["id"], "sql": ""}
    types = {"mysqlType": {"id": "bigint", "item": "varchar(20)"}, "sqlType": {"id": -5, "item": 12}}
    # Half of the rows have keys of the day before, so that there is something to merge.
    rows = [{"id": str(number * ROWS // 2 + row), "item": f"item {number}"} for row in range(ROWS)]
    folder = landing / f"{day:%Y-%m-%d}"
    folder.mkdir(parents=True)
    message = {**head, **types, "es": at, "ts": at, "id": number, "data": rows, "old": None}
    (folder / "orders.jsonl").write_text(f"{json.dumps(message)}\n", "utf-8")


@contextmanager
def _spark(home: Path, where: str) -> Iterator[str]:
    if where != "connect":
        yield json.dumps({"conn_type": "spark", "host": where})
        return
    with SparkConnectServer(folder=home / "spark", settings=local_settings(), driver_memory="2g") as server:
        yield server.connection


def _airflow(home: Path, connection: str) -> AirflowService:
    environment = {"TIDEMARK_SOURCES": str(home / "sources"), "AIRFLOW_CONN_SPARK_DEFAULT": connection}
    return AirflowService(home, dags=ROOT / "dags", environment=environment, port=None, schedules=False)


def _measure(airflow: AirflowService, kind: str, first: datetime, count: int) -> str:
    before = set(airflow.api.runs([DAG])[DAG])
    airflow.backfill(DAG, first, first + timedelta(days=count - 1))
    states = airflow.wait_runs([DAG])[DAG]
    all_runs = airflow.api.request("GET", f"dags/{DAG}/dagRuns", params={"limit": 1000})["dag_runs"]
    runs = [run for run in all_runs if run["dag_run_id"] not in before]
    if len(runs) != count or {states[run["dag_run_id"]] for run in runs} != {"success"}:
        sys.exit(f"{kind}: {states}")
    tasks = [airflow.api.tasks(DAG, run["dag_run_id"]) for run in runs]
    spans = [_seconds(run["start_date"], run["end_date"]) for run in runs]
    work = [sum(task["duration"] or 0 for task in of_run.values()) for of_run in tasks]
    stages = ", ".join(f"{name} {_median([of_run[name]['duration'] or 0 for of_run in tasks])}" for name in STAGES)
    return f"{kind}: {count} runs of {_median(spans)} s (longest {max(spans):.1f}), {_median(work)} in tasks: {stages}"


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f}"


if __name__ == "__main__":
    sys.exit(main())
