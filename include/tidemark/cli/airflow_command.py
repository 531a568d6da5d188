"""``tidemark airflow``: Airflow's own command line, for the Airflow of ``make up``."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import typer

from tidemark import INCLUDE
from tidemark.cli.app import SET_UP, app
from tidemark.cli.running import exits
from tidemark.errors import ConfigurationError
from tidemark.sources.files import BUNDLED, default_folder

DAGS = INCLUDE.parent / "dags"
"""The DAGs of a checkout."""


def require_checkout() -> None:
    """Check that there are DAGs, and Airflow: the package alone brings neither.

    Raises:
        ConfigurationError: one of them is missing.
    """
    if not DAGS.is_dir():
        raise ConfigurationError(
            f"there is no {DAGS}: the demo and the Airflow of `make up` need a checkout of the repository, which has "
            "the DAGs and the bundled sources"
        )
    if find_spec("airflow") is None:
        raise ConfigurationError("Airflow is not installed here: `make setup` in the checkout installs it")


def demo_landing() -> Path:
    """Return the folder of the demo's dumps."""
    from tidemark.lake.catalog import home

    return home() / "demo" / "landing"


def environment_of_tasks() -> dict[str, str]:
    """Return the environment that tasks of the Airflow of ``make up`` need beside Airflow's own.

    ``TIDEMARK_LANDING`` is the user's. Without it, the bundled sources have the demo's dumps, and other source files
    those that they name themselves.
    """
    from tidemark.demo.secret import environment_of_masks

    local = '{"conn_type": "spark", "host": "local[*]"}'
    given = os.environ.get("TIDEMARK_LANDING") or (str(demo_landing()) if default_folder() == BUNDLED else None)
    return {
        "TIDEMARK_SOURCES": str(default_folder()),
        **({"TIDEMARK_LANDING": given} if given else {}),
        **environment_of_masks(),
        "AIRFLOW_CONN_SPARK_DEFAULT": os.environ.get("AIRFLOW_CONN_SPARK_DEFAULT", local),
    }


@app.command(
    "airflow",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
    rich_help_panel=SET_UP,
)
@exits
def airflow(context: typer.Context) -> None:
    """Run Airflow's own command line in the environment of `make up`: tidemark airflow backfill create ..."""
    from tidemark.lake.catalog import home
    from tidemark.services.airflow_commands import run

    require_checkout()
    if status := run(home(), context.args, dags=DAGS, environment=environment_of_tasks()):
        raise typer.Exit(status)
