"""``make up``: Airflow's UI over the sources of this environment, on the loopback address, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tidemark.airflow_service import USER, AirflowService
from tidemark.cli import configure_logging
from tidemark.errors import TidemarkError
from tidemark.lake import home
from tidemark.sources import default_folder

_DAGS = Path(__file__).parents[2] / "dags"


def main() -> None:
    """Start Airflow, print where it is and the password, and wait."""
    configure_logging()
    environment = {
        "TIDEMARK_SOURCES": str(default_folder()),
        "AIRFLOW_CONN_SPARK_DEFAULT": os.environ.get(
            "AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[*]"}'
        ),
    }
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with AirflowService(home(), dags=_DAGS, environment=environment) as airflow:
        sys.stdout.write(f"Airflow is at {airflow.url} (user {USER}, password {airflow.password}). Ctrl-C stops it.\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
    except TidemarkError as failure:
        sys.stderr.write(f"{type(failure).__name__}: {failure}\n")
        sys.exit(failure.exit_status)
