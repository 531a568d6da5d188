"""A real Airflow on this machine, from Python packages alone: for ``make up``, ``make demo`` and the tests.

PostgreSQL comes from a package too, because Airflow's backfills lock an SQLite database out. Everything listens on the
loopback address or on a socket; secrets are made once and kept in a file that only this user can read. In production
Airflow is what it always is, and only ``dags/``, ``jobs/`` and ``include/`` are Tidemark's.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import psutil
import structlog

from tidemark import INCLUDE
from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.services.airflow_api import AirflowApi
from tidemark.services.airflow_settings import (
    COMPONENTS,
    DEFAULT_PORT,
    MAIN,
    SECRETS,
    SETTINGS,
    USER,
    WARM,
    write_private,
)
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import LOOPBACK, Server, end_groups, free_port, wait_until

log = structlog.get_logger(__name__)

_START_SECONDS = 180.0

_NOTED_SECONDS = 180.0
"""Airflow notes every 30 s which backfills are over, and takes no other one of the DAG until then."""

_FINISHED = frozenset({"success", "failed"})


class AirflowService:
    """Database, scheduler, DAG processor and API server of one folder; a context manager that starts and stops them.

    ``home`` is Tidemark's home: Airflow lives in ``<home>/airflow``, its logs in ``<home>/airflow/logs``.
    ``environment`` is added to what the tasks see (the Spark connection, the folder of the sources).
    """

    def __init__(
        self,
        home: Path,
        *,
        dags: Path,
        environment: Mapping[str, str],
        port: int | None = DEFAULT_PORT,
        parallelism: int = 4,
        schedules: bool = True,
    ) -> None:
        """Nothing is started yet.

        ``port`` is a wish (another is taken when it is in use), None means any. Without ``schedules`` nothing runs but
        what is asked for: backfills and triggers.
        """
        self.home = home.resolve()
        self.folder = self.home / "airflow"
        self.port = free_port(port)
        self._dags = dags.resolve()
        self._extra = {
            "AIRFLOW__CORE__PARALLELISM": str(parallelism),
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": str(schedules),
            **environment,
        }
        self._environment: dict[str, str] = {}
        self._servers: list[Server] = []
        self._postgres: EmbeddedPostgres | None = None
        self._lock: IO[str] | None = None
        self._api: AirflowApi | None = None
        self._shown: dict[tuple[str, str], str] = {}
        """States of runs that were logged, by DAG and run."""

    @property
    def api(self) -> AirflowApi:
        """The REST API, as the user ``admin``."""
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
        return self._secrets()["admin"]

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
        """Start everything and return; ``wait_healthy`` waits for it.

        Raises:
            ConfigurationError: it runs already from this folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = self._take_lock()
        began = time.monotonic()
        self._postgres = EmbeddedPostgres(self.folder / "postgres", self._secrets()["postgres"])
        self._postgres.start()
        self._environment = self._build_environment(self._postgres.url)
        self._migrate()
        log.info("airflow_database_ready", seconds=round(time.monotonic() - began, 1))
        for name, arguments in COMPONENTS.items():
            self._servers.append(self._start(name, arguments, self._lock))
        self._lock.writelines(f"{server.pid}\n" for server in self._servers)
        self._lock.flush()

    def _start(self, name: str, arguments: Sequence[str], lock: IO[str]) -> Server:
        port = ("--port", str(self.port)) if name == "api-server" else ()
        program = WARM if name == "scheduler" else MAIN
        command = [sys.executable, "-c", program, *arguments, *port]
        file = self.folder / "logs" / f"{name}.log"
        return Server(name, command, environment=self._environment, log=file, files=[lock.fileno()])

    @property
    def processes(self) -> list[psutil.Process]:
        """The servers, PostgreSQL's own aside."""
        return [psutil.Process(server.pid) for server in self._servers]

    def wait_healthy(self) -> None:
        """Wait until database, scheduler and DAG processor report in.

        Raises:
            RetriableLakeError: one of them ended or stays silent; with the end of its log.
        """
        began = time.monotonic()
        wait_until(self.api.is_healthy, servers=self._servers, seconds=_START_SECONDS, what="Airflow's start")
        log.info("airflow_ready", url=self.url, user=USER, seconds=round(time.monotonic() - began, 1))

    def stop(self) -> None:
        """Stop what was started, in reverse; nothing else is touched."""
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
        """Run Airflow's own command line against this service; output as text, no error on a status."""
        command = [sys.executable, "-m", "airflow", *arguments]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)  # noqa: S603

    def wait_dags(self, dag_ids: Iterable[str], *, seconds: float = 60.0) -> None:
        """Wait until the DAG processor has read these DAGs, and let them run.

        Raises:
            RetriableLakeError: one is missing; with Airflow's import errors.
        """
        wanted = set(dag_ids)
        try:
            read = "reading the DAGs"
            wait_until(lambda: wanted <= self.api.dag_ids(), servers=self._servers, seconds=seconds, what=read, poll=1)
        except RetriableLakeError as error:
            missing = ", ".join(sorted(wanted - self.api.dag_ids()))
            problems = self.api.import_errors().values()
            raise RetriableLakeError("\n".join([f"no such DAG: {missing}", *problems])) from error
        for dag_id in sorted(wanted):
            self.api.unpause(dag_id)

    def backfill(self, dag_id: str, start: datetime, end: datetime, *, again: bool = False) -> int:
        """Ask for a run of every interval from ``start`` to ``end``; see ``AirflowApi.backfill``.

        Raises:
            RetriableLakeError: another backfill of the DAG goes on.
        """
        what, seconds = f"the backfill of {dag_id} before this one", _NOTED_SECONDS
        wait_until(
            lambda: not self.api.is_backfilling(dag_id), servers=self._servers, seconds=seconds, what=what, poll=1
        )
        return self.api.backfill(dag_id, start, end, again=again)

    def wait_runs(self, dag_ids: Iterable[str], *, seconds: float = 1800.0) -> dict[str, dict[str, str]]:
        """Wait until every run of these DAGs is over, logging each change; return DAG -> run -> state.

        Raises:
            RetriableLakeError: the time is over, or a component of Airflow ended.
        """
        shown, wanted = self._shown, sorted(set(dag_ids))

        def over() -> bool:
            told = self.api.runs(wanted)
            states = {(dag_id, run): state for dag_id, runs in told.items() for run, state in runs.items()}
            for (dag_id, run), state in sorted(states.items() - shown.items()):
                if state != "queued":
                    log.info("airflow_run", dag=dag_id, run=run, state=state)
            shown.update(states)
            return bool(states) and set(states.values()) <= _FINISHED

        wait_until(over, servers=self._servers, seconds=seconds, what=f"the runs of {', '.join(wanted)}", poll=1)
        return {dag_id: {run: state for (dag, run), state in shown.items() if dag == dag_id} for dag_id in wanted}

    def _take_lock(self) -> IO[str]:
        """Hold the folder until this process and every server have ended, should this one be killed before them."""
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
        """Bring the database to the schema of this Airflow, unless it is known to have it."""
        version = metadata.version("apache-airflow-core")
        mark = self.folder / "postgres" / "airflow-version"
        if mark.exists() and mark.read_text(encoding="utf-8") == version:
            return
        done = self.cli("db", "migrate")
        if done.returncode:
            raise RetriableLakeError(f"airflow db migrate failed:\n{done.stdout}{done.stderr}")
        mark.write_text(version, encoding="utf-8")

    def _secrets(self) -> dict[str, str]:
        file = self.folder / "secrets.json"
        if not file.exists():
            made = {name: secrets.token_urlsafe(size) for name, size in SECRETS.items()}
            made["fernet"] = urlsafe_b64encode(secrets.token_bytes(32)).decode()
            write_private(file, made)
        return dict(json.loads(file.read_text(encoding="utf-8")))

    def _build_environment(self, database: str) -> dict[str, str]:
        known = self._secrets()
        passwords = self.folder / "passwords.json"
        write_private(passwords, {USER: known["admin"]})
        path = [str(INCLUDE), *filter(None, [os.environ.get("PYTHONPATH")])]
        scripts = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        return {
            **os.environ,
            **SETTINGS,
            "AIRFLOW_HOME": str(self.folder),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self._dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__FERNET_KEY": known["fernet"],
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__SECRET_KEY": known["session"],
            "AIRFLOW__API_AUTH__JWT_SECRET": known["jwt"],
            "AIRFLOW__API_AUTH__JWT_ISSUER": "tidemark",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.folder / "logs"),
            "TIDEMARK_HOME": str(self.home),
            "PATH": os.pathsep.join(scripts),
            "PYTHONPATH": os.pathsep.join(path),
            **self._extra,
        }


def stop_left_behind(home: Path, servers: Sequence[psutil.Process]) -> None:
    """Stop servers whose ``AirflowService`` was killed, all that they started, and their PostgreSQL."""
    end_groups(servers)
    folder = home / "airflow"
    if (folder / "postgres" / "postmaster.pid").exists():
        known = json.loads((folder / "secrets.json").read_text(encoding="utf-8"))
        database = EmbeddedPostgres(folder / "postgres", known["postgres"])
        database.start()  # joins the one that runs
        database.stop()
