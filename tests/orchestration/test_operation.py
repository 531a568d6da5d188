"""A working day of Airflow: schedules, backfills, maintenance at once; a killed task, a held run, assets, notices."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from support.airflow_world import HANG, connection_for_notices, kill_first, receiving_notices
from tidemark.lake.lake import Lake
from tidemark.services.airflow import AirflowService
from tidemark.services.processes import wait_until
from tidemark.services.spark_connect import SparkConnectServer
from tidemark.spark.session import local_settings

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.prove, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
SOURCES = ("op_a", "op_b", "op_c")
SOURCE = """\
source: {name}
format: canal_json
landing: {landing}/{name}/%Y-%m-%dT%H-%M/*.jsonl
schedule: "*/2 * * * *"
start_date: 2026-01-01
tables:
  shop.orders:
    checks:
      - {{type: expect_column_values_to_be_between, column: id, min_value: {minimum}}}
"""
DOWNSTREAM = """\
import json, time
from datetime import timedelta
from pathlib import Path
from airflow.sdk import DAG, Asset, get_current_context, task
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from tidemark.orchestration import alerts

with DAG("downstream", schedule=[Asset("tidemark://op_a/orders")]):
    @task
    def hear():
        events = get_current_context()["triggering_asset_events"][Asset("tidemark://op_a/orders")]
        with Path(__file__).parents[1].joinpath("heard").open("a") as heard:
            heard.writelines(json.dumps(event.extra) + "\\n" for event in events)
    hear()

late = DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(seconds=2), SyncCallback(alerts.run_late))
with DAG("slow", schedule=None, deadline=late):
    @task
    def sleep():
        time.sleep(8)
    sleep()
"""
STEP = timedelta(minutes=2)
"""Of the schedule: two cores take about a minute for a run of each source."""
PAST = [datetime(2026, 1, 1, tzinfo=UTC) + number * STEP for number in range(10)]
BAD = PAST[-1]
"""Holds a row that the check of op_c refuses."""
OVER = frozenset({"success", "failed"})
MAINTENANCE = "lake_maintenance"


def write(landing: Path, source: str, start: datetime, *, bad: bool = False) -> None:
    """Write the dump of one interval: a row of its own, and the row that every interval changes."""
    at = int(start.timestamp() * 1000)
    rows = [{"id": str(at // 60_000), "item": f"{start:%FT%R}"}, {"id": "1", "item": f"{start:%FT%R}"}]
    rows += [{"id": "-1", "item": "bad"}] if bad else []
    head = {"database": "shop", "table": "orders", "type": "INSERT", "isDdl": False, "pkNames": ["id"], "sql": ""}
    types = {"mysqlType": {"id": "bigint", "item": "varchar(20)"}, "sqlType": {"id": -5, "item": 12}}
    message = {**head, **types, "es": at, "ts": at, "id": at, "data": rows, "old": None}
    folder = landing / source / f"{start:%Y-%m-%dT%H-%M}"
    folder.mkdir(parents=True)
    (folder / "orders.jsonl").write_text(json.dumps(message) + "\n", "utf-8")


def model(starts: list[datetime], *, bad: bool = False) -> dict[int, str]:
    """Return the rows that the dumps of these intervals end with."""
    rows = {int(start.timestamp()) // 60: f"{start:%FT%R}" for start in starts}
    return {**rows, 1: f"{max(starts):%FT%R}"} | ({-1: "bad"} if bad else {})


def published(source: str) -> dict[int, str]:
    """Return the published orders."""
    table = Lake.open().find((source, "orders"))
    rows = table.scan(selected_fields=("id", "item")).to_arrow().to_pylist() if table else []
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["item"] for row in rows}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a home with ten past intervals of three sources, their DAGs, and DAGs that follow them."""
    place = tmp_path_factory.mktemp("operation")
    (place / "sources").mkdir()
    shutil.copytree(ROOT / "dags", place / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "dags" / "downstream.py").write_text(DOWNSTREAM, "utf-8")
    for name in SOURCES:
        text = SOURCE.format(name=name, landing=place / "landing", minimum=0 if name == "op_c" else -9)
        (place / "sources" / f"{name}.yaml").write_text(text, "utf-8")
        for start in PAST:
            write(place / "landing", name, start, bad=name == "op_c" and start == BAD)
    before = os.environ.get("TIDEMARK_HOME")
    os.environ["TIDEMARK_HOME"] = str(place)
    yield place
    os.environ["TIDEMARK_HOME"] = str(before)


