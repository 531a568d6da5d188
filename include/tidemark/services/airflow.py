"""A real Airflow on this machine, from Python packages alone, for ``make up``, ``make demo`` and the tests.

PostgreSQL comes from a package too, because an SQLite database is locked during Airflow's backfills. Everything listens
on the loopback address or on a socket. In production, a usual Airflow takes this one's place, and only ``dags/``,
``jobs/`` and ``include/`` come from Tidemark.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import IO, Never, Self

import psutil
import structlog

from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.services.airflow_api import AirflowApi
from tidemark.services.airflow_settings import (
    COMPONENTS,
    DEFAULT_PORT,
    MAIN,
    PROGRAMS,
    TRIGGERER,
    USER,
    environment_of,
    made_secrets,
)
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import LOOPBACK, Server, free_port, wait_until

log = structlog.get_logger(__name__)

_START_SECONDS = 180.0

_WEB = "api-server"

_NOTED_SECONDS = 180.0
"""Longest wait for Airflow to note that a backfill is over. It does so every 30 s, and takes no other backfill of the
DAG until then."""

_FINISHED = frozenset({"success", "failed"})

RunStates = Mapping[str, Mapping[str, str]]
"""DAG -> run -> state, as Airflow names it."""

_PARALLELISM = 6
"""Tasks that may run at the same time. They wait for Spark, for the catalog and for Airflow, so fewer would leave cores
without work."""


class AirflowService:
    """Database, scheduler, DAG processor and API server of one folder; a context manager that starts and stops them.

    ``home`` is Tidemark's home. Airflow's files are in ``<home>/airflow``, and its logs in ``<home>/airflow/logs``.
    ``environment`` is added to the environment of the tasks (the Spark connection, the folder of the sources).
    """

    def __init__(
        self,
        home: Path,
        *,
        dags: Path,
        environment: Mapping[str, str],
        port: int | None = DEFAULT_PORT,
        schedules: bool = True,
        triggerer: bool = False,
    ) -> None:
        """Start nothing yet.

        If ``port`` is in use, another one is taken; None means any port. Without ``schedules``, only backfills and
        triggered runs happen.
        """
        self.home = home.resolve()
        self.folder = self.home / "airflow"
        self.port = free_port(port)
        self._dags = dags.resolve()
        self._components = {**COMPONENTS, **(TRIGGERER if triggerer else {})}
        self._extra = {
            "AIRFLOW__CORE__PARALLELISM": str(_PARALLELISM),
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": str(schedules),
            **environment,
        }
        self._environment: dict[str, str] = {}
        self._servers: list[Server] = []
        self._postgres: EmbeddedPostgres | None = None
        self._lock: IO[str] | None = None
        self._api: AirflowApi | None = None
        self._shown: dict[tuple[str, str], str] = {}
        """DAG and run -> the state of it that was logged last."""

    @property
    def api(self) -> AirflowApi:
        """The REST API, used as the user ``admin``."""
        if self._api is None:
            self._api = AirflowApi(self.url, user=USER, password=self.password)
        return self._api

    @property
    def url(self) -> str:
        """Address of the web UI and the REST API."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def password(self) -> str:
        """Password of the user ``admin``, made once for this folder."""
        return made_secrets(self.folder)["admin"]

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait_healthy()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return; ``wait_healthy`` waits until it works.

        Raises:
            ConfigurationError: Airflow runs already from this folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = self._take_lock()
        began = time.monotonic()
        self._postgres = EmbeddedPostgres(self.folder / "postgres", made_secrets(self.folder)["postgres"])
        self._postgres.start()
        self._environment = {
            **environment_of(self.home, dags=self._dags, database=self._postgres.url, url=self.url),
            "AIRFLOW__API__PORT": str(self.port),
            **self._extra,
        }
        self._migrate()
        log.info("airflow_database_ready", seconds=round(time.monotonic() - began, 1))
        for name, arguments in self._components.items():
            self._servers.append(self._start(name, arguments, self._lock))
        self._lock.writelines(f"{server.pid}\n" for server in self._servers)
        self._lock.flush()

    def _start(self, name: str, arguments: Sequence[str], lock: IO[str]) -> Server:
        port = ("--port", str(self.port)) if name == _WEB else ()
        command = [sys.executable, "-c", PROGRAMS.get(name, MAIN), *arguments, *port]
        file = self.folder / "logs" / f"{name}.log"
        return Server(name, command, environment=self._environment, log=file, files=[lock.fileno()])

    @property
    def processes(self) -> list[psutil.Process]:
        """Airflow's servers, without PostgreSQL's processes."""
        return [psutil.Process(server.pid) for server in self._servers]

    def wait_healthy(self) -> None:
        """Wait until database, scheduler and DAG processor report that they work, at the web server of this service.

        The port may have been taken by another program since it was chosen, another Airflow even.

        Raises:
            RetriableLakeError: one of them ended or does not report in time; with the end of its log.
        """
        began = time.monotonic()
        (web,) = (server for server in self._servers if server.name == _WEB)
        wait_until(
            lambda: web.listens(self.port) and self.api.is_healthy(),
            servers=self._servers,
            seconds=_START_SECONDS,
            what="Airflow's start",
            poll=0.5,
        )
        log.info("airflow_ready", url=self.url, user=USER, seconds=round(time.monotonic() - began, 1))

    def watch(self) -> Never:
        """Wait until one of the servers ends.

        Raises:
            RetriableLakeError: one of them has ended; with the end of its log.
        """
        while True:
            for server in self._servers:
                server.check()
            time.sleep(5)

    def stop(self) -> None:
        """Stop what was started, in reverse order, and nothing else."""
        if self._api:
            self._api.close()
            self._api = None
        while self._servers:
            self._servers.pop().stop()
        if self._postgres:
            self._postgres.stop()
            self._postgres = None
        if self._lock:
            self._lock.close()
            self._lock = None

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Airflow's own command line for this service; return its output as text, and its exit status."""
        command = [sys.executable, "-m", "airflow", *arguments]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)  # noqa: S603

    def wait_dags(self, dag_ids: Iterable[str], *, seconds: float = 60.0) -> set[str]:
        """Wait until the DAG processor has read these DAGs, then let them run; return those that were paused.

        Raises:
            RetriableLakeError: a DAG is missing after this time; with Airflow's import errors.
        """
        wanted = set(dag_ids)
        try:
            read = "reading the DAGs"
            wait_until(lambda: wanted <= self.api.dag_ids(), servers=self._servers, seconds=seconds, what=read, poll=1)
        except RetriableLakeError as error:
            missing = ", ".join(sorted(wanted - self.api.dag_ids()))
            problems = self.api.import_errors().values()
            raise RetriableLakeError("\n".join([f"no such DAG: {missing}", *problems])) from error
        paused = wanted & self.api.paused_dag_ids()
        for dag_id in sorted(wanted):
            self.api.unpause(dag_id)
        return paused

    def backfill(self, dag_id: str, start: datetime, end: datetime, *, again: bool = False) -> int:
        """Request a run of every interval from ``start`` to ``end``, as ``AirflowApi.backfill``; return its id.

        Raises:
            RetriableLakeError: another backfill of the DAG does not end in time.
        """
        what, seconds = f"the backfill of {dag_id} before this one", _NOTED_SECONDS
        wait_until(
            lambda: not self.api.is_backfilling(dag_id), servers=self._servers, seconds=seconds, what=what, poll=1
        )
        return self.api.backfill(dag_id, start, end, again=again)

    def wait_runs(
        self, dag_ids: Iterable[str], *, seconds: float = 1800.0, watch: Callable[[RunStates], bool] = lambda _: False
    ) -> dict[str, dict[str, str]]:
        """Wait until every run of these DAGs is over, and log each change; return DAG -> run -> state.

        ``watch`` is called about every second with the states, and returns whether it requested more runs.

        Raises:
            RetriableLakeError: the time is over, or a component of Airflow ended.
        """
        shown, wanted = self._shown, sorted(set(dag_ids))

        def over() -> bool:
            by_dag = self.api.runs(wanted)
            states = {(dag_id, run): state for dag_id, runs in by_dag.items() for run, state in runs.items()}
            for (dag_id, run), state in sorted(states.items() - shown.items()):
                if state != "queued":
                    log.info("airflow_run", dag=dag_id, run=run, state=state)
            shown.update(states)
            return not watch(by_dag) and bool(states) and set(states.values()) <= _FINISHED

        wait_until(over, servers=self._servers, seconds=seconds, what=f"the runs of {', '.join(wanted)}", poll=1)
        return {dag_id: {run: state for (dag, run), state in shown.items() if dag == dag_id} for dag_id in wanted}

    def _take_lock(self) -> IO[str]:
        """Return the locked lock file of the folder.

        The servers inherit it. So if this process is killed, the folder stays locked until the last server has ended.

        Raises:
            ConfigurationError: Airflow runs already from this folder.
        """
        lock = (self.folder / "lock").open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            pids = " ".join(lock.read().split())
            lock.close()
            raise ConfigurationError(
                f"Airflow runs already from {self.folder}: stop it first (processes {pids})"
            ) from None
        lock.truncate(0)
        return lock

    def _migrate(self) -> None:
        """Migrate the database to the schema of this version of Airflow, unless a file says that it has it."""
        version = metadata.version("apache-airflow-core")
        mark = self.folder / "postgres" / "airflow-version"
        if mark.exists() and mark.read_text(encoding="utf-8") == version:
            return
        done = self.cli("db", "migrate")
        if done.returncode:
            raise RetriableLakeError(f"airflow db migrate failed:\n{done.stdout}{done.stderr}")
        mark.write_text(version, encoding="utf-8")
