"""The settings, secrets and components of the Airflow that runs on this machine.

Secrets are made once for a folder and kept in a file that only this user can read.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidemark import INCLUDE
from tidemark.services.private_files import write_private
from tidemark.services.processes import LOOPBACK

DEFAULT_PORT = 8080

USER = "admin"


COMPONENTS: Mapping[str, Sequence[str]] = {
    "api-server": ("api-server", "--host", LOOPBACK, "--workers", "1"),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
"""Component -> arguments of Airflow's command line."""

TRIGGERER: Mapping[str, Sequence[str]] = {"triggerer": ("triggerer", "--skip-serve-logs")}
"""No task of Tidemark defers, so the demo goes without. A person's Airflow has it: its page shows it as healthy, and
DAGs of one's own may defer."""

MAIN = "from airflow.__main__ import main; main()"

PROGRAMS: Mapping[str, str] = {
    "scheduler": f"import tidemark.preloaded; {MAIN}",
    "dag-processor": f"import tidemark.orchestration; {MAIN}",
}
"""Component -> its program, where that is not only ``MAIN``. Tasks are forks of the scheduler, so they have the modules
that it has imported. That saves six seconds of processor time in a check, and two and a half in any other stage. The
DAG processor forks itself for each DAG file each time that it reads it, which saves half a second."""

SETTINGS: Mapping[str, str] = {
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DEFAULT_TIMEZONE": "utc",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    # Airflow may miss the end of a task's process, and then notices it when the next heartbeat is due. Until then the
    # task keeps its slot. With the usual 5 s, every fifth task did (docs/adr/0085).
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
    "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "8",
}

SECRETS = {"admin": 16, "postgres": 24, "jwt": 64, "session": 64}
"""Secret -> number of random bytes. The Fernet key, which has a form of its own, comes in addition."""


def made_secrets(folder: Path) -> dict[str, str]:
    """Return the secrets of the Airflow in a folder; make them if they are not there yet."""
    if not _secrets_file(folder).exists():
        made = {name: secrets.token_urlsafe(size) for name, size in SECRETS.items()}
        made["fernet"] = urlsafe_b64encode(secrets.token_bytes(32)).decode()
        write_private(_secrets_file(folder), json.dumps(made))
    return known_secrets(folder)


def known_secrets(folder: Path) -> dict[str, str]:
    """Return the secrets of the Airflow in a folder, which must have been made before."""
    return dict(json.loads(_secrets_file(folder).read_text(encoding="utf-8")))


def environment_of(home: Path, *, dags: Path, database: str, url: str) -> dict[str, str]:
    """Return the environment of Airflow's components and tasks, and write the file with its user's password.

    Args:
        home: Tidemark's home; Airflow's folder is ``airflow`` in it.
        dags: folder of the DAGs.
        database: SQLAlchemy URL of Airflow's database.
        url: address of the UI and the REST API.
    """
    folder = home / "airflow"
    known = made_secrets(folder)
    passwords = folder / "passwords.json"
    write_private(passwords, json.dumps({USER: known["admin"]}))
    path = [str(INCLUDE), *filter(None, [os.environ.get("PYTHONPATH")])]
    scripts = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return {
        **os.environ,
        **SETTINGS,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": known["fernet"],
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": known["session"],
        "AIRFLOW__API_AUTH__JWT_SECRET": known["jwt"],
        "AIRFLOW__API_AUTH__JWT_ISSUER": "tidemark",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": database,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(folder / "logs"),
        "TIDEMARK_HOME": str(home),
        "PATH": os.pathsep.join(scripts),
        "PYTHONPATH": os.pathsep.join(path),
    }


def _secrets_file(folder: Path) -> Path:
    return folder / "secrets.json"
