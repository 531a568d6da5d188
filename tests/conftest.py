"""What all tests share: one lake and one Spark session for the whole run, sources of a test's own in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemark.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.lake import Lake


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
    from tidemark.session import open_session

    session = open_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lake(home: Path) -> Lake:
    """The lake of the run."""
    from tidemark.lake import Lake

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
