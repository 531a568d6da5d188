"""How a stage reaches Spark, which interval it gets, and what its ends mean to Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)
from airflow.timetables.base import DagRunInfo
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.utils.types import DagRunType
from pendulum import DateTime

from tidemark.errors import ConfigurationError
from tidemark.orchestration import stage_operator
from tidemark.orchestration.dags import build_dag
from tidemark.orchestration.environment import secrets_of
from tidemark.orchestration.intervals import interval_of, with_passed_over
from tidemark.orchestration.stage_operator import StageOperator
from tidemark.orchestration.submitted import failure
from tidemark.sources.files import find_source
from tidemark.stages import STAGES, StageReport

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
JOB = """\
import json, os, sys
from pathlib import Path
import tidemark
record = {"arguments": sys.argv[1:], "canary": os.environ["TIDEMARK_TEST_CANARY"], "path": tidemark.__file__}
command = Path("/proc/self/cmdline").read_bytes() + Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
record["command"] = command.decode().replace(chr(0), " ")
Path(os.environ["TIDEMARK_TEST_TOLD"]).write_text(json.dumps(record))
if problem := os.environ.get("TIDEMARK_TEST_PROBLEM"):
    Path(os.environ["TIDEMARK_PROBLEMS"]).write_text(json.dumps([problem]))
sys.exit(int(os.environ["TIDEMARK_TEST_STATUS"]))
"""


HOLDER = """\
import sys
from tidemark.lake import locks
with locks.hold("erp"):
    print("writes", flush=True)
    sys.stdin.read()
"""


def context(start: Any = None, end: Any = None, *, interval: tuple[Any, Any] = (START, END)) -> Any:
    """Return what is read of Airflow's task context."""
    params = {"start": start, "end": end}
    return {
        "params": params,
        "data_interval_start": interval[0],
        "data_interval_end": interval[1],
        "ti": SimpleNamespace(try_number=1),
    }


def partition(key: str) -> Any:
    """Return the context of a run for a partition."""
    return context() | {"dag_run": SimpleNamespace(partition_key=key, run_type="manual", logical_date=None)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (context(), (START, END)),
        (
            context("2026-03-01", "2026-03-02T00:00:00Z"),
            (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)),
        ),
        (context("2026-03-01T02:00:00+02:00"), (datetime(2026, 3, 1, tzinfo=UTC), None)),
        (context(interval=(None, None)), (None, None)),
        (context(interval=(START, START)), (None, None)),
    ],
    ids=["data interval", "form", "form, one end", "none", "zero width"],
)
def test_interval_is_the_forms_then_the_runs(given: Any, expected: Any) -> None:
    """What a person writes comes before the data interval; a run without width means everything not yet landed."""
    assert interval_of(given) == expected


def test_partition_is_an_interval_of_the_schedule() -> None:
    """The key is the start; the schedule gives the end; without one there is none."""
    day = datetime(2026, 3, 1, tzinfo=UTC)
    assert interval_of(partition("2026-03-01"), "@daily") == (day, datetime(2026, 3, 2, tzinfo=UTC))
    assert interval_of(partition("2026-03-01T06:00Z"), "0 */6 * * *") == (day.replace(hour=6), day.replace(hour=12))
    with pytest.raises(ConfigurationError, match="no end without a schedule"):
        interval_of(partition("2026-03-01"), None)


def scheduled(start: datetime, earlier: list[tuple[str, datetime, datetime]]) -> Any:
    """Return the context of a scheduled run after others, each with its type and its interval, the oldest first."""

    def previous(_state: Any, at: datetime) -> Any:
        before = [run for run in earlier if run[1] < at]
        if not before:
            return None
        kind, begun, ended = max(before, key=lambda run: run[1])
        info = DagRunInfo.interval(DateTime.instance(begun), DateTime.instance(ended))
        name = CronDataIntervalTimetable("@daily", timezone="UTC").generate_run_id(
            run_type=DagRunType(kind), run_after=info.run_after, data_interval=info.data_interval
        )
        return SimpleNamespace(run_id=name, logical_date=begun)

    run = SimpleNamespace(run_type="scheduled", logical_date=start, partition_key=None)
    return context() | {"dag_run": run, "ti": SimpleNamespace(get_previous_ti=previous)}


