"""What surrounds a running Airflow in tests: people who get notices, and a killer of stages."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import psutil
from airflow.sdk import BaseNotifier

from tidemark.services.airflow import AirflowService
from tidemark.services.processes import wait_until


class Heard(BaseNotifier):
    """A notifier that keeps the texts that it is given."""

    template_fields = ("text",)
    texts: ClassVar[list[str]] = []

    def __init__(self, text: str) -> None:
        super().__init__()
        if not text:
            raise ValueError("no text")
        self.text = text

    def notify(self, context: Any) -> None:
        """Keep the text."""
        assert context
        self.texts.append(self.text)


HANG = 1800
"""Seconds that nothing takes on the slowest machine."""


@contextmanager
def receiving_notices() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield a port on which notices arrive, and the notices so far."""
    notices: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notices.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, notices
    server.shutdown()
    server.server_close()


def connection_for_notices(port: int) -> str:
    """Return the Airflow connection that notices are sent to."""
    return json.dumps({"conn_type": "http", "host": "127.0.0.1", "port": port})


def kill_first(airflow: AirflowService, source: str, stage: str) -> str:
    """Kill the process of a stage as soon as one runs; return its run."""
    found: list[tuple[str, int]] = []

    def running() -> bool:
        where = f"dags/cdc_{source}/dagRuns/~/taskInstances"
        tasks = airflow.api.request("GET", where, params={"state": "running", "limit": 100})["task_instances"]
        found.extend((task["dag_run_id"], task["pid"]) for task in tasks if task["task_id"] == stage and task["pid"])
        return bool(found)

    wait_until(running, servers=[], seconds=HANG, what=f"{stage} of {source} at work", poll=0.05)
    run, pid = found[0]
    for process in (*psutil.Process(pid).children(recursive=True), psutil.Process(pid)):
        process.send_signal(signal.SIGKILL)
    return run


def belonging_to(place: Path) -> list[str]:
    """Return the command lines of the running processes that know of ``place``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            if str(place).encode() in words and int(process.name) != os.getpid():
                found.append((process / "cmdline").read_text("utf-8").replace("\0", " "))
        except OSError:  # it ended meanwhile, or is not ours
            continue
    return found
