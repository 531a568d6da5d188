"""One writer a source: between processes, between threads, and over the end of the one that held it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tidemark import INCLUDE
from tidemark.errors import ConfigurationError, SourceBusyError
from tidemark.lake import lock_holders, locks
from tidemark.lake.lake import Lake
from tidemark.pipeline import run_stage
from tidemark.services.postgres import EmbeddedPostgres
from tidemark.sources.model import Source

HOLDER = """\
import sys, time
from tidemark.lake import lock_holders, locks
with locks.hold(sys.argv[1], patience=0):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=["file", "postgresql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the environment name a catalog of each kind; the lock needs no table in it."""
    if request.param == "file":
        monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
        yield
        return
    database = EmbeddedPostgres(tmp_path / "postgres", "secret")
    database.start()
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__URI", database.url)
    yield
    database.stop()


def holder(source: str) -> subprocess.Popen[str]:
    """Have another process hold a source."""
    path = str(INCLUDE)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, source],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.usefixtures("catalog")
def test_another_process_keeps_a_source_until_it_ends_however_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a run waits, the log repeats who writes; others are free; SIGKILL leaves nothing to clear, nor a holder."""
    assert locks.holder("erp") is None
    with pytest.raises(ConfigurationError, match="there is no lake"):
        Lake.existing()  # and none is made to read it
    process = holder("erp")
    try:
        message = f"erp: another run is writing this source: process {process.pid} on .*, since 20"
        monkeypatch.setattr(locks, "_WARN_EVERY", 0.3)
        with capture_logs() as logged, pytest.raises(SourceBusyError, match=message), locks.hold("erp", patience=1.5):
            pytest.fail("two writers")
        waits = [entry for entry in logged if entry["event"] == "waiting_for_other_writer"]
        assert len(waits) >= 2
        assert all(entry["log_level"] == "warning" for entry in waits)
        assert all(f"process {process.pid} on " in entry["holder"] for entry in waits)
        assert locks.holder("crm") is None
        with locks.hold("crm", patience=0):
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with locks.hold("erp", patience=5):
        pass
    assert locks.holder("erp") is None


def test_who_waits_goes_on_when_the_other_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that wants a held source gets it after the holder, not beside it."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    order: list[str] = []

    def second() -> None:
        with locks.hold("erp", patience=10):
            order.append("second")

    with locks.hold("erp"):
        thread = threading.Thread(target=second)
        thread.start()
        with locks.hold("erp", patience=0):  # a run holds its source around stages that hold it
            order.append("first")
        thread.join(1.5)
        assert order == ["first"]
    thread.join(10)
    assert order == ["first", "second"]


def test_stage_of_a_busy_source_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage is refused before it writes; an option that a stage does not have is a mistake."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    erp = Source.model_validate({"source": "erp", "format": "canal_json", "landing": str(tmp_path / "landing" / "*")})
    process = holder("erp")
    try:
        with pytest.raises(SourceBusyError):
            run_stage("land", erp, patience=0)
    finally:
        process.kill()
        process.communicate()
    assert not list((tmp_path / "warehouse").glob("*"))
    with pytest.raises(ConfigurationError, match="land has no option colour; it has start, end"):
        run_stage("land", erp, colour="red")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["/venv/bin/tidemark", "erase", "crm.people", "email=alice"], "(tidemark erase crm.people)"),
        (["tidemark", "erase", "email=alice", "crm.people"], "(tidemark erase)"),
        (["tidemark", "erase", "--unread", "crm.people", "email=alice"], "(tidemark erase)"),
        (["tidemark", "erase", "crm.people", "alice"], "(tidemark erase crm.people)"),
        (["tidemark", "run", "erp", "--start", "2026-01-01"], "(tidemark run erp)"),
        (["/jobs/forget.py", "alice"], "(forget.py)"),
    ],
)
def test_who_writes_is_told_without_the_key_of_an_erasure(
    words: list[str], shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told stays in the lake, in the catalog's database and in logs of other runs, where no erasure looks."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", words)
    shown_to_all = [lock_holders.description(), lock_holders.session_name()]
    with locks.hold("erp", patience=0):
        shown_to_all.append(str(locks.holder("erp")))
        shown_to_all += [path.read_text() for path in (tmp_path / "locks").iterdir()]
    assert not [text for text in shown_to_all if "alice" in text]
    assert shown in shown_to_all[0]
