"""A real Airflow, started by Tidemark: DAGs, import errors, backfill, both kinds of Spark connection, the end.

One Airflow for all tests. What its stop leaves behind is looked at when the tests are over (the fixture ``airflow``).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import shutil
import threading
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import psutil
import pytest
from pyiceberg.catalog import load_catalog

from support.airflow_world import belonging_to, connection_for_notices, kill_first, receiving_notices
from support.browser import PROGRAM, browser
from support.connect_in_jvm import ConnectInJvm
from support.listening import LOOPBACK_ONLY, addresses
from support.rounds import PROVING, how_many
from tidemark.demo.runner import unpaused
from tidemark.errors import ConfigurationError
from tidemark.services.airflow import AirflowService
from tidemark.services.processes import wait_until
from tidemark.services.spark_connect import SparkConnectServer
from tidemark.spark.session import local_settings
from tidemark.stages import STAGES

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.more]

ROOT = Path(__file__).parents[2]
SOURCE = """\
source: {name}
format: canal_json
landing: {landing}/%Y-%m-%d/*.jsonl
schedule: "@daily"
start_date: 2026-01-01
mask_at: landing
mask_secret: ${{ORDERS_SECRET}}
raw_key: ${{ORDERS_KEYS}}
tables:
  shop.orders:
    mask: {{item: hmac}}
    history: {{track: [item]}}
    checks:
      - {{type: expect_column_values_to_be_between, column: id, min_value: {minimum}}}
"""
DAYS = [datetime(2026, 1, day, tzinfo=UTC) for day in how_many(usually=(1,), proving=(1, 2))]
"""Days of the dumps. ``make test`` has one: a stage of a day takes Airflow some seconds."""
EMPTY = datetime(2026, 1, 5, tzinfo=UTC)
"""An interval without files."""
PATH = "connections/spark_default"
CANARY = "canary-5b1e"
"""Stands for the password of a catalog."""
SECRETS = {"ORDERS_SECRET": "canary-of-masks-0000000", "ORDERS_KEYS": b64encode(b"canary".ljust(32, b"!")).decode()}
"""Airflow connection -> its password: what the masks of each source need. No process has them in its environment."""
SLEEPER = """\
import subprocess
from airflow.sdk import dag, task


@dag
def sleeper():
    @task
    def sleep():
        subprocess.run(["sleep", "600"])

    sleep()


sleeper()
"""

RETRIED_SOON = """
from datetime import timedelta

for dag in [found for name, found in globals().items() if name.startswith("cdc_")]:
    for task in dag.tasks:
        task.retry_delay = timedelta(seconds=1)
"""
"""The end of the file of DAGs: a task that was killed is tried again after a second or two, not after 20 to 40."""


def message(day: datetime, number: int) -> str:
    """Return one inserted row as Canal writes it."""
    at = int(day.timestamp() * 1000) + number
    row = {"id": str(100 * day.day + number), "item": f"item {number}"}
    types = {"id": "bigint", "item": "varchar(20)"}
    head = {"database": "shop", "table": "orders", "type": "INSERT", "isDdl": False, "pkNames": ["id"], "sql": ""}
    codes = {"id": -5, "item": 12}
    return json.dumps(
        head | {"es": at, "ts": at, "id": at, "data": [row], "old": None, "mysqlType": types, "sqlType": codes}
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with dumps of each day and source files: some right, one whose check fails, a wrong one."""
    place = tmp_path_factory.mktemp("place")
    (place / "sources").mkdir()
    for day in DAYS:
        folder = place / "landing" / f"{day:%Y-%m-%d}"
        folder.mkdir(parents=True)
        (folder / "orders.jsonl").write_text("".join(f"{message(day, number)}\n" for number in range(5)), "utf-8")
    for name, minimum in (("erp", 0), ("held", 103), ("sent", 0)):
        text = SOURCE.format(name=name, landing=place / "landing", minimum=minimum)
        (place / "sources" / f"{name}.yaml").write_text(text, "utf-8")
    (place / "sources" / "crm.yaml").write_text("source: crm\nformat: canl_json\nlanding: /landing/*\n", "utf-8")
    shutil.copytree(ROOT / "dags", place / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    with (place / "dags" / "cdc_sources.py").open("a", encoding="utf-8") as dags:
        dags.write(RETRIED_SOON)
    (place / "dags" / "sleeper.py").write_text(SLEEPER, "utf-8")
    (place / "warehouse").mkdir()
    return place


def catalog(place: Path) -> dict[str, str]:
    """Return the settings of the catalog that the stages write to."""
    return {"type": "sql", "uri": f"sqlite:///{place / 'catalog.db'}", "warehouse": (place / "warehouse").as_uri()}


@pytest.fixture(scope="module")
def server(place: Path, request: pytest.FixtureRequest) -> Iterator[SparkConnectServer]:
    """Return a Spark Connect server that starts while Airflow does.

    In ``make test`` it is in the JVM of the tests: ``spark/test_connect_sessions.py`` starts one of its own.
    """
    if PROVING:
        server = SparkConnectServer(folder=place / "spark", settings=local_settings(), driver_memory="2g")
    else:
        server = ConnectInJvm(request.getfixturevalue("spark"), request.getfixturevalue("jvm"))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def notices() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Return a port on which notices arrive, and those that have."""
    with receiving_notices() as received:
        yield received


@pytest.fixture(scope="module")
def airflow(
    place: Path, server: SparkConnectServer, notices: tuple[int, list[dict[str, Any]]]
) -> Iterator[AirflowService]:
    """Return a healthy Airflow whose connection to Spark is defined as a user would, in its database.

    It is stopped while a task is at work: everything that was started ends, the task and the database included.
    """
    environment = {
        "TIDEMARK_SOURCES": str(place / "sources"),
        **{f"PYICEBERG_CATALOG__TIDEMARK__{name.upper()}": value for name, value in catalog(place).items()},
        "PYICEBERG_CATALOG__TIDEMARK__PASSWORD": CANARY,
        "AIRFLOW_CONN_TIDEMARK_ALERTS": connection_for_notices(notices[0]),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",  # no DAG changes
        "TIDEMARK_REPORT": "on",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(place / "lineage"), "append": True}
        ),
    }
    with AirflowService(place, dags=place / "dags", environment=environment, port=None, schedules=False) as service:
        server.wait()
        connect(service, server.connection, "POST", "connections")
        for name, password in SECRETS.items():
            connection = {"connection_id": name, "conn_type": "generic", "password": password}
            service.api.request("POST", "connections", json=connection)
        service.wait_dags(["cdc_erp", "cdc_held", "cdc_sent", "sleeper"])
        yield service
        service.api.request("POST", "dags/sleeper/dagRuns", json={"logical_date": None})
        asleep = lambda: "sleep 600 " in belonging_to(service.folder)  # noqa: E731
        wait_until(asleep, servers=[], seconds=120, what="the start of the task", poll=0.5)
        assert any("postgres" in command for command in belonging_to(service.folder))
    assert belonging_to(service.folder) == []


class Backfilled(NamedTuple):
    """Runs of two sources, by the state that they ended with."""

    erp: dict[str, str]
    held: dict[str, str]
    """None in ``make test``."""
    victim: str
    """The run of ``erp`` whose first compact was killed."""


@pytest.fixture(scope="module")
def backfilled(airflow: AirflowService) -> Backfilled:
    """Backfill a source, in ``make prove`` two side by side, kill the first compact of one, and wait for the end."""
    last = {"erp": DAYS[-1], **({"held": DAYS[0]} if PROVING else {})}
    for name, day in last.items():
        airflow.backfill(f"cdc_{name}", DAYS[0], day)
    victim = kill_first(airflow, "erp", "compact")
    runs = airflow.wait_runs([f"cdc_{name}" for name in last], seconds=900)
    return Backfilled(runs["cdc_erp"], runs.get("cdc_held", {}), victim)


def connect(service: AirflowService, connection: str, method: str = "PATCH", path: str = PATH) -> None:
    """Define the connection to Spark, or define it anew."""
    service.api.request(method, path, json={"connection_id": "spark_default", "port": None, **json.loads(connection)})


def published(place: Path, source: str, name: str = "orders") -> list[tuple[int, str]]:
    """Return the published orders, or their versions: keys and masked items."""
    table = load_catalog("tidemark", **catalog(place)).load_table((source, name))
    rows = table.scan(selected_fields=("id", "item")).to_arrow().to_pylist()
    return sorted((row["id"], row["item"]) for row in rows)


def expected(days: list[datetime]) -> list[tuple[int, str]]:
    """Return the rows of the dumps of these days, as they are published."""
    secret = SECRETS["ORDERS_SECRET"].encode()
    items = [hmac.new(secret, f"item {number}".encode(), hashlib.sha256).hexdigest() for number in range(5)]
    return [(100 * day.day + number, items[number]) for day in days for number in range(5)]


def interval(day: datetime) -> dict[str, str]:
    """Return the trigger form for the interval of a day."""
    return {"start": day.isoformat(), "end": (day + timedelta(days=1)).isoformat()}


@contextlib.contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the command lines of all processes that this one starts meanwhile."""
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    seen.add(" ".join(process.cmdline()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()


def submitted(airflow: AirflowService, run: str) -> set[str]:
    """Return the stages of a run of ``sent`` whose logs show that they were submitted."""
    logs = list((airflow.folder / "logs" / "dag_id=cdc_sent" / f"run_id={run}").glob("task_id=*/*.log"))
    assert {log.parent.name[8:] for log in logs} == set(STAGES)
    return {log.parent.name[8:] for log in logs if "spark-submit --master local[2]" in log.read_text("utf-8")}


