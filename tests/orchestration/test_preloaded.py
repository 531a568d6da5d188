"""How a task of the Airflow on this machine begins and ends: a fork of the scheduler, and a process watches it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tidemark.services.airflow_settings import SETTINGS

ROOT = Path(__file__).parents[2]

PROGRAM = """
import importlib, sys
import jinja2
import tidemark.preloaded

known = set(sys.modules)

def compiled_again(*_, **__):
    raise AssertionError("a template is compiled again")

jinja2.Environment.compile = compiled_again

from tidemark import formats
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_task
from tidemark.quality.docs_pages import IndexPageView, InertPageView
from tidemark.report import site
from tidemark.sources.files import find_source
from tidemark.stages import STAGES

for name in formats.names():
    formats.resolve(name)
for stage in STAGES:
    importlib.import_module(f"tidemark.stages.{stage}")
for stage in ("land", "normalize"):
    run_task(stage, find_source("erp"))
site.write(Lake.open(), ["erp"])
for view, template in ((IndexPageView, "index_page.j2"), (InertPageView, "page.j2")):
    view()._get_template(template)
print("imported again:", *sorted(name for name in set(sys.modules) - known if name.startswith("tidemark.")))
"""


def test_a_fork_of_the_scheduler_imports_nothing_of_tidemark_and_compiles_no_template(home: Path) -> None:
    """Stages, formats, the readers of DDL and the pages are there when the scheduler forks a task."""
    environment = os.environ | {"TIDEMARK_SOURCES": "examples/erp", "TIDEMARK_REPORT": "on"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.stdout.splitlines()[-1:] == ["imported again:"], done.stderr[-2000:]


def test_the_end_of_a_task_is_noticed_within_two_seconds_and_a_silent_api_server_is_borne(tmp_path: Path) -> None:
    """Airflow reads both settings, and bears an API server that does not answer for as long as it does by default."""
    program = (
        "import airflow.sdk.execution_time.supervisor as s; print(s.MIN_HEARTBEAT_INTERVAL, s.MAX_FAILED_HEARTBEATS)"
    )
    usual = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
    pairs = []
    for settings in ({}, SETTINGS):
        environment = usual | {"AIRFLOW_HOME": str(tmp_path)} | settings
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        pairs.append([int(number) for number in done.stdout.split()[-2:]])
    (interval, failed), (ours, borne) = pairs
    assert ours <= 2 < interval
    assert ours * borne >= interval * failed
