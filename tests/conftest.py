"""What all tests share: for each worker of a run a lake and a session of Spark, and sources of a test's own there."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import psutil
import pytest
from hypothesis import HealthCheck, settings

from support.lakes import empty_lake, leave_the_disk_to_the_system
from support.rounds import PROVING
from tidemark.sources.model import Source
from tidemark.spark.java import QUICK_COMPILER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from support.one_jvm import OneJvm
    from tidemark.lake.lake import Lake

_OWN = pytest.StashKey[str]()
_JVM: pytest.StashKey[OneJvm] = pytest.StashKey()
_WITH_SPARK = pytest.StashKey[set[Path]]()
_MEMORY = Path("/dev/shm")  # noqa: S108  each run makes a folder there that is closed to others
_ROOM = 8 * 2**30
"""Bytes: a run of all tests needs up to one gibibyte, `make prove` three."""
_NAME_LENGTH = 50
"""Letters that the name of a test lends to the names of its sources."""
_SECONDS = {"airflow": 40, "slow": 20, "spark": 2, "lake": 0.5}
"""About how long a test takes that has one of these markers, or the fixture ``spark`` or ``lake``."""
_QUICK = {"JAVA_TOOL_OPTIONS": QUICK_COMPILER}
"""JVMs of processes that tests start, and the one of a few tests, compile by the quick compiler alone.

Tests have few rows, so code that runs for each row never pays for the optimizing compiler. A run of 24 small tables
takes a fifth less processor time so, and the first run of a JVM half. The code cache has to be as large as usual; else
the JVM drops what it compiled and compiles it again.
"""

# Without this, Hypothesis fails a test because the machine is busy, and not for what it found.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the run a temporary folder of its own, outside the one that pytest has for all runs of a user.

    Every start of pytest closes that one to other users. PostgreSQL, when root starts it, is another user, and panics
    at its next checkpoint: a run beside this one would end this one's databases.
    """
    if not config.option.basetemp:
        config.option.basetemp = config.stash[_OWN] = tempfile.mkdtemp(prefix="tidemark-tests-", dir=_memory())


def _memory() -> Path | None:
    """Return Linux's folder whose files lie in memory, where it has plenty; else None, for the system's own choice.

    A run makes and removes tens of thousands of small files. On a disk this takes twice the system's time.
    """
    if (
        _MEMORY.is_dir()
        and psutil.virtual_memory().available > 2 * _ROOM
        and psutil.disk_usage(str(_MEMORY)).free > _ROOM
    ):
        return _MEMORY
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let Python collect no garbage until all tests are there: asserts are rewritten as trees, and most of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the folder when all workers have ended, but leave it to be looked at if a test failed."""
    if exitstatus == pytest.ExitCode.OK and (folder := session.config.stash.get(_OWN, None)):
        shutil.rmtree(folder, ignore_errors=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let Python collect garbage more seldom, and pass over what tests and libraries are: they stay to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the JVM, and let Python free all of it at the end; else libraries complain of leaks."""
    if jvm := config.stash.get(_JVM, None):
        jvm.end()
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of the JVM that all of them share."""
    node.workerinput["jvm"] = _jvm_of(node.config)


def _jvm_of(config: pytest.Config) -> dict[str, str]:
    """Return the address of the run's JVM, which the first call starts.

    In a run of all tests it has the optimizing compiler too: what plans is run often enough (docs/adr/0096).
    """
    from support.one_jvm import OneJvm

    if _JVM not in config.stash:
        has_all = config.args_source is config.ArgsSource.TESTPATHS
        config.stash[_JVM] = OneJvm(Path(config.option.basetemp) / "spark.log", is_quick=not has_all)
    return config.stash[_JVM].address


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only ``make prove`` runs, and put the files that take longest first.

    Workers take whole files. A long one at the end would keep one worker busy after the others are done.
    """
    if not PROVING:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("prove")])
        items[:] = [item for item in items if not item.get_closest_marker("prove")]
    seconds: defaultdict[Path, float] = defaultdict(float)
    config.stash[_WITH_SPARK] = set()
    for item in items:
        used = {*(mark.name for mark in item.iter_markers()), *getattr(item, "fixturenames", ())}
        if "spark" in used:
            config.stash[_WITH_SPARK].add(item.path)
        seconds[item.path] += next((weight for name, weight in _SECONDS.items() if name in used), 0)
    items.sort(key=lambda item: -seconds[item.path])


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """``TIDEMARK_HOME`` of a worker's whole run: a Spark session knows one catalog for all its life."""
    folder = tmp_path_factory.mktemp("home")
    os.environ["TIDEMARK_HOME"] = str(folder)
    yield folder
    del os.environ["TIDEMARK_HOME"]


