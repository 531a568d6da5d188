"""``make up``: Airflow with its UI for the sources of this environment, on the loopback address; ``make down`` ends it.

With the bundled sources and without ``TIDEMARK_LANDING``, the demo dumps of the sources are written first, so that a
backfill from 2026-01-01 to 2026-01-04 finds its files.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from tidemark.cli.airflow_command import DAGS, demo_landing, environment_of_tasks, require_checkout
from tidemark.cli.logs import configure_logging
from tidemark.cli.progress import under_way
from tidemark.demo import runner
from tidemark.demo.render import SOURCES, deliver_late
from tidemark.errors import TidemarkError
from tidemark.lake.catalog import home
from tidemark.services.airflow import AirflowService
from tidemark.services.airflow_settings import USER, known_secrets
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import end_groups, lives, wait_until
from tidemark.sources.files import BUNDLED, default_folder, load_sources

_STOP_SECONDS = 90.0


def main() -> None:
    """Start Airflow, print its address, and wait. The first ``make up`` of a folder prints the password too."""
    configure_logging()
    require_checkout()
    with under_way("writing the dumps of the bundled sources"):
        _lay_out()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    service = AirflowService(home(), dags=DAGS, environment=environment_of_tasks(), triggerer=True)
    with ExitStack() as started:
        with under_way("starting Airflow's database, scheduler, DAG processor, triggerer and web server"):
            airflow = started.enter_context(service)
        started.enter_context(_recorded(airflow))
        sys.stdout.write(_greeting(airflow.url, airflow.password, airflow.folder))
        sys.stdout.flush()
        airflow.watch()


def _greeting(url: str, password: str, folder: Path) -> str:
    """Return where Airflow is and how to sign in. The password is shown once, also where the demo made it."""
    marker = folder / "password-told"
    shown = f"in {folder / 'passwords.json'}" if marker.exists() else password
    marker.touch()
    return f"Airflow is at {url}\n  user      {USER}\n  password  {shown}\nCtrl-C or `make down` stops it.\n"


def down() -> None:
    """Stop what ``make up`` started from this ``TIDEMARK_HOME``, and nothing else.

    Raises:
        RetriableLakeError: ``make up`` does not end in time.
    """
    configure_logging()
    record = _record()
    if not record.exists():
        sys.stdout.write(f"Nothing to stop: `make up` does not run from {home()}.\n")
        return
    started = json.loads(record.read_text(encoding="utf-8"))
    pid, created = started["pid"], started["created"]
    server = _process(pid, created)
    if server is not None:
        server.terminate()
        what = f"the end of `make up` (process {server.pid})"
        wait_until(lambda: _process(pid, created) is None, servers=[], seconds=_STOP_SECONDS, what=what)
    else:  # `make up` was killed, and its servers may still run
        left = [process for pid, created in started["servers"] if (process := _process(pid, created))]
        _stop_left_behind(home(), left)
    record.unlink(missing_ok=True)
    sys.stdout.write("Airflow is stopped.\n")


def _stop_left_behind(home: Path, servers: Sequence[psutil.Process]) -> None:
    """Stop servers whose ``AirflowService`` was killed, the processes that they started, and their PostgreSQL."""
    end_groups(servers)
    folder = home / "airflow"
    if (folder / "postgres" / "postmaster.pid").exists():
        database = EmbeddedPostgres(folder / "postgres", known_secrets(folder)["postgres"])
        database.start()  # joins the server that runs
        database.stop()


def _record() -> Path:
    return home() / "airflow" / "up.json"


@contextmanager
def _recorded(airflow: AirflowService) -> Iterator[None]:
    """Keep a record of the running processes in a file for ``make down``.

    A process is recorded with the time when it began, because the system uses process ids again.
    """
    servers = [[server.pid, server.create_time()] for server in airflow.processes]
    created = psutil.Process().create_time()
    running = {"pid": os.getpid(), "created": created, "servers": servers, "url": airflow.url}
    _record().write_text(json.dumps(running), encoding="utf-8")
    try:
        yield
    finally:
        _record().unlink(missing_ok=True)


def _process(pid: int, created: float) -> psutil.Process | None:
    """Return the recorded process; None if it has ended, even if its parent has not read its exit status yet."""
    with suppress(psutil.NoSuchProcess):
        found = psutil.Process(pid)
        if abs(found.create_time() - created) < 1 and lives(found):
            return found
    return None


def _lay_out() -> None:
    """Write the demo's dumps of the bundled sources, unless the user names another folder of sources or of dumps."""
    if os.environ.get("TIDEMARK_LANDING") or default_folder() != BUNDLED:
        return
    landing = demo_landing()
    names = [source.source for source in load_sources() if source.source in SOURCES]
    runner.lay_out(names, landing)
    for name in names:
        deliver_late(name, landing)


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["down"]:
            down()
        else:
            main()
    except KeyboardInterrupt:
        sys.exit(0)
    except TidemarkError as failure:
        sys.stderr.write(f"{type(failure).__name__}: {failure}\n")
        sys.exit(failure.exit_status)
