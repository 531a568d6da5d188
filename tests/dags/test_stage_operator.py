"""How a stage reaches Spark, which interval it is told, and what its ends mean to Airflow."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidemark import stage_operator
from tidemark.errors import ConfigurationError
from tidemark.intervals import interval_of
from tidemark.stage_operator import StageOperator

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
JOB = """\
import json, os, sys
from pathlib import Path
import tidemark
told = {"arguments": sys.argv[1:], "canary": os.environ["TIDEMARK_TEST_CANARY"], "path": tidemark.__file__}
command = Path("/proc/self/cmdline").read_bytes() + Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
told["command"] = command.decode().replace(chr(0), " ")
Path(os.environ["TIDEMARK_TEST_TOLD"]).write_text(json.dumps(told))
sys.exit(int(os.environ["TIDEMARK_TEST_STATUS"]))
"""


def context(start: Any = None, end: Any = None, *, interval: tuple[Any, Any] = (START, END)) -> Any:
    """Return what is read of Airflow's task context."""
    params = {"start": start, "end": end}
    return {"params": params, "data_interval_start": interval[0], "data_interval_end": interval[1]}


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


@pytest.mark.parametrize(
    ("start", "end"), [("yesterday", None), ("2026-01-02", "2026-01-02"), ("2026-01-02", "2026-01-01")]
)
def test_impossible_interval_is_refused(start: str, end: str | None) -> None:
    """A text that is no time and an interval without width are mistakes of the form."""
    with pytest.raises(ConfigurationError):
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


@pytest.mark.spark
@pytest.mark.parametrize(
    ("status", "error"), [(0, None), (1, AirflowFailException), (2, AirflowFailException), (3, AirflowException)]
)
def test_submitted_job_is_told_its_interval_and_its_status_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception] | None
) -> None:
    """spark-submit runs jobs/<stage>.py: held data and configuration end the task, the rest is tried again.

    The job finds the library, and secrets stay in the environment: they are in no command line.
    """
    (tmp_path / "compact.py").write_text(JOB, "utf-8")
    told = tmp_path / "told.json"
    monkeypatch.setattr(stage_operator, "JOBS", tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__PASSWORD", "canary-7f3a")
    monkeypatch.setenv("TIDEMARK_TEST_CANARY", "canary-7f3a")
    monkeypatch.setenv("TIDEMARK_TEST_TOLD", str(told))
    monkeypatch.setenv("TIDEMARK_TEST_STATUS", str(status))
    operator = StageOperator(stage="compact", source="erp")
    if error:
        with pytest.raises(error) as caught:
            operator.execute(context())
        assert isinstance(caught.value, AirflowFailException) is (error is AirflowFailException)
    else:
        operator.execute(context())
    heard = json.loads(told.read_text("utf-8"))
    assert heard["arguments"] == ["erp", "--start", "2026-01-01T00:00:00+00:00", "--end", "2026-01-02T00:00:00+00:00"]
    assert heard["canary"] == "canary-7f3a"
    assert "compact.py" in heard["command"]
    assert "canary" not in heard["command"]
