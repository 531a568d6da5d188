"""Who holds the lock of a source: written down by the holder, for people who wait for it.

What is written decides nothing. The lock itself does, and it ends with its process. A record names its process, so a
record that a killed process left can be recognised.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Final

import psutil
from sqlalchemy import Connection, text

_PROGRAM: Final = "tidemark"

_WORDS: Final = 2
"""Words of a command line that are shown behind the program: the command, and the source or table that it is for."""

_SESSION_NAME: Final = 63
"""Bytes that PostgreSQL keeps of the name of a session."""

_RECORD_BYTES: Final = 4096

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")

_PROCESSES: Final = Path("/proc/self/ns/pid")

_RUN: Final = ("AIRFLOW_CTX_DAG_ID", "AIRFLOW_CTX_DAG_RUN_ID")
"""Environment of a task of Airflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A writer of a source."""

    who: str
    """Process, machine and command, or what the database knows of it."""
    since: datetime | None

    def __str__(self) -> str:
        """Return one line: who, and since when."""
        return f"{self.who}, since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else self.who


def write(handle: int) -> None:
    """Write who this process is into the open file that it has locked."""
    process = psutil.Process()
    record = {
        "pid": process.pid,
        "host": socket.gethostname(),
        "began": process.create_time(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command(),
    }
    with suppress(OSError):  # a full disk keeps nobody from the lock
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(record).encode(), 0)


def of_file(file: Path) -> Holder | None:
    """Return who holds the lock on a file; None if nobody does, or if the process that wrote it down has ended."""
    try:
        with file.open("rb") as opened:
            record = json.loads(opened.read(_RECORD_BYTES))
        here = record["host"] == socket.gethostname()
        if here and not _lives(int(record["pid"]), float(record["began"])):
            return None
        who = f"process {int(record['pid'])} on {record['host']} ({record['command']})"
        return Holder(who=who, since=datetime.fromisoformat(record["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def of_database(connection: Connection, key: int) -> Holder | None:
    """Return who holds an advisory lock of PostgreSQL; None if nobody does."""
    found = connection.execute(
        text(
            "SELECT a.application_name, a.client_addr, a.backend_start FROM pg_locks l JOIN pg_stat_activity a "
            "ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "
            "AND ((l.classid::bigint << 32) | l.objid::bigint) = :key LIMIT 1"
        ),
        {"key": key},
    ).first()
    if found is None:
        return None
    at = f" from {found[1]}" if found[1] else ""
    return Holder(who=f"{found[0] or 'a session'}{at}", since=found[2].astimezone(UTC) if found[2] else None)


def session_name() -> str:
    """Return the name of this process's session in the database: process, machine and command."""
    return description().encode()[:_SESSION_NAME].decode(errors="ignore")


def description() -> str:
    """Return this process, its machine and its command, for people."""
    return f"process {os.getpid()} on {socket.gethostname()} ({_command()})"


def this_process() -> tuple[str, int, float]:
    """Return what ``has_ended`` needs to know of this process: the machine, its number there, and when it began."""
    return _machine(), os.getpid(), psutil.Process().create_time()


def has_ended(machine: str, pid: int, began: float) -> bool:
    """Return whether a process is known to have ended; of another machine's processes nothing is known."""
    return bool(machine) and machine == _machine() and not _lives(pid, began)


def _machine() -> str:
    """Return this machine since its start and the process numbers that are seen here; empty if they are unknown.

    Containers of one machine count their processes each for itself.
    """
    with suppress(OSError):
        return f"{_BOOT.read_text().strip()} {_PROCESSES.readlink()}"
    return ""


def _command() -> str:
    """Return the run of Airflow, or the program and what its command is for.

    It is kept in the lake, in the database of the catalog and in logs. So it has no option and no word with ``=``,
    which may be the key of a row that is erased, and no word at all of a program that is not Tidemark's.
    """
    run = [os.environ[name] for name in _RUN if name in os.environ]
    if run:
        return f"Airflow, {' '.join(run)}"
    program, *words = sys.argv
    name = Path(program).name
    plain = takewhile(lambda word: "=" not in word and not word.startswith("-"), words[:_WORDS])
    return " ".join([name, *plain]) if name == _PROGRAM else name


def _lives(pid: int, began: float) -> bool:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return abs(process.create_time() - began) < 1 and process.status() != psutil.STATUS_ZOMBIE
    return False
