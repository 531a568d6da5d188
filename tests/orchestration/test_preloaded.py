"""How a task of the Airflow on this machine begins and ends: a fork of the scheduler, and a process watches it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.plug_ins import plug_in
from tidemark.services.airflow_settings import SETTINGS

ROOT = Path(__file__).parents[2]

PROGRAM = """
import importlib, json, os, sys
from importlib import util
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

for name in formats.own():
    formats.resolve(name)
for stage in STAGES:
    importlib.import_module(f"tidemark.stages.{stage}")
for stage in ("land", "normalize"):
    run_task(stage, find_source("erp"))
site.write(Lake.open(), ["erp"])
for view, template in ((IndexPageView, "index_page.j2"), (InertPageView, "page.j2")):
    view()._get_template(template)
answers = {
    "imported again": sorted(name for name in set(sys.modules) - known if name.startswith("tidemark.")),
    "formats": formats.names(),
    "heartbeats": [],
}
import airflow.sdk.execution_time.supervisor as supervisor

for settings in ({}, json.loads(sys.argv[1])):
    os.environ |= settings
    spec = util.spec_from_file_location("read_again", supervisor.__file__)
    sys.modules[spec.name] = module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answers["heartbeats"].append([module.MIN_HEARTBEAT_INTERVAL, module.MAX_FAILED_HEARTBEATS])
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(home: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """What a process says that has imported what the scheduler has: one for all tests, as this takes some seconds.

    A package is installed there whose format cannot be imported.
    """
    site = tmp_path_factory.mktemp("site")
    plug_in(site, "acme_cdc", "acme_json", "import no_such_module")
    usual = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__")}
    environment = usual | {"TIDEMARK_SOURCES": "examples/erp", "TIDEMARK_REPORT": "on", "AIRFLOW_HOME": str(site)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", PROGRAM, json.dumps(SETTINGS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_fork_of_the_scheduler_imports_nothing_of_tidemark_and_compiles_no_template(
    answers: dict[str, list[object]],
) -> None:
    """Stages, formats, the readers of DDL and the pages are there when the scheduler forks a task."""
    assert answers["imported again"] == []


def test_a_format_that_cannot_be_imported_does_not_end_the_scheduler(answers: dict[str, list[object]]) -> None:
    """The local scheduler imports only Tidemark's own formats beforehand; tasks of the source report the other."""
    assert "acme_json" in answers["formats"]


def test_the_end_of_a_task_is_noticed_within_two_seconds_and_a_silent_api_server_is_borne(
    answers: dict[str, list[tuple[int, int]]],
) -> None:
    """Airflow reads both settings, and bears an API server that does not answer for as long as it does by default."""
    (interval, failed), (ours, borne) = answers["heartbeats"]
    assert ours <= 2 < interval
    assert ours * borne >= interval * failed
