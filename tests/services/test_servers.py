"""Servers of this machine: whose port it is, and what is reported when one ends."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import psutil
import psycopg
import pytest

from tidemark.errors import RetriableLakeError
from tidemark.services import processes
from tidemark.services.airflow import AirflowService
from tidemark.services.airflow_api import _PARTS
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import LOOPBACK, Server, free_port, wait_until

_LISTENS = """
import socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as mine:
    print(mine.getsockname()[1], flush=True)
    time.sleep(60)
"""


class _Healthy(BaseHTTPRequestHandler):
    """Another Airflow, which says that all its parts work."""

    def do_GET(self) -> None:
        """Answer any page."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(msgspec.json.encode({part: {"status": "healthy"} for part in _PARTS}))

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """The port of another Airflow."""
    with HTTPServer(("127.0.0.1", 0), _Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


_JOINS = """
import sys
from pathlib import Path
from tidemark.services.postgres import EmbeddedPostgres
EmbeddedPostgres(Path(sys.argv[1]), "secret").start()
"""


def test_a_database_that_another_process_uses_goes_on(tmp_path: Path) -> None:
    """As the database of `make up` beside `tidemark airflow`; a process that was killed does not keep it."""
    folder = tmp_path / "postgres"
    database = EmbeddedPostgres(folder, "secret")
    database.start()
    subprocess.run([sys.executable, "-c", _JOINS, str(folder)], check=True)
    with psycopg.connect(database.url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    database.stop()
    assert not (folder / "postmaster.pid").exists()
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        pass
    (folder / ".handle_pids.json").write_text(f"[{ended.pid}]", "utf-8")
    database.start()
    assert _at_work(folder)
    database.stop()
    assert not (folder / "postmaster.pid").exists()
    assert not _at_work(folder)


def _at_work(folder: Path) -> list[int]:
    """Return the process ids of PostgreSQL's servers of this folder; the file of the id goes before the process."""
    return [each.pid for each in psutil.process_iter(["cmdline"]) if str(folder) in (each.info["cmdline"] or [])]


def _server(folder: Path, program: str) -> Server:
    return Server("api-server", [sys.executable, "-c", program], environment={}, log=folder / "web.log")


def test_a_port_belongs_to_the_server_that_listens_there(tmp_path: Path, elsewhere: int) -> None:
    """And to no other, whatever answers there."""
    server = _server(tmp_path, _LISTENS)
    try:
        wait_until(lambda: "\n" in server.log.read_text(), servers=[server], seconds=30, what="the server")
        port = int(server.log.read_text())
        assert server.listens(port)
        assert not server.listens(elsewhere)
    finally:
        server.stop()
    assert not server.listens(port)


def test_another_airflow_at_the_port_is_not_taken_for_ones_own(tmp_path: Path, elsewhere: int) -> None:
    """The port was free when it was chosen; the web server, which found it taken, ended."""
    service = AirflowService(tmp_path, dags=tmp_path, environment={}, port=None)
    service.folder.mkdir()
    service.port = elsewhere
    service._servers = [_server(tmp_path, "raise SystemExit('address already in use')")]
    assert service.api.is_healthy()
    with pytest.raises(RetriableLakeError, match=r"(?s)api-server ended with status 1.*address already in use"):
        service.wait_healthy()
    service.stop()


def test_a_free_port_is_none_that_others_are_given_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers take seconds to start. Meanwhile, whoever asks the system for any port must not get theirs."""
    with socket.create_server((LOOPBACK, 0)) as taken:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("utf-8").split()[0])
        assert {free_port() < lowest for _ in range(20)} == {True}
        used = taken.getsockname()[1]
        assert free_port(used) not in {used, 0}
        monkeypatch.setattr(processes, "_PORTS", range(used, used + 1))
        assert free_port() not in {used, 0}
    assert free_port(used) == used


def test_a_server_that_ends_is_told(tmp_path: Path) -> None:
    """`make up` does not go on without one of its parts."""
    service = AirflowService(tmp_path, dags=tmp_path, environment={}, port=None)
    service._servers = [_server(tmp_path, "raise SystemExit('out of memory')")]
    (process,) = service.processes
    wait_until(lambda: not processes.lives(process), servers=[], seconds=30, what="the end of the server")
    with pytest.raises(RetriableLakeError, match=r"(?s)api-server ended with status 1.*out of memory"):
        service.watch()
    service.stop()