@pytest.fixture(scope="module")
def notices() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Return a port on which notices arrive, and those that have."""
    with receiving_notices() as received:
        yield received


@pytest.fixture(scope="module")
def airflow(place: Path, notices: tuple[int, list[Any]]) -> Iterator[AirflowService]:
    """Return a healthy Airflow with schedules on."""
    server = SparkConnectServer(folder=place / "spark", settings=local_settings(), driver_memory="2g")
    environment = {
        "TIDEMARK_SOURCES": str(place / "sources"),
        "AIRFLOW_CONN_SPARK_DEFAULT": server.connection,
        "AIRFLOW_CONN_TIDEMARK_ALERTS": connection_for_notices(notices[0]),
    }
    server.start()
    try:
        with AirflowService(place, dags=place / "dags", environment=environment, port=None) as service:
            server.wait()
            service.wait_dags(["downstream", "slow"])
            yield service
    finally:
        server.stop()


def runs(airflow: AirflowService, source: str) -> list[dict[str, Any]]:
    """Return the runs of a source as the API returns them."""
    return list(airflow.api.request("GET", f"dags/cdc_{source}/dagRuns", params={"limit": 1000})["dag_runs"])


def is_backfilling(airflow: AirflowService) -> bool:
    """Whether a backfill of a source has runs that are not over."""
    backfills = [run for source in SOURCES for run in runs(airflow, source) if run["run_type"] == "backfill"]
    return not {run["state"] for run in backfills} <= OVER


def test_a_working_day(airflow: AirflowService, place: Path, notices: tuple[int, list[dict[str, Any]]]) -> None:
    """Three schedules, ten intervals backfilled over each, a killed task, maintenance, a held run: nothing is lost."""
    now = datetime.fromtimestamp(time.time() // STEP.total_seconds() * STEP.total_seconds(), UTC)
    live = [now + number * STEP for number in range(-1, 20)]
    for source in SOURCES:
        for start in live:
            write(place / "landing", source, start)
    airflow.wait_dags([MAINTENANCE])
    airflow.wait_runs([MAINTENANCE], seconds=HANG)  # of the night before, over nothing
    airflow.wait_dags([f"cdc_{source}" for source in SOURCES])
    for source in SOURCES:
        airflow.api.backfill(f"cdc_{source}", PAST[0], PAST[-1], backwards=source == "op_b")
    airflow.api.request("POST", "dags/slow/dagRuns", json={"logical_date": None})
    killed = kill_first(airflow, "op_a", "compact")
    maintain_meanwhile(airflow)

    def done() -> bool:
        scheduled = [run for source in SOURCES for run in runs(airflow, source) if run["run_type"] == "scheduled"]
        over = Counter(run["dag_id"] for run in scheduled if run["state"] in OVER)
        return min(over[f"cdc_{source}"] for source in SOURCES) >= 2 and not is_backfilling(airflow)

    wait_until(done, servers=[], seconds=HANG, what="the backfills and two scheduled runs of each", poll=1)
    for source in SOURCES:
        airflow.api.request("PATCH", f"dags/cdc_{source}", json={"is_paused": True})
    release(airflow, place)

    tries = airflow.api.tasks("cdc_op_a", killed)["compact"]["try_number"]
    assert tries == 2
    for source in SOURCES:
        source_runs = runs(airflow, source)
        assert {run["state"] for run in source_runs} == {"success"}, source
        scheduled = sorted(run["data_interval_end"] for run in source_runs if run["run_type"] == "scheduled")
        last = datetime.fromisoformat(scheduled[-1])
        first = min(run["data_interval_start"] for run in source_runs if run["run_type"] == "scheduled")
        landed = [*PAST, *(start for start in live if datetime.fromisoformat(first) <= start < last)]
        assert published(source) == model(landed, bad=source == "op_c"), source
    events = [json.loads(line) for line in (place / "heard").read_text("utf-8").splitlines()]
    cuts = [event["cut"] for event in events]
    assert sorted(set(cuts)) == sorted(cuts)
    assert max(event["rows"] for event in events) == len(published("op_a"))
    noticed = {(notice["event"], notice["dag"]) for notice in notices[1]}
    assert {("failed", "cdc_op_c"), ("late", "slow")} <= noticed
    assert {dag for event, dag in noticed if event == "failed"} == {"cdc_op_c"}
    assert replaced()
    report(airflow)


def maintain_meanwhile(airflow: AirflowService) -> None:
    """Maintain all sources while the backfills run: each in its turn, at the first attempt."""

    def crowded() -> bool:
        """Eight files in a table are worth a rewrite."""
        runs_by_dag = airflow.api.runs(f"cdc_{source}" for source in SOURCES)
        return any(list(runs.values()).count("success") >= 8 for runs in runs_by_dag.values())

    wait_until(crowded, servers=[], seconds=HANG, what="eight runs of a source", poll=1)
    assert is_backfilling(airflow)
    give_up = time.monotonic() + HANG
    while not replaced():  # while a cut of a source is under way, its published tables are left alone
        assert time.monotonic() < give_up
        run = airflow.api.request("POST", f"dags/{MAINTENANCE}/dagRuns", json={"logical_date": None})["dag_run_id"]
        assert airflow.wait_runs([MAINTENANCE], seconds=HANG)[MAINTENANCE][run] == "success"
        tasks = airflow.api.tasks(MAINTENANCE, run)
        done = {name: (task["state"], task["try_number"]) for name, task in tasks.items()}
        assert done == dict.fromkeys(SOURCES, ("success", 1))


def replaced() -> set[str]:
    """Return the namespaces whose tables maintenance has moved; by no such snapshot did a row change."""
    lake, found = Lake.open(), set()
    for (namespace,) in lake.catalog.list_namespaces():
        for name in lake.catalog.list_tables(namespace):
            table = lake.catalog.load_table(name)
            for snapshot in table.snapshots():
                if snapshot.summary and snapshot.summary.operation is Operation.REPLACE:
                    found.add(namespace)
                    assert rows(table, snapshot.snapshot_id) == rows(table, snapshot.parent_snapshot_id), name
    return found


def rows(table: Table, snapshot: int | None) -> list[str]:
    """Return the rows of a snapshot, in an order of their own."""
    return sorted(map(repr, table.scan(snapshot_id=snapshot).to_arrow().to_pylist()))


def release(airflow: AirflowService, place: Path) -> None:
    """Let op_c pass its check, and have its failed runs run again from where they failed."""
    text = SOURCE.format(name="op_c", landing=place / "landing", minimum=-9)
    (place / "sources" / "op_c.yaml").write_text(text, "utf-8")
    assert failed(airflow)
    assert -1 not in published("op_c")
    for source in SOURCES:
        airflow.api.unpause(f"cdc_{source}")
    for _ in range(2):  # a run that was at its check just then may have failed by what the file said before
        for run in failed(airflow):
            again = {"dry_run": False, "dag_run_id": run, "only_failed": True}
            airflow.api.request("POST", "dags/cdc_op_c/clearTaskInstances", json=again)
        airflow.wait_runs([f"cdc_{source}" for source in SOURCES], seconds=HANG)
    for source in SOURCES:
        airflow.api.request("PATCH", f"dags/cdc_{source}", json={"is_paused": True})
    airflow.wait_runs([f"cdc_{source}" for source in SOURCES] + ["downstream"], seconds=HANG)


def failed(airflow: AirflowService) -> list[str]:
    """Return the failed runs of op_c."""
    return [run["dag_run_id"] for run in runs(airflow, "op_c") if run["state"] == "failed"]


def report(airflow: AirflowService) -> None:
    """Print seconds of orchestration beside seconds of work, for bench/results.md."""
    for source in SOURCES:
        work = span = 0.0
        dag_runs = [run for run in runs(airflow, source) if run["run_type"] == "backfill"]
        for run in dag_runs:
            tasks = airflow.api.tasks(f"cdc_{source}", run["dag_run_id"]).values()
            work += sum(task["duration"] or 0 for task in tasks)
            span += (
                datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])
            ).total_seconds()
        print(  # noqa: T201
            f"{source}: {len(dag_runs)} runs, {span / len(dag_runs):.1f} s each, {work / len(dag_runs):.1f} s in tasks"
        )