def seconds(airflow: AirflowService, dag: str, run: str) -> float:
    """Return how long a run took, as Airflow reports it."""
    dag_run = airflow.api.request("GET", f"dags/{dag}/dagRuns/{run}")
    return (datetime.fromisoformat(dag_run["end_date"]) - datetime.fromisoformat(dag_run["start_date"])).total_seconds()


def _run_without_files(airflow: AirflowService) -> str:
    """Run the stages of an interval without files, and return the run: nothing is submitted."""
    with watched() as seen:
        empty = airflow.api.trigger("cdc_sent", interval(EMPTY))
        airflow.wait_runs(["cdc_sent"], seconds=550)
    assert not [command for command in seen if "/jobs/" in command]
    return empty


def test_wrong_source_is_an_import_error_and_the_right_ones_stay(airflow: AirflowService, place: Path) -> None:
    """A running DAG processor keeps the DAGs of the right sources scheduled and names the wrong one's file and line."""
    wait_until(lambda: bool(airflow.api.import_errors()), servers=[], seconds=60, what="the import error", poll=1)
    ((file, error),) = airflow.api.import_errors().items()
    assert Path(file).name == "cdc_source_errors.py"
    assert f"{place / 'sources' / 'crm.yaml'}:2:9: format: unknown format 'canl_json'" in error
    dag = airflow.api.request("GET", "dags/cdc_erp")
    assert (dag["is_stale"], dag["has_import_errors"]) == (False, False)


