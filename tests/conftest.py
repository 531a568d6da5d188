"""What all tests share: one lake and one Spark session for the whole run, sources of a test's own in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemark.sources.model import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.lake.lake import Lake

_OWN = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the run a temporary folder of its own, outside the one that pytest has for all runs of a user.

    Every start of pytest closes that one to other users. PostgreSQL, when root starts it, is another user, and panics
    at its next checkpoint: a run beside this one would end this one's databases.
    """
    if not config.option.basetemp:
        config.option.basetemp = config.stash[_OWN] = tempfile.mkdtemp(prefix="tidemark-tests-")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the folder, but leave it to be looked at if a test failed."""
    if exitstatus == pytest.ExitCode.OK and (folder := session.config.stash.get(_OWN, None)):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """``TIDEMARK_HOME`` of the whole run: a Spark session knows one catalog for all its life."""
    folder = tmp_path_factory.mktemp("home")
    os.environ["TIDEMARK_HOME"] = str(folder)
    yield folder
    del os.environ["TIDEMARK_HOME"]


@pytest.fixture(scope="session")
def spark(home: Path) -> Iterator[SparkSession]:
    """The session that the stages use, stopped at the end."""
    from tidemark.spark.session import open_session

    session = open_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lake(home: Path) -> Lake:
    """The lake of the run."""
    from tidemark.lake.lake import Lake

    return Lake.open()


@pytest.fixture
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Source]:
    """Make a source of this test's own: ``source("canal_json", tables={...})``; its landing is ``tmp_path``."""
    number = 0

    def make(format_name: str, **fields: Any) -> Source:
        nonlocal number
        number += 1
        name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.lower())[:50].strip("_")
        landing = str(fields.pop("landing", tmp_path / "landing" / "*"))
        (tmp_path / "landing").mkdir(exist_ok=True)
        return Source.model_validate(
            {"source": f"{name}_{number}", "format": format_name, "landing": landing, **fields}
        )

    return make
