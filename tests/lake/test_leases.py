"""One writer a source where the catalog has no lock: two machines are two homes here, with one catalog."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from support.hand_built import Source
from support.rest_catalog import rest_catalog
from tidemark import INCLUDE
from tidemark.diagnosis import stores
from tidemark.errors import LostSourceError, SourceBusyError
from tidemark.lake import fences, lease_records, leases, lock_holders, locks, names
from tidemark.lake.branches import marker
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW
from tidemark.lake.properties import LOG_PROPERTIES
from tidemark.lake.purging import purge
from tidemark.ledger import cuts, writing
from tidemark.ledger.states import CutState

TESTS = str(Path(__file__).parents[1])

BEGINNING = """\
import os, signal, sys
from pyiceberg.catalog.rest import RestCatalog
from support.hand_built import Source
from tidemark.errors import TidemarkError
from tidemark.lake import leases, names
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW
from tidemark.lake.properties import LOG_PROPERTIES
from tidemark.ledger import cuts, writing

name, stop_at, leases.SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
if stop_at:
    leases._GOOD = 100.0  # its clock stands still: it never gives up by itself, however slow the machine of the test is
counted, commit = 0, RestCatalog.commit_table

def stopping(self, table, requirements, updates):
    global counted
    if armed and not names.is_lease(table.name()):  # the requirements are made, and nothing is sent yet
        counted += 1
        if counted == stop_at:
            print("stops", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
    return commit(self, table, requirements, updates)

RestCatalog.commit_table = stopping
armed = False
"""

PUBLISHING = """\
with writing.hold(name, patience=0):
    source = Source(Lake.open(), name)
    source.publish(1)
    cut = source.build(2)
    armed = True
    try:
        cuts.publish(source.lake, source.ledger, cut)
    except TidemarkError as error:
        print(type(error).__name__, error, flush=True)
"""

LANDING = """\
armed = True
with writing.hold(name, patience=0):
    try:
        raw = Lake.open().ensure(names.raw(name), RAW, LOG_PROPERTIES, partition_by=["batch"])
        Lake.open().append_files(raw, [], {"batch": "1"})
    except TidemarkError as error:
        print(type(error).__name__, error, flush=True)
"""

LOST = re.compile(r"LostSourceError \w+: (another run took this source over|.* another run took it over)")
"""By the fence, or by the lease if its thread woke first."""

HOLDING = """\
with writing.hold(name, patience=0):
    print("holds", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a REST catalog."""
    with rest_catalog(tmp_path_factory.mktemp("rest") / "lake") as address:
        yield address


@pytest.fixture(autouse=True)
def here(catalog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process write to the catalog, from a home of its own."""
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__TYPE", "rest")
    monkeypatch.setenv("PYICEBERG_CATALOG__TIDEMARK__URI", catalog)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "here"))
    monkeypatch.setattr(leases, "SECONDS", 600.0)