def test_backfill_publishes_every_day_over_spark_connect(
    backfilled: Backfilled, airflow: AirflowService, place: Path
) -> None:
    """Each day through five stages: the rows and their versions are published, each task returns its counts."""
    runs = backfilled.erp
    assert list(runs.values()) == ["success"] * len(DAYS)
    assert published(place, "erp") == published(place, "erp", "orders__history") == expected(DAYS)
    first, *others = sorted(runs)
    for each in others:
        attempts = {name: task["try_number"] for name, task in airflow.api.tasks("cdc_erp", each).items()}
        assert attempts == dict.fromkeys(STAGES, 1)
    found = airflow.api.task_states(["cdc_erp", "cdc_sent"])
    assert found["cdc_erp"] == {run: dict.fromkeys(STAGES, "success") for run in runs}
    entry = airflow.api.request("GET", f"dags/cdc_erp/dagRuns/{first}/taskInstances/land/xcomEntries/return_value")
    assert "5" in str(entry["value"])
    _look_at_the_lineage(place)


def _look_at_the_lineage(place: Path) -> None:
    """Each task began and ended, and its last event says what it read and wrote; no event has a value or a secret."""
    events = _lineage(place, "cdc_erp")
    assert {event["eventType"] for event in events} >= {"START", "COMPLETE"}
    started = {event["job"]["name"] for event in events if event["eventType"] == "START"}
    assert started >= {f"cdc_erp.{stage}" for stage in STAGES}
    over = {event["job"]["name"]: event for event in events if event["eventType"] == "COMPLETE"}
    ends = {stage: over[f"cdc_erp.{stage}"] for stage in STAGES}
    assert {Path(each["name"]).name for each in ends["land"]["inputs"]} == {"orders.jsonl"}
    assert ends["normalize"]["inputs"] == ends["land"]["outputs"]
    (orders,) = ends["publish"]["outputs"]
    assert orders["facets"]["symlinks"]["identifiers"][0]["name"] == "erp.orders"
    assert {each["name"] for each in orders["facets"]["schema"]["fields"]} >= {"id", "item"}
    assert orders["outputFacets"]["outputStatistics"]["rowCount"] == len(expected(DAYS))
    (checked,) = ends["check"]["inputs"]
    assertions = checked["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert {each["assertion"] for each in assertions} >= {"expect_column_values_to_be_between", "duplicate keys"}
    assert all(each["success"] for each in assertions)
    text = (place / "lineage").read_text("utf-8")
    assert not [word for word in (CANARY, *SECRETS.values(), "item 1", expected(DAYS)[0][1]) if word in text]


def _lineage(place: Path, dag: str) -> list[dict[str, Any]]:
    """Return the events of the tasks of a DAG, as OpenLineage's provider sent them."""
    events = [json.loads(line) for line in (place / "lineage").read_text("utf-8").splitlines()]
    return [event for event in events if event["job"]["name"].startswith(f"{dag}.")]


def test_killed_stage_is_tried_again_and_its_cut_is_published_once(
    backfilled: Backfilled, airflow: AirflowService, place: Path
) -> None:
    """A stage whose process dies is run again; those who wait for the asset hear of each cut, once."""
    assert backfilled.victim == min(backfilled.erp)
    attempts = {name: task["try_number"] for name, task in airflow.api.tasks("cdc_erp", backfilled.victim).items()}
    assert attempts == dict.fromkeys(STAGES, 1) | {"compact": 2}
    assert published(place, "erp") == expected(DAYS)
    events = airflow.api.request("GET", "assets/events", params={"source_dag_id": "cdc_erp"})["asset_events"]
    assert sorted((event["extra"]["cut"], event["extra"]["rows"]) for event in events) == [
        (number, 5 * number) for number in range(1, len(DAYS) + 1)
    ]
    assert {event["uri"] for event in events} == {"tidemark://erp/orders"}


def test_tables_that_source_files_name_are_known_before_they_are_published(airflow: AirflowService) -> None:
    """Each is an asset that its DAG produces, as Airflow shows it; nothing is announced for it."""
    produced = {
        asset["uri"]: [each["dag_id"] for each in asset["producing_tasks"]]
        for asset in airflow.api.request("GET", "assets")["assets"]
    }
    assert produced["tidemark://sent/orders"] == ["cdc_sent"]
    assert airflow.api.request("GET", "assets/events", params={"source_dag_id": "cdc_held"})["asset_events"] == []


@pytest.mark.prove
def test_failed_check_ends_the_run_and_is_not_tried_again(
    backfilled: Backfilled,
    airflow: AirflowService,
    place: Path,
    notices: tuple[int, list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    """Data that a blocking check holds back is a matter for people: one attempt, a notice, and no publish.

    ``make test`` has the end of the task in ``test_stage_operator.py``, and notices in ``test_dag_integrity.py``.
    The notice has the reason, and the task a button that leads to the page of its source, in Airflow's own frame too.
    """
    runs = backfilled.held
    assert list(runs.values()) == ["failed"]
    tasks = airflow.api.tasks("cdc_held", min(runs))
    assert (tasks["check"]["state"], tasks["check"]["try_number"]) == ("failed", 1)
    assert tasks["publish"]["state"] == "upstream_failed"
    wait_until(lambda: bool(notices[1]), servers=[], seconds=60, what="the notice")
    assert {(notice["event"], notice["dag"], notice["task"]) for notice in notices[1]} == {
        ("failed", "cdc_held", "check")
    }
    assert "held.orders: expect_column_values_to_be_between (id) failed: 3 of 5 unexpected" in notices[1][0]["text"]
    run = f"dags/cdc_held/dagRuns/{min(runs)}/taskInstances/check/links"
    links = airflow.api.request("GET", run)["extra_links"]
    assert links["Quality"] == "/tidemark/quality/site/held/index.html"
    assert airflow.api.get_page(links["Quality"]).status_code == 200
    assert airflow.api.get_page(links["Data Docs"]).status_code == 200
    (check,) = [each for each in _lineage(place, "cdc_held") if each["eventType"] == "FAIL"]
    assertions = check["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    failed = [(each["assertion"], each["column"], each["severity"]) for each in assertions if not each["success"]]
    assert failed == [("expect_column_values_to_be_between", "id", "error")]
    shown = airflow.api.get_page(f"/tidemark/dag/cdc_held/run/{quote(min(runs))}")
    assert (shown.status_code, shown.url.path) == (200, "/tidemark/quality/site/held/cut-1.html")
    if PROGRAM:
        _look_at_the_report(airflow, min(runs), tmp_path / "profile")


def _look_at_the_report(airflow: AirflowService, run: str, profile: Path) -> None:
    """Open the navigation's view of the report in a browser, and follow a link in it; then the tab of a run."""
    with browser(profile) as tab:
        tab.look(width=1280)
        tab.open(f"{airflow.url}/plugin/quality", cookies={"_token": airflow.api.token()})
        shown = "(document.querySelector('iframe')?.contentDocument?.querySelector('h1') ?? {}).textContent"
        heading = lambda: tab.value(shown)  # noqa: E731
        wait_until(lambda: heading() == "Quality of all sources", servers=[], seconds=60, what="the report in Airflow")
        assert "Quality" in tab.value("document.querySelector('nav, aside, body').innerText")
        tab.value("document.querySelector('iframe').contentDocument.querySelector('.todo a').click()")
        wait_until(lambda: heading() == "held", servers=[], seconds=60, what="the page of the source")
        tab.open(f"{airflow.url}/dags/cdc_held/runs/{quote(run)}/plugin/run-quality")
        wait_until(lambda: heading() == "Cut 1 of held", servers=[], seconds=60, what="the page of the run's cut")


def test_the_report_is_for_people_whom_airflow_knows(airflow: AirflowService, place: Path) -> None:
    """An anonymous request gets 401, whatever it asks for; a known user gets the page, and nothing beside the site."""
    page = place / "quality" / "site" / "by_hand" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("<p>a page", encoding="utf-8")
    of_dag = ("dag/cdc_erp", "dag/cdc_erp/run/none")
    for path in ("quality/site/by_hand/index.html", "quality/none", *of_dag, "quality/%2e%2e/catalog.db"):
        assert httpx.get(f"{airflow.url}/tidemark/{path}").status_code == 401
    assert airflow.api.get_page("/tidemark/quality/site/by_hand/index.html").text == "<p>a page"
    for path in ("site/%2e%2e/%2e%2e/catalog.db", "site/..%2f..%2fsources/erp.yaml", "gx/great_expectations.yml"):
        assert airflow.api.get_page(f"/tidemark/quality/{path}").status_code == 404
    plugins = {plugin["name"]: plugin for plugin in airflow.api.request("GET", "plugins")["plugins"]}
    assert [view["destination"] for view in plugins["tidemark"]["external_views"]] == ["nav", "dag", "dag_run"]


def test_secrets_are_in_no_log_and_in_nothing_that_airflow_shows(
    backfilled: Backfilled, airflow: AirflowService, server: SparkConnectServer
) -> None:
    """The catalog's password, and the secrets that Airflow connections hold, stay with the tasks that need them."""
    _assert_no_secret_is_told(airflow, server, "cdc_erp", backfilled.victim)


def _assert_no_secret_is_told(airflow: AirflowService, server: SparkConnectServer, dag: str, run: str) -> None:
    """No log has a secret, nor has what Airflow shows of the tasks of a run."""
    secrets = [CANARY, *SECRETS.values()]
    written = [*(airflow.folder / "logs").rglob("*.log"), *server.folder.glob("*.log")]
    assert written
    assert not [str(log) for log in written for secret in secrets if secret.encode() in log.read_bytes()]
    shown = airflow.api.request("GET", f"dags/{dag}/dagRuns/{quote(run)}/taskInstances")
    assert {len(each["rendered_fields"]) > 0 for each in shown["task_instances"]} == {True}
    assert not [secret for secret in secrets if secret in json.dumps(shown)]


@pytest.mark.prove
def test_connection_alone_decides_that_stages_are_submitted(
    airflow: AirflowService, server: SparkConnectServer, place: Path
) -> None:
    """The same DAG runs by spark-submit once the connection says so, also an interval without files.

    What needs no Spark is not submitted. No secret is in a command line. A stage that is submitted is tried without
    Airflow in ``test_stage_operator.py``.
    """
    connect(airflow, '{"conn_type": "spark", "host": "local[2]"}')
    with watched() as seen:
        full = airflow.api.trigger("cdc_sent", interval(DAYS[0]))
        airflow.wait_runs(["cdc_sent"], seconds=550)
    empty = _run_without_files(airflow)
    runs = airflow.wait_runs(["cdc_sent"], seconds=550)["cdc_sent"]
    connect(airflow, server.connection)
    assert runs == dict.fromkeys([full, empty], "success")
    assert published(place, "sent") == expected(DAYS[:1])
    asset_events = airflow.api.request("GET", "assets/events", params={"source_dag_id": "cdc_sent"})["asset_events"]
    assert [(event["uri"], event["source_run_id"]) for event in asset_events] == [("tidemark://sent/orders", full)]
    assert submitted(airflow, full) == {"compact", "check"}
    assert submitted(airflow, empty) == set()
    assert seconds(airflow, "cdc_sent", empty) < seconds(airflow, "cdc_sent", full)
    assert any("jobs/compact.py" in command for command in seen)
    assert not [command for command in seen for secret in (CANARY, *SECRETS.values()) if secret in command]
    _assert_no_secret_is_told(airflow, server, "cdc_sent", full)


def test_secrets_are_private_and_nothing_listens_beyond_this_machine(
    airflow: AirflowService, server: SparkConnectServer
) -> None:
    """Secret files belong to this user alone; Airflow and Spark listen on the loopback address only.

    The file of Spark's settings is in ``spark/test_connect_sessions.py`` too, which ``make test`` has.
    """
    secret = [*airflow.folder.glob("*.json"), *([server.folder / "spark.conf"] if PROVING else [])]
    assert {file.name for file in secret} == {"passwords.json", "secrets.json", *(["spark.conf"] if PROVING else [])}
    assert {file.stat().st_mode & 0o777 for file in secret} == {0o600}
    for port in (airflow.port, server.port):
        assert addresses(port)
        assert addresses(port) <= LOOPBACK_ONLY


def test_demo_pauses_what_it_unpaused(airflow: AirflowService) -> None:
    """And leaves DAGs alone that ran before it: ``make up`` starts no run that nobody asked for."""
    airflow.api.pause("cdc_erp")
    with unpaused(airflow, ["cdc_erp", "cdc_held"]):
        assert not {"cdc_erp", "cdc_held"} & airflow.api.paused_dag_ids()
    assert {"cdc_erp", "cdc_held"} & airflow.api.paused_dag_ids() == {"cdc_erp"}
    airflow.api.unpause("cdc_erp")


def test_home_holds_one_airflow(airflow: AirflowService, place: Path) -> None:
    """A second service from the same home is refused before it touches anything; the error names what runs."""
    second = AirflowService(place, dags=ROOT / "dags", environment={}, port=None)
    with pytest.raises(ConfigurationError, match=r"processes \d+"):
        second.start()
    assert airflow.api.is_healthy()
