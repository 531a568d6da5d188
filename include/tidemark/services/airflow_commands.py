"""Airflow's own command line, in the environment of the Airflow that ``make up`` starts from a home."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tidemark.errors import ConfigurationError
from tidemark.services.airflow_settings import DEFAULT_PORT, environment_of, known_secrets
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.services.processes import LOOPBACK


def run(home: Path, arguments: Sequence[str], *, dags: Path, environment: Mapping[str, str]) -> int:
    """Run Airflow's command line with this process's input and output; return its exit status.

    Its database is joined if ``make up`` runs, and else started for the command and stopped again.

    Args:
        home: Tidemark's home.
        arguments: as Airflow's own program takes them.
        dags: folder of the DAGs.
        environment: of the tasks.

    Raises:
        ConfigurationError: no Airflow was ever started from this home.
    """
    folder = home / "airflow"
    if not (folder / "postgres" / "airflow-version").exists():
        raise ConfigurationError(
            f"there is no Airflow in {folder} yet: `make up` makes it, or TIDEMARK_HOME names another"
        )
    database = EmbeddedPostgres(folder / "postgres", known_secrets(folder)["postgres"])
    database.start()
    try:
        known = environment_of(home, dags=dags, database=database.url, url=_address(folder))
        command = [sys.executable, "-m", "airflow", *arguments]
        return subprocess.run(command, env={**known, **environment}, check=False).returncode  # noqa: S603 - our own
    finally:
        database.stop()


def _address(folder: Path) -> str:
    """Return the address of the UI, as ``make up`` wrote it down; else the usual one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads((folder / "up.json").read_text(encoding="utf-8"))["url"])
    return f"http://{LOOPBACK}:{DEFAULT_PORT}"
