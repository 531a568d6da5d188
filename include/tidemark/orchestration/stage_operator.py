"""One stage of one source as an Airflow task.

The Airflow connection ``spark_default`` decides how a stage reaches Spark, and nothing else has to change. The types
``spark``, ``yarn`` and ``k8s`` submit ``jobs/<stage>.py`` to a master. The type ``spark_connect`` runs the stage in the
task's own process, with a warm Spark Connect server. If the submitted driver would run on this machine, the task first
tries the stage itself: a stage that needs no Spark (nothing new, little to read, publish) so never starts one. Tasks
may be killed and tried again at any point: stages are idempotent, and a lock gives a source one writer.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, Connection, Context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from tidemark import INCLUDE
from tidemark.errors import ConfigurationError, ContractError, SourceBusyError, SparkNeededError
from tidemark.orchestration.assets import alias_of, announce, unannounced
from tidemark.orchestration.environment import secrets_of, variables
from tidemark.orchestration.gauges import sent_after
from tidemark.orchestration.intervals import Interval, interval_of, with_passed_over
from tidemark.orchestration.lineage import TellsLineage
from tidemark.orchestration.links import CUT, DataDocsLink, QualityLink
from tidemark.orchestration.submitted import failure, place_for_problems, problems_at, remove_place
from tidemark.orchestration.trigger_conf import refuse_unknown
from tidemark.sources.files import find_source
from tidemark.spark.connect_sessions import EARLIER_SESSIONS_VARIABLE, ids_of
from tidemark.stages import PROBLEMS_VARIABLE, STAGES

if TYPE_CHECKING:
    from tidemark.stages import StageReport


_again: Any = AirflowRescheduleException  # Any: Airflow does not type it

CONNECTION = "spark_default"

JOBS = INCLUDE.parent / "jobs"

BUSY_PATIENCE, BUSY_PAUSE = 5.0, timedelta(seconds=15)
"""Seconds that a task waits for another writer of its source, and the pause until it tries again. During the pause
another task can use its worker slot."""

_BY_INTERVAL = frozenset({"land", "normalize"})
"""Stages that use the interval of a run. The others take whatever is new."""

_REHEARSES = "normalize"
"""The stage that reprocesses. In a dry run it reports which rows would differ."""

_JUDGING = frozenset({"check", "publish", "quality"})
"""Stages whose tasks have buttons that lead to the report and to the Data Docs."""

_SUBMITTED = frozenset({"spark", "yarn", "k8s"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """The arguments of the stage, for one attempt of the task."""

    source: str
    interval: Interval
    options: Mapping[str, Any]


class StageOperator(TellsLineage, SparkSubmitOperator):
    """One stage over the interval of the run, for the given source, or else for the source that the form names.

    ``options`` are the fields of the trigger form that the stage takes as keyword arguments.
    """

    ui_color = "#c7e3ea"

    def __init__(
        self,
        *,
        stage: str,
        source: str | None = None,
        options: Sequence[str] = (),
        **kwargs: Any,  # noqa: ANN401 - Airflow's own arguments
    ) -> None:
        """Name the task after its stage."""
        kwargs.setdefault("task_id", stage)
        if stage == STAGES[-1]:
            kwargs.setdefault("outlets", [alias_of(source)])
        if stage in {_REHEARSES, STAGES[-1]}:
            kwargs.setdefault("trigger_rule", "none_failed")  # a dry run or an approval skips the stages before
        super().__init__(conn_id=CONNECTION, name=f"{source or 'tidemark'}-{stage}", max_active_tis_per_dag=1, **kwargs)
        self.stage = stage
        self.source = source
        if stage in _JUDGING:
            self.operator_extra_links = (QualityLink(), DataDocsLink())
        self.options = tuple(options)
        self._problems: Path | None = None

    def execute(self, context: Context) -> dict[str, int | str] | None:  # type: ignore[override]
        """Run the stage as the connection says, and return its summary for XCom; None after a submitted job."""
        refuse_unknown(self, context)
        self._skip_unless_meant(context)
        declared = list(self.outlets)
        self.outlets = unannounced(declared)
        source = self.source or context["params"].get("source")
        with variables(secrets_of(source)), sent_after(self.stage, source):
            try:
                connection = _connection()
                call = self._call(context)
                report = self._run_here(connection, call)
                if report is None:
                    self._prepare(connection, call)
            except SourceBusyError as error:
                self.log.info("%s", error)
                raise _again(datetime.now(UTC) + BUSY_PAUSE) from error
            except (ConfigurationError, ContractError) as error:
                raise AirflowFailException(f"{type(error).__name__}: {error}") from error
            if report is None:
                self._submit(call, context)
                return None
            summary = self._tell(report, call, context)
            if self.stage == STAGES[-1]:
                self.outlets = announce(report, declared, context)
            return summary

    def on_kill(self) -> None:
        """Stop the submitted job. A stage in this process ends with the process."""
        if self._hook is not None:
            super().on_kill()

    def _skip_unless_meant(self, context: Context) -> None:
        """Skip the task if the trigger form asks for other stages or another source.

        Raises:
            AirflowSkipException: it does; with the reason.
        """
        params = context["params"]
        if self.stage in STAGES[:-1] and params.get("approve") is not None:
            raise AirflowSkipException(f"cut {params['approve']} is approved as it stands: it is only published")
        if self.stage in STAGES and self.stage != _REHEARSES and params.get("dry_run"):
            raise AirflowSkipException(f"a dry run changes nothing: the log of {_REHEARSES} shows what would differ")
        named = params.get("source")
        if self.source is not None and named is not None and named != self.source:
            raise AirflowSkipException(f"only {named} was asked for")

    def _call(self, context: Context) -> _Call:
        params = context["params"]
        source = self.source or params.get("source")
        if not source:
            raise ConfigurationError("no source is named: fill in `source` of the trigger form")
        given = {name: params.get(name) for name in self.options}
        options = {name: value for name, value in given.items() if value is not None and value is not False}
        interval: Interval = (None, None)
        if self.stage in _BY_INTERVAL:
            found = find_source(source)
            interval = interval_of(context, found.schedule, found.zone)
            interval = with_passed_over(context, interval, found.schedule, found.zone)
        return _Call(source=source, interval=interval, options=options)

    def _run_here(self, connection: Connection, call: _Call) -> StageReport | None:
        """Run the stage in this process and return its report; None if it must be submitted instead."""
        if connection.conn_type == SparkConnectHook.conn_type:
            # A source has one session on the server, so that its Python workers and its catalog stay warm from task to
            # task. The server closes a session for good when it was idle for an hour. So a session is used for half an
            # hour at most.
            session, *earlier = ids_of(call.source, time.time())
            url = f"{SparkConnectHook(CONNECTION).get_connection_url()};session_id={session}"
            with variables({"SPARK_REMOTE": url, EARLIER_SESSIONS_VARIABLE: ",".join(earlier)}):
                return self._run(call)
        if connection.extra_dejson.get("deploy-mode") == "cluster":
            return None  # this machine may not even reach the lake
        from tidemark.spark.session import without_spark  # noqa: PLC0415 - a DAG is parsed without Spark

        try:
            with without_spark():
                return self._run(call)
        except SparkNeededError as error:
            self.log.info("%s of %s goes to Spark: %s", self.stage, call.source, error)
            return None

    def _run(self, call: _Call) -> StageReport:
        from tidemark.pipeline import run_task  # noqa: PLC0415 - a DAG is parsed without Spark

        for library in ("great_expectations", "pyspark", "pyiceberg", "py4j"):
            logging.getLogger(library).setLevel(logging.WARNING)  # else hundreds of lines hide the stage's own
        source = find_source(call.source)
        return run_task(self.stage, source, *call.interval, patience=BUSY_PATIENCE, **call.options)

    def _tell(self, report: StageReport, call: _Call, context: Context) -> dict[str, int | str]:
        """Log the report, leave the number of the cut for the run's view of it, and return the summary.

        Raises:
            AirflowFailException: the stage has problems and must fail for them.
        """
        from tidemark.pipeline import HOLDING  # noqa: PLC0415 - a DAG is parsed without Spark

        self.log.info("%s of %s: %s", self.stage, call.source, report.summary)
        if self.stage == STAGES[0] and report.summary.get("files") == 0:
            start, end = call.interval
            self.log.info("no new files in [%s, %s): the other stages have nothing of it to do", start, end)
        if "cut" in report.summary:
            context["ti"].xcom_push(CUT, {"source": call.source, "cut": report.summary["cut"]})
        if report.stage != self.stage:  # a dry run
            for table, counts in report.details.items():
                self.log.info("%s would differ: %s", table, counts)
        for remark in report.remarks:
            self.log.warning("%s", remark)
        for problem in report.problems:
            self.log.error("%s", problem)
        if report.has_problems and self.stage in HOLDING:
            raise AirflowFailException(f"{self.stage} of {call.source}: {'; '.join(report.problems)}")
        return dict(report.summary)

    def _prepare(self, connection: Connection, call: _Call) -> None:
        """Set the arguments of the job that ``_submit`` submits."""
        from tidemark.jars import jar_paths  # noqa: PLC0415 - a DAG is parsed without Spark
        from tidemark.spark.archive import archive  # noqa: PLC0415
        from tidemark.spark.java import require_java  # noqa: PLC0415
        from tidemark.spark.session import local_settings  # noqa: PLC0415

        self.application = str(JOBS / f"{self.stage}.py")
        self.application_args = [call.source]
        for option, bound in zip(("--start", "--end"), call.interval, strict=True):
            self.application_args += [option, bound.isoformat()] if bound else []
        for name, value in call.options.items():
            option = "--" + name.replace("_", "-")
            self.application_args += [option] if value is True else [option, str(value)]
        if connection.extra_dejson.get("deploy-mode") != "cluster":
            require_java()  # spark-submit would end with status 1 for it, and the task be tried again
            path = [str(INCLUDE), *filter(None, [os.environ.get("PYTHONPATH")])]
            self._problems = place_for_problems()
            self.env_vars = {"PYTHONPATH": os.pathsep.join(path), PROBLEMS_VARIABLE: str(self._problems)}
        if re.fullmatch(r"local(\[.*\])?", str(connection.host)):
            self.conf = dict(local_settings())
            self.env_vars = {**(self.env_vars or {}), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        else:
            self.jars = ",".join(jar_paths())
            self.py_files = str(archive())  # executors on other machines need the package

    def _submit(self, call: _Call, context: Context) -> None:
        """Submit the job; where it fails, say what it left to say, in the log and in the error."""
        try:
            super().execute(context)
        except AirflowException as error:
            failed = self._failure(call)
            raise failed or error from None
        finally:
            remove_place(self._problems)

    def _failure(self, call: _Call) -> AirflowException | None:
        problems = problems_at(self._problems)
        for problem in problems:
            self.log.error("%s", problem)
        process = getattr(self._hook, "_submit_sp", None)
        return failure(f"{self.stage} of {call.source}", process and process.returncode, problems)


def _connection() -> Connection:
    """Return the Airflow connection to Spark.

    Raises:
        ConfigurationError: it is not defined, or has a type that stages cannot use.
    """
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