@pytest.fixture(scope="session", autouse=True)
def _no_reports() -> Iterator[None]:
    """Let stages write no pages: hundreds of runs would write them twice each. Tests that read pages turn this off."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIDEMARK_REPORT", "off")
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_compiler() -> Iterator[None]:
    """Let the JVMs of processes that tests start have the quick compiler alone, too."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in _QUICK.items():
            patched.setenv(name, value)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Let SQLite leave it to the system when the catalog gets to the disk: a run commits to it some thirty times."""
    from sqlalchemy import Engine, event

    event.listen(Engine, "connect", leave_the_disk_to_the_system)
    yield
    event.remove(Engine, "connect", leave_the_disk_to_the_system)


@pytest.fixture(scope="module", autouse=True)
def _lake_of_its_own(home: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Let each module begin with an empty lake.

    Two modules that use one name for a source would else see each other's rows, in the one order that puts them on
    one worker. Besides, all sources of a lake share the ledger, and each commit reads and writes the whole metadata of
    its table: after a hundred runs of other modules, a run would take twice as long. The report goes too: the page of
    all sources shows the days up to the newest of any source.
    """
    yield
    if request.node.path in request.config.stash[_WITH_SPARK]:
        # A proxy of py4j that was called once refers to itself. Until Python frees it, the JVM keeps its plan and rows.
        gc.collect()
    empty_lake(home)
    shutil.rmtree(home / "quality" / "site", ignore_errors=True)


@pytest.fixture(scope="session")
def jvm(home: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """The address of the JVM that all workers of a run share. Its log is in the folder of the run."""
    worker: dict[str, Any] = getattr(request.config, "workerinput", {})
    address: dict[str, str] = worker["jvm"] if worker else _jvm_of(request.config)
    return address


@pytest.fixture(scope="session")
def spark(jvm: dict[str, str], request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session that the stages use."""
    from support import one_jvm
    from tidemark.quality import expectations
    from tidemark.quality.data_docs import Recorder
    from tidemark.spark.session import open_session

    written = Recorder.write_pages

    def write_if_read(recorder: Recorder) -> None:
        """Write Data Docs in tests that want the report's pages too, and in no others."""
        if os.environ.get("TIDEMARK_REPORT") != "off":
            written(recorder)

    one_jvm.join(jvm)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Recorder, "write_pages", write_if_read)
        # A check reads the settings of Great Expectations anew, as its folder may be another one by then: not here.
        patched.setattr(expectations, "open_context", lru_cache(maxsize=1)(expectations.open_context))
        session = open_session()
        yield session
    if _JVM in request.config.stash:  # the JVM is this process's own
        session.stop()


@pytest.fixture(scope="session")
def lake(home: Path) -> Lake:
    """The lake of the run."""
    from tidemark.lake.lake import Lake

    return Lake.open()


@pytest.fixture(params=["one_task", "tasks_apart"])
def one_task_or_apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be read in one task, or each in a task of its own: it must make no difference."""
    from support.running import tasks_apart

    if request.param == "tasks_apart":
        tasks_apart(monkeypatch)


@pytest.fixture
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Source]:
    """Make a source of this test's own: ``source("canal_json", tables={...})``; its landing is ``tmp_path``."""
    number = 0

    def make(format_name: str, **fields: Any) -> Source:
        nonlocal number
        number += 1
        name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.lower()).strip("_")
        if len(name) > _NAME_LENGTH:  # two tests of a module may differ only behind
            name = f"{name[: _NAME_LENGTH - 9]}_{crc32(name.encode()):08x}"
        landing = str(fields.pop("landing", tmp_path / "landing" / "*"))
        (tmp_path / "landing").mkdir(exist_ok=True)
        return Source.model_validate(
            {"source": f"{name}_{number}", "format": format_name, "landing": landing, **fields}
        )

    return make