def test_a_scheduled_run_begins_where_the_previous_one_ended() -> None:
    """Also where the schedule became coarser or finer since, and behind a hundred backfilled days."""
    day = timedelta(days=1)
    friday, sunday, monday = (datetime(2026, 1, number, tzinfo=UTC) for number in (2, 4, 5))
    week = (sunday, sunday + 7 * day)
    daily = [("scheduled", friday - day, friday), ("scheduled", friday, friday + day)]
    assert with_passed_over(scheduled(sunday, daily), week, "@weekly") == (friday + day, week[1])
    assert with_passed_over(scheduled(sunday, daily[:1]), week, "@weekly") == (friday, week[1])
    weekly = [("scheduled", sunday - 7 * day, sunday)]
    assert with_passed_over(scheduled(monday, weekly), (monday, monday + day), "@daily") == (sunday, monday + day)
    backfilled = [("backfill", friday + number * day, friday + (number + 1) * day) for number in range(1, 99)]
    late = friday + 99 * day
    given = scheduled(late, [*daily, *backfilled])
    assert with_passed_over(given, (late, late + day), "@daily") == (friday + day, late + day)


@pytest.mark.parametrize(
    ("start", "end"), [("yesterday", None), ("2026-01-02", "2026-01-02"), ("2026-01-02", "2026-01-01")]
)
def test_impossible_interval_is_refused(start: str, end: str | None) -> None:
    """A text that is no time and an interval without width are mistakes of the form."""
    with pytest.raises(ConfigurationError, match=r"no time|the end must come after the start"):
        interval_of(context(start, end))


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        (None, "AIRFLOW_CONN_SPARK_DEFAULT"),
        ('{"conn_type": "postgres", "host": "x"}', "Allowed: k8s, spark, spark_connect"),
    ],
)
def test_missing_or_foreign_connection_fails_at_once(
    monkeypatch: pytest.MonkeyPatch, connection: str | None, message: str
) -> None:
    """Without a usable connection nothing is submitted (the provider would try YARN) and nothing is tried again."""
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    if connection:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", connection)
    with pytest.raises(AirflowFailException, match=message):
        StageOperator(stage="land", source="erp").execute(context())


