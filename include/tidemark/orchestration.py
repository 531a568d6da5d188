"""A source becomes an Airflow DAG; the only module that imports Airflow.

The Airflow connection ``spark_default`` decides how a stage reaches Spark, and nothing else has to change:
``spark`` submits ``jobs/<stage>.py`` to a master, ``spark_connect`` runs the stage in the task's own process against
a warm Spark Connect server. Tasks may be killed and tried again at any point: the stages are idempotent.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, BaseHook, Connection, Context, CronDataIntervalTimetable, Param, chain
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from tidemark.errors import ConfigurationError, ContractError
from tidemark.sources import Source, find_source
from tidemark.stages import STAGES

CONNECTION = "spark_default"

INCLUDE = Path(__file__).parents[1]
JOBS = INCLUDE.parent / "jobs"

_SUBMITTED = frozenset({"spark", "yarn", "k8s"})
_NO_RETRY: Mapping[int, str] = {
    1: "data held back: nothing of it is published. See the log above and `tidemark status`",
    2: "configuration: a file or a setting must be changed. See the log above",
}
"""Exit statuses of a job that trying again does not change."""

Interval = tuple[datetime | None, datetime | None]
"""``[start, end)`` in UTC; both None: everything that has not been landed yet."""


def build_dag(source: Source) -> DAG:
    """Build the DAG of a source: its five stages in a row, once for each data interval."""
    moment = Param(None, type=["null", "string"], format="date-time")
    with DAG(
        dag_id=source.dag_id,
        description=f"{source.format} dumps of {source.source} into checked Iceberg tables",
        # A bare cron text would give intervals of zero width (Airflow 3, create_cron_data_intervals).
        schedule=CronDataIntervalTimetable(source.schedule, timezone="UTC") if source.schedule else None,
        start_date=source.start_date,
        catchup=False,
        max_active_runs=1,
        default_args={
            "owner": "tidemark",
            "retries": 3,
            "retry_delay": timedelta(seconds=20),
            "retry_exponential_backoff": 2.0,
            "max_retry_delay": timedelta(minutes=10),
        },
        params={"start": moment, "end": moment},
        tags={"tidemark", source.format},
        doc_md=_describe(source),
    ) as dag:
        chain(*(StageOperator(stage=stage, source=source.source) for stage in STAGES))
    return dag


def _describe(source: Source) -> str:
    tables = "".join(
        f"| `{name}` | {', '.join(table.key or ()) or 'as the messages name it'} | {table.deletes} "
        f"| {'yes' if table.history else 'no'} | {len(table.checks)} |\n"
        for name, table in source.tables.items()
    )
    head = "| table | key | deletes | history | checks |\n| --- | --- | --- | --- | --- |\n"
    return (
        f"**{source.source}**: `{source.format}` dumps from `{source.landing}` into `{source.target}`.\n\n"
        f"{head + tables if tables else 'Tables are discovered, with the key that messages name.'}\n\n"
        "Triggered by hand, `start` and `end` (UTC) replace the data interval of the run.\n"
    )


def interval_of(context: Context) -> Interval:
    """Return the interval of a run: what the trigger form says, else the data interval.

    Raises:
        ConfigurationError: a time that is none, or an end that does not come after the start.
    """
    params = context["params"]
    start, end = _moment(params.get("start")), _moment(params.get("end"))
    if start is None and end is None:
        start, end = _moment(context.get("data_interval_start")), _moment(context.get("data_interval_end"))
        if start == end:  # triggered by hand and without a schedule
            return None, None
    if start and end and start >= end:
        raise ConfigurationError(f"interval [{start}, {end}) is empty: the end must come after the start")
    return start, end


def _moment(given: str | datetime | None) -> datetime | None:
    if not given:
        return None
    try:
        moment = datetime.fromisoformat(str(given))
    except ValueError:
        raise ConfigurationError(f"'{given}' is no time: write 2026-01-31T06:00:00Z") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


class StageOperator(SparkSubmitOperator):
    """One stage of one source over the interval of the run."""

    ui_color = "#c7e3ea"

    def __init__(self, *, stage: str, source: str, **kwargs: Any) -> None:  # noqa: ANN401 - Airflow's own arguments
        """Name the task after its stage."""
        kwargs.setdefault("task_id", stage)
        # The same stage of two runs (schedule and backfill) would write the same tables.
        super().__init__(conn_id=CONNECTION, name=f"{source}-{stage}", max_active_tis_per_dag=1, **kwargs)
        self.stage = stage
        self.source = source

    def execute(self, context: Context) -> dict[str, int | str] | None:  # type: ignore[override]
        """Run the stage the way the connection says; the summary of the stage goes to XCom."""
        try:
            connection = _connection()
            interval = interval_of(context)
            if connection.conn_type == SparkConnectHook.conn_type:
                return self._run_here(interval)
            self._prepare(connection, interval)
        except (ConfigurationError, ContractError) as error:
            raise AirflowFailException(f"{type(error).__name__}: {error}") from error
        self._submit(context)
        return None

    def on_kill(self) -> None:
        """Stop the submitted job; a stage in this process ends with it."""
        if self._hook is not None:
            super().on_kill()

    def _run_here(self, interval: Interval) -> dict[str, int | str]:
        from tidemark.pipeline import HOLDING, run_stage  # noqa: PLC0415 - a DAG is parsed without Spark

        for library in ("great_expectations", "pyspark", "pyiceberg", "py4j"):
            logging.getLogger(library).setLevel(logging.WARNING)  # else hundreds of lines hide the stage's own
        # One session a source on the server: its Python workers and its catalog stay warm from task to task.
        session = uuid5(NAMESPACE_URL, f"tidemark:{self.source}")
        url = f"{SparkConnectHook(CONNECTION).get_connection_url()};session_id={session}"
        with _environment("SPARK_REMOTE", url):
            report = run_stage(self.stage, find_source(self.source), *interval)
        self.log.info("%s of %s: %s", self.stage, self.source, report.summary)
        for problem in report.problems:
            self.log.error("%s", problem)
        if report.problems and self.stage in HOLDING:
            raise AirflowFailException(f"{self.stage} of {self.source}: {'; '.join(report.problems)}")
        return dict(report.summary)

    def _prepare(self, connection: Connection, interval: Interval) -> None:
        from tidemark.jars import jar_paths  # noqa: PLC0415 - likewise
        from tidemark.session import LOCAL_SETTINGS  # noqa: PLC0415

        self.application = str(JOBS / f"{self.stage}.py")
        self.application_args = [self.source]
        for option, moment in zip(("--start", "--end"), interval, strict=True):
            self.application_args += [option, moment.isoformat()] if moment else []
        self.jars = ",".join(jar_paths())
        self.conf = {"spark.executorEnv.PYTHONPATH": str(INCLUDE)}
        if connection.extra_dejson.get("deploy-mode") != "cluster":
            path = [str(INCLUDE), *filter(None, [os.environ.get("PYTHONPATH")])]
            self.env_vars = {"PYTHONPATH": os.pathsep.join(path)}
        if str(connection.host).startswith("local"):
            self.conf |= {**LOCAL_SETTINGS, "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1))}
            self.env_vars = {**(self.env_vars or {}), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    def _submit(self, context: Context) -> None:
        try:
            super().execute(context)
        except AirflowException as error:
            process = getattr(self._hook, "_submit_sp", None)
            reason = _NO_RETRY.get(process.returncode) if process else None
            if reason:
                raise AirflowFailException(f"{self.stage} of {self.source}: {reason}") from error
            raise


def _connection() -> Connection:
    try:
        connection = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException:
        raise ConfigurationError(
            f"Airflow connection '{CONNECTION}' is not defined. Define it in the UI or by the environment: "
            f"""AIRFLOW_CONN_{CONNECTION.upper()}='{{"conn_type": "spark", "host": "local[*]"}}' """
            """(or "spark_connect" with the host and port of a Spark Connect server)"""
        ) from None
    if connection.conn_type not in {*_SUBMITTED, SparkConnectHook.conn_type}:
        allowed = ", ".join(sorted(_SUBMITTED | {SparkConnectHook.conn_type}))
        raise ConfigurationError(
            f"Airflow connection '{CONNECTION}' has type '{connection.conn_type}'. Allowed: {allowed}"
        )
    return connection


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
