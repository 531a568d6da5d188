"""Which sources and dumps the Airflow of ``make demo`` and of ``make up`` has, in a shell that names others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.cli.airflow_command import environment_of_tasks
from tidemark.cli.demo_command import program
from tidemark.demo import runner
from tidemark.lake.catalog import home
from tidemark.sources.files import BUNDLED


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shell that names nothing, and a home without a secret."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    for name in ("TIDEMARK_SOURCES", "TIDEMARK_LANDING"):
        monkeypatch.delenv(name, raising=False)


def test_the_demo_runs_the_bundled_sources_whatever_the_shell_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """README and tutorial set ``TIDEMARK_SOURCES`` in the shell in which somebody then gives ``make demo``."""
    monkeypatch.setenv("TIDEMARK_SOURCES", "examples/erp")
    monkeypatch.setenv("TIDEMARK_LANDING", "elsewhere")
    environment = runner._environment(home() / "demo" / "landing", "spark://here")
    assert Path(environment["TIDEMARK_SOURCES"]) == BUNDLED
    assert Path(environment["TIDEMARK_LANDING"]) == home() / "demo" / "landing"


def test_commands_to_go_on_with_name_the_sources_of_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the shell names others: a command stays short where it can."""
    monkeypatch.setattr("sys.argv", ["tidemark"])
    assert program() == f"TIDEMARK_HOME={home()} tidemark"
    monkeypatch.delenv("TIDEMARK_HOME")
    assert program() == "tidemark"
    monkeypatch.setenv("TIDEMARK_SOURCES", "examples/erp")
    assert program() == f"TIDEMARK_SOURCES={BUNDLED} tidemark"


def test_bundled_sources_of_make_up_have_the_dumps_of_the_demo() -> None:
    """Their source files name a folder of the checkout that is not there."""
    environment = environment_of_tasks()
    assert Path(environment["TIDEMARK_SOURCES"]) == BUNDLED
    assert Path(environment["TIDEMARK_LANDING"]) == home() / "demo" / "landing"


def test_other_sources_of_make_up_find_their_dumps_where_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source file of the tutorial looks into ``examples/erp`` unless the user names another folder."""
    monkeypatch.setenv("TIDEMARK_SOURCES", "examples/erp")
    environment = environment_of_tasks()
    assert environment["TIDEMARK_SOURCES"] == "examples/erp"
    assert "TIDEMARK_LANDING" not in environment


def test_a_landing_folder_that_the_user_names_is_everybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """With bundled sources and with others."""
    monkeypatch.setenv("TIDEMARK_LANDING", "/dumps")
    assert environment_of_tasks()["TIDEMARK_LANDING"] == "/dumps"
    monkeypatch.setenv("TIDEMARK_SOURCES", "examples/erp")
    assert environment_of_tasks()["TIDEMARK_LANDING"] == "/dumps"