def test_a_connection_without_a_password_fails_at_once(erp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that is looked for in a connection must be there; what the environment holds is not looked for."""
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_TEST_CANARY", '{"conn_type": "generic"}')
    with pytest.raises(AirflowFailException, match="'TIDEMARK_TEST_CANARY' has no password"):
        StageOperator(stage="land", source="erp").execute(context())
    monkeypatch.setenv("TIDEMARK_TEST_CANARY", "of the environment")
    assert secrets_of("erp") == {}
    assert StageOperator(stage="land", source="erp").execute(context()) is not None


def test_the_secret_of_erasures_may_be_in_a_connection(erp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No source file names it, and every task needs it once a row was erased; the environment comes first."""
    monkeypatch.setenv("TIDEMARK_TEST_CANARY", "of the environment")
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_ERASE_SECRET", '{"conn_type": "generic", "password": "of a connection"}')
    assert secrets_of("erp") == {"TIDEMARK_ERASE_SECRET": "of a connection"}
    monkeypatch.setenv("TIDEMARK_ERASE_SECRET", "of the environment")
    assert secrets_of("erp") == {}


@pytest.fixture
def erp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Declare a source in a home of its own, and a connection for spark-submit; return its folder of dumps."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "landing").mkdir()
    text = f"source: erp\nformat: canal_json\nlanding: {tmp_path}/landing/*\nschedule: '@daily'\n"
    text += "mask_secret: ${TIDEMARK_TEST_CANARY}\n"
    (tmp_path / "sources" / "erp.yaml").write_text(text, "utf-8")
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEMARK_SOURCES", str(tmp_path / "sources"))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    return tmp_path / "landing"


def test_run_without_files_succeeds_without_spark_and_says_so(
    erp: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No stage of an empty interval submits anything: there is no spark-submit to be found."""
    monkeypatch.setenv("PATH", "/nowhere")
    summaries = {stage: StageOperator(stage=stage, source="erp").execute(context()) for stage in STAGES}
    assert summaries["land"] == {"files": 0, "messages": 0, "refused": 0, "batch": 0}
    assert summaries["publish"] == {"tables": 0, "fresh": 0}
    logged = "".join(capsys.readouterr())  # where to depends on who has set the logging up
    assert "no new files in [2026-01-01 00:00:00+00:00, 2026-01-02 00:00:00+00:00)" in logged


def test_busy_source_frees_the_worker_and_comes_back(erp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer is waited for without a failed attempt."""
    monkeypatch.setattr(stage_operator, "BUSY_PATIENCE", 0.1)
    command = [sys.executable, "-c", HOLDER]
    environment = {**os.environ, "PYTHONPATH": str(stage_operator.INCLUDE)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writes\n"
        with pytest.raises(AirflowRescheduleException):
            StageOperator(stage="land", source="erp").execute(context())
        writer.communicate("over")


def test_approval_only_publishes(erp: Path) -> None:
    """With a cut approved, the stages before publish are skipped: they would build the cut again."""
    given = context()
    given["params"]["approve"] = 7
    for stage in STAGES[:-1]:
        with pytest.raises(AirflowSkipException, match="cut 7"):
            StageOperator(stage=stage, source="erp").execute(given)
    publish = StageOperator(stage="publish", source="erp", options=["approve"])
    assert publish.trigger_rule == "none_failed"
    assert publish._call(given).options == {"approve": 7}


def test_a_dry_run_changes_nothing(erp: Path) -> None:
    """Normalize reports what reprocessing would change; every other stage is skipped, publish with an approval too."""
    given = context()
    given["params"] |= {"dry_run": True, "approve": 7}
    for stage in ("land", "compact", "check", "publish"):
        with pytest.raises(AirflowSkipException, match=r"cut 7|dry run"):
            StageOperator(stage=stage, source="erp", options=["approve"]).execute(given)
    given["params"] |= {"approve": None, "reprocess": True}
    normalize = StageOperator(stage="normalize", source="erp", options=["reprocess", "dry_run"])
    assert normalize.trigger_rule == "none_failed"
    call = normalize._call(given)
    assert call.options == {"reprocess": True, "dry_run": True}
    normalize._prepare(Connection(conn_id="spark_default", conn_type="spark", host="spark://master:7077"), call)
    assert normalize.application_args[-2:] == ["--reprocess", "--dry-run"]
    report = StageReport(stage="difference", source="erp", summary={"added": 1}, details={"erp.orders": {"added": 1}})
    assert normalize._tell(report, call, given) == {"added": 1}


@pytest.mark.parametrize(
    ("conf", "near"),
    [
        ({"reprocess": True, "dry-run": True}, "unknown name 'dry-run' in `conf`. Did you mean 'dry_run'?"),
        ({"aprove": 2}, "Did you mean 'approve'?"),
        ({"start": "2026-01-01", "until": "2026-01-02"}, "Allowed: approve, dry_run, end, reprocess, start"),
    ],
)
def test_a_misspelt_name_of_a_trigger_fails_every_stage(erp: Path, conf: dict[str, Any], near: str) -> None:
    """Airflow takes any name in ``conf``. With one that no task asks for, a run would do what nobody asked for."""
    dag = build_dag(find_source("erp"))
    given = {**context(), "dag_run": SimpleNamespace(conf=conf)}
    given["params"] |= conf
    for stage in STAGES:
        with pytest.raises(AirflowFailException) as raised:
            dag.get_task(stage).execute(given)
        assert near in str(raised.value)


def test_a_dry_run_of_nothing_is_an_error(erp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to report of a run that does not reprocess."""
    monkeypatch.setattr(stage_operator, "_connection", lambda: Connection(conn_id="spark_default", conn_type="spark"))
    given = context()
    given["params"]["dry_run"] = True
    with pytest.raises(AirflowFailException, match="ask for it too"):
        StageOperator(stage="normalize", source="erp", options=["reprocess", "dry_run"]).execute(given)


def test_form_becomes_separate_arguments_of_the_job(erp: Path) -> None:
    """Interval and options are words of their own in the command; those that are not given are not there."""
    connection = Connection(conn_id="spark_default", conn_type="spark", host="spark://master:7077")
    land = StageOperator(stage="land", source="erp")
    land._prepare(connection, land._call(context()))
    assert land.application_args == ["erp", "--start", START.isoformat(), "--end", END.isoformat()]
    again = StageOperator(stage="normalize", source="erp", options=["reprocess"])
    given = context(interval=(None, None))
    again._prepare(connection, again._call(given))
    assert again.application_args == ["erp"]
    given["params"]["reprocess"] = True
    again._prepare(connection, again._call(given))
    assert again.application_args == ["erp", "--reprocess"]
    retry = StageOperator(stage="retry", options=["reason"])
    retry._prepare(connection, retry._call({"params": {"source": "erp", "reason": "x; rm -rf /"}}))
    assert retry.application_args == ["erp", "--reason", "x; rm -rf /"]


def test_package_reaches_executors_on_any_machine(erp: Path, tmp_path: Path) -> None:
    """Beyond this machine the package goes along as one file, from which the workers' code can be imported."""
    connection = Connection(conn_id="spark_default", conn_type="spark", host="spark://master:7077")
    operator = StageOperator(stage="land", source="erp")
    operator._prepare(connection, operator._call(context()))
    script = "from tidemark.normalization import tasks; "
    script += "from tidemark.formats import names; print(tasks.__file__, *names())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(operator.py_files), "PATH": os.environ["PATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"{operator.py_files}/tidemark/normalization/tasks.py ")
    assert "canal_json" in done.stdout


@pytest.mark.parametrize(
    ("status", "problems", "error", "text"),
    [
        (1, ["one", "two"], AirflowFailException, "compact of erp: one; two"),
        (1, [], None, ""),
        (2, [], AirflowFailException, "compact of erp: configuration: a file or a setting must be changed"),
        (3, ["no answer"], AirflowException, "compact of erp: no answer"),
        (3, [], None, ""),
        (None, [], None, ""),
    ],
)
def test_what_the_status_of_a_job_means(
    status: int | None, problems: list[str], error: type[Exception] | None, text: str
) -> None:
    """Held data and configuration end the task, the rest is tried again; what the job says comes first.

    A job that holds data back says why: status 1 alone is one of spark-submit, as for all jobs in a cluster of YARN.
    """
    found = failure("compact of erp", status, problems)
    assert type(found) is (error or type(None))
    assert error is None or str(found).startswith(text)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("status", "error", "problem"),
    [
        (0, None, ""),
        (1, AirflowFailException, "erp.orders: null keys (table) failed: 3; expected 0"),
        pytest.param(2, AirflowFailException, "", marks=pytest.mark.prove),
        pytest.param(3, AirflowException, "the catalog does not answer", marks=pytest.mark.prove),
    ],
)
def test_what_needs_spark_is_submitted_and_its_status_is_understood(
    erp: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    error: type[Exception] | None,
    problem: str,
) -> None:
    """spark-submit runs jobs/<stage>.py: held data and configuration end the task, the rest is tried again.

    What the job says of it is in the error and in the log, at level ERROR. The job finds the library. Secrets reach it
    by the environment, also the one that only an Airflow connection holds: they are in no command line.
    """
    row = {"data": [{"id": "1"}], "mysqlType": {"id": "bigint"}, "sqlType": {"id": -5}, "old": None, "pkNames": ["id"]}
    head = {"database": "shop", "table": "orders", "type": "INSERT", "isDdl": False, "sql": "", "es": 1, "ts": 1}
    (erp / "orders.jsonl").write_text(json.dumps({**head, **row, "id": 1}), "utf-8")
    for stage in STAGES[:2]:
        StageOperator(stage=stage, source="erp").execute(context(interval=(None, None)))
    (tmp_path / "compact.py").write_text(JOB, "utf-8")
    record_file = tmp_path / "told.json"
    monkeypatch.setattr(stage_operator, "JOBS", tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__PASSWORD", "canary-7f3a")
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__URI", f"sqlite:///{tmp_path}/home/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__WAREHOUSE", f"file://{tmp_path}/home/warehouse")
    connection = {"conn_type": "generic", "password": "canary-7f3a"}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_TEST_CANARY", json.dumps(connection))
    monkeypatch.setenv("TIDEMARK_TEST_TOLD", str(record_file))
    monkeypatch.setenv("TIDEMARK_TEST_STATUS", str(status))
    monkeypatch.setenv("TIDEMARK_TEST_PROBLEM", problem)
    operator = StageOperator(stage="compact", source="erp")
    if error:
        with pytest.raises(error) as caught:
            operator.execute(context())
        assert isinstance(caught.value, AirflowFailException) is (error is AirflowFailException)
        text = str(caught.value)
        assert text == f"compact of erp: {problem}" if problem else "configuration: a file or a setting" in text
        # Airflow logs by structlog, to standard output, or where another test had the command line log.
        logged = "".join(capsys.readouterr())
        assert not problem or f"[error    ] {problem}" in logged
    else:
        operator.execute(context())
    heard = json.loads(record_file.read_text("utf-8"))
    assert heard["arguments"] == ["erp"]
    assert heard["canary"] == "canary-7f3a"
    assert "TIDEMARK_TEST_CANARY" not in os.environ
    assert "compact.py" in heard["command"]
    assert "canary" not in heard["command"]
