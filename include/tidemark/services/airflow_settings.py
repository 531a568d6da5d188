"""The settings, secrets and components of the Airflow that runs on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidemark.services.processes import LOOPBACK

DEFAULT_PORT = 8080

USER = "admin"


COMPONENTS: Mapping[str, Sequence[str]] = {
    "api-server": ("api-server", "--host", LOOPBACK, "--workers", "1"),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
"""What runs: no triggerer, as nothing of Tidemark defers."""

MAIN = "from airflow.__main__ import main; main()"

WARM = (
    "import tidemark.pipeline, tidemark.quality.expectations, tidemark.stages.check, "
    f"pyspark.sql.connect.session; {MAIN}"
)
"""The scheduler's tasks are forks of it: what it has imported, none of them pays for (six seconds of processor time in
a check, two and a half in any other stage)."""

SETTINGS: Mapping[str, str] = {
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DEFAULT_TIMEZONE": "utc",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
    "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
}

SECRETS = {"admin": 16, "postgres": 24, "jwt": 64, "session": 64}
"""Random bytes of each secret."""


def write_private(file: Path, content: Mapping[str, str]) -> None:
    """Write a JSON file that only its owner may read."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
        json.dump(content, handle)