def elsewhere(
    tmp_path: Path, script: str, source: str, *, stop_at: int = 0, seconds: float = 2.0
) -> subprocess.Popen[str]:
    """Start a writer on another machine: another home, the same catalog and warehouse."""
    return subprocess.Popen(
        [sys.executable, "-c", BEGINNING + script, source, str(stop_at), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{INCLUDE}:{TESTS}", "TIDEMARK_HOME": str(tmp_path / "elsewhere")},
    )


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process wrote and that is no line of a log; empty if it ended."""
    assert process.stdout is not None
    return next((line for line in process.stdout if not line.startswith("2")), "")


@pytest.fixture(autouse=True)
def _other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Know nothing of the processes elsewhere but what the lease says, as on another machine."""
    monkeypatch.setattr(lock_holders, "_machine", lambda: "this one")


def test_a_source_has_one_writer_over_two_homes(tmp_path: Path) -> None:
    """The second writer soon gets to know who writes.

    The source is free at once after a clean end, and after a kill when the lease has run out. Spark asks no fence: what
    it still writes for the killed writer lies on a branch of a number that is used no more.
    """
    first = elsewhere(tmp_path, HOLDING, "one", seconds=15.0)
    assert said(first) == "holds\n"
    assert locks.reaches_all_machines()
    assert "a lease in the catalog" in stores.lock_reach().found
    busy = f"one: another run is writing this source: process {first.pid} on .*, since 20"
    with pytest.raises(SourceBusyError, match=busy), writing.hold("one", patience=0):
        pytest.fail("two writers")
    with writing.hold("another", patience=0):
        pass
    first.communicate("\n")
    assert locks.holder("one") is None
    with writing.hold("one", patience=0):
        taken = lease_records.read(lease_records.open_table(Lake.open(), "one"))
    assert taken.token == 2
    killed = elsewhere(tmp_path, HOLDING, "one")
    assert said(killed) == "holds\n"
    killed.kill()
    killed.communicate()
    began = time.monotonic()
    with writing.hold("one", patience=0):
        assert time.monotonic() - began >= 1.0
        taken = lease_records.read(lease_records.open_table(Lake.open(), "one"))
        assert taken.token == 4
        source = Source(Lake.open(), "one")
        assert cuts.next_number(source.lake, source.ledger) == 2
        source.publish(2)
        assert cuts.next_number(source.lake, source.ledger) == 3
    with writing.hold("one", patience=0):  # handed on without a takeover
        assert cuts.next_number(source.lake, source.ledger) == 3


@pytest.mark.parametrize("stop_at", [6, *(pytest.param(at, marks=pytest.mark.prove) for at in (1, 2, 3, 4, 5, 7))])
def test_a_writer_that_wakes_publishes_nothing(tmp_path: Path, stop_at: int) -> None:
    """It was stopped between its requirements and the commit, and its source was taken over.

    The commit fails, and says why. Tables and ledger stay as they were, and the next writer publishes the cut whole.
    """
    name = f"shop_{stop_at}"
    zombie = elsewhere(tmp_path, PUBLISHING, name, stop_at=stop_at)
    try:
        assert said(zombie) == "stops\n"
        with writing.hold(name, patience=30):
            source = Source(Lake.open(), name)
            before = source.seen()
            zombie.send_signal(signal.SIGCONT)
            output, _ = zombie.communicate(timeout=60)
            assert LOST.search(output), output
            assert source.seen() == before
            cuts.finish(source.lake, source.ledger)
            for cut in source.ledger.cuts():
                if cut.state == CutState.CHECKED:
                    cuts.publish(source.lake, source.ledger, cut)
            assert source.rows("one") == source.rows("two") == [1, 2]
    finally:
        zombie.kill()
        zombie.communicate()


@pytest.mark.parametrize("stop_at", [pytest.param(1, marks=pytest.mark.prove), 2])
def test_a_writer_that_wakes_lands_nothing(tmp_path: Path, stop_at: int) -> None:
    """Its batch would have the number that the next writer gave to other messages; at 1, it just made the table."""
    name = f"lands_{stop_at}"
    zombie = elsewhere(tmp_path, LANDING, name, stop_at=stop_at)
    try:
        assert said(zombie) == "stops\n"
        with writing.hold(name, patience=30):
            lake = Lake.open()
            raw = lake.ensure(names.raw(name), RAW, LOG_PROPERTIES, partition_by=["batch"])
            lake.append_files(raw, [], {"batch": "1", "by": "the second"})
        zombie.send_signal(signal.SIGCONT)
        output, _ = zombie.communicate(timeout=60)
        assert LOST.search(output), output
        assert marker(lake.load(names.raw(name)), "by") == "the second"
        assert len(lake.load(names.raw(name)).history()) == 2
    finally:
        zombie.kill()
        zombie.communicate()


def test_a_holder_that_cannot_renew_its_lease_gives_up_before_others_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own clock, without asking anybody: the catalog may not answer."""
    with writing.hold("silent", patience=0):
        lake = Lake.open()
        raw = lake.ensure(names.raw("silent"), RAW, LOG_PROPERTIES, partition_by=["batch"])
        monkeypatch.setattr(leases, "_clock", lambda: time.clock_gettime(time.CLOCK_BOOTTIME) + 500)
        with pytest.raises(LostSourceError, match=r"could not say for \d+ s that it still writes"):
            lake.append_files(raw, [], {"batch": "1"})
        monkeypatch.undo()


def test_a_fence_survives_an_erasure_and_readers_see_none(tmp_path: Path) -> None:
    """Purging keeps the branch: without it, a lost writer could commit again."""
    lake = Lake.open()
    table = lake.ensure(names.raw("kept"), RAW, LOG_PROPERTIES, partition_by=["batch"])
    fences.shut(table, "kept", 7)
    purge(lake.load(names.raw("kept")))
    table = lake.load(names.raw("kept"))
    assert set(table.refs()) == {"main", names.fence("kept")}
    assert fences.token_of(table, "kept") == 7


def test_who_has_ended_on_this_machine_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a process that is gone; of another machine, or another count of processes, nothing is known."""
    monkeypatch.undo()
    machine, pid, began = lock_holders.this_process()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not lock_holders.has_ended(machine, pid, began)
    assert lock_holders.has_ended(machine, pid, began - 60)  # another process had the number
    assert lock_holders.has_ended(machine, gone.pid, began)
    assert not lock_holders.has_ended(f"not {machine}", gone.pid, began)
    assert not lock_holders.has_ended("", gone.pid, began)


def test_a_record_reads_as_it_was_written() -> None:
    """Each change of the lease puts one snapshot in the place of the one before."""
    lake = Lake.open()
    first = lease_records.open_table(lake, "records")
    second = lease_records.open_table(lake, "records")
    assert lease_records.read(first) == lease_records.FREE
    record = lease_records.LeaseRecord(token=1, owner="me", seconds=60.0)
    assert lease_records.exchange(first, record)
    assert not lease_records.exchange(second, msgspec.structs.replace(record, owner="you"))
    table = lease_records.open_table(lake, "records")
    assert lease_records.read(table) == record
    assert len(table.metadata.snapshots) == 1
