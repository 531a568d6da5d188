"""``make up`` and ``make down``, each in a process of its own."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.airflow_world import belonging_to
from tidemark.services.airflow_settings import known_secrets

ROOT = Path(__file__).parents[2]

MODULE = ("-m", "tidemark.up")

WITHOUT_AIRFLOW = """\
import os
from tidemark import up
from tidemark.lake.catalog import home
from tidemark.services.airflow import AirflowService
from tidemark.services.airflow_settings import made_secrets
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import Server

service = AirflowService(home(), dags=home(), environment={}, port=None)
service.folder.mkdir()
EmbeddedPostgres(service.folder / "postgres", made_secrets(service.folder)["postgres"]).start()
command = ["sh", "-c", "setsid sleep 500 & sleep 500"]
service._servers = [Server("scheduler", command, environment=os.environ, log=service.folder / "scheduler.log")]
with up._recorded(service):
    print(up._greeting(service.url, service.password, service.folder), flush=True)
    service.watch()
"""
"""What ``make up`` does, with the database of Airflow, and with a server that has a task at work in Airflow's place."""


class MakeUp:
    """``make up`` and ``make down`` over a home, each in a process of its own."""

    def __init__(self, home: Path) -> None:
        (home / "sources").mkdir()
        environment = {**os.environ, "TIDEMARK_HOME": str(home), "TIDEMARK_SOURCES": str(home / "sources")}
        self.environment = environment | {"PYTHONPATH": str(ROOT / "include"), "TIDEMARK_LANDING": str(home)}
        self.folder = home / "airflow"

    def up(self, *program: str) -> tuple[subprocess.Popen[str], str]:
        """Start Airflow, or another program; return the process, and the lines that it printed."""
        command = [sys.executable, *(program or MODULE)]
        process = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        return process, "".join(itertools.takewhile(lambda line: "make down" not in line, process.stdout))

    def down(self) -> str:
        """Stop Airflow; return what was printed."""
        command = [sys.executable, *MODULE, "down"]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout

    def airflow(self, *arguments: str) -> str:
        """Return what Airflow's own command line prints, run as `tidemark airflow`."""
        program = "from tidemark.cli import main; main()"
        command = [sys.executable, "-c", program, "airflow", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout

    def password(self) -> str:
        """Return the password of the only user."""
        return known_secrets(self.folder)["admin"]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeUp]:
    """Return ``make up`` over a new home, to which another process belongs as well."""
    make = MakeUp(tmp_path)
    with subprocess.Popen(["sleep", "600"], env=make.environment) as other:
        yield make
        other.kill()


@pytest.mark.parametrize(
    "program",
    [("-c", WITHOUT_AIRFLOW), pytest.param(MODULE, marks=[pytest.mark.airflow, pytest.mark.slow, pytest.mark.prove])],
    ids=["without Airflow", "Airflow"],
)
def test_down_stops_what_a_killed_up_left_and_nothing_else(
    make: MakeUp, tmp_path: Path, program: Sequence[str]
) -> None:
    """From another process; twice is no mistake."""
    process, printed = make.up(*program)
    assert f"  password  {make.password()}\n" in printed
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(belonging_to(tmp_path)) > 3
    assert make.down() == "Airflow is stopped.\n"
    assert belonging_to(tmp_path) == ["sleep 600 "]
    assert make.down().startswith("Nothing to stop")


@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.prove
def test_down_stops_what_up_started_and_nothing_else(make: MakeUp, tmp_path: Path) -> None:
    """``make up`` ends by itself then; the password is printed once; `tidemark airflow` works with it and without."""
    process, printed = make.up()
    assert f"  password  {make.password()}\n" in printed
    assert make.down() == "Airflow is stopped.\n"
    assert process.wait(10) == 0
    assert belonging_to(tmp_path) == ["sleep 600 "]
    for running in (False, True):
        if running:
            process, printed = make.up()
            assert make.password() not in printed
        assert "lake_maintenance" in make.airflow("dags", "list", "--output", "plain")
        if not running:
            assert belonging_to(tmp_path) == ["sleep 600 "]
        assert any("postgres" in command for command in belonging_to(tmp_path)) is running
    assert make.down() == "Airflow is stopped.\n"
    assert process.wait(10) == 0
    assert belonging_to(tmp_path) == ["sleep 600 "]
