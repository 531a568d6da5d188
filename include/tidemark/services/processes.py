"""Servers that Tidemark starts on this machine. Each is a process group with a log, and is stopped as a whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tidemark.errors import RetriableLakeError

LOOPBACK = "127.0.0.1"

_LINES_SHOWN = 20


class Server:
    """A child process in a process group of its own. Everything that it starts ends with it."""

    def __init__(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str], log: Path, files: Sequence[int] = ()
    ) -> None:
        """Start ``command``. Its output goes to ``log``. It and all that it starts inherit the open ``files``."""
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=files,
            )

    @property
    def pid(self) -> int:
        """Process id of the server, and id of its process group."""
        return self._process.pid

    def check(self) -> None:
        """Check that the server lives.

        Raises:
            RetriableLakeError: it ended; with the last lines of its log.
        """
        if (status := self._process.poll()) is not None:
            raise RetriableLakeError(f"{self.name} ended with status {status}. {self.last_lines()}")

    def listens(self, port: int) -> bool:
        """Return whether the server, and not another program, listens on a port of this machine."""
        with contextlib.suppress(psutil.NoSuchProcess):
            leader = psutil.Process(self.pid)
            found = [each for process in (leader, *leader.children(recursive=True)) for each in _sockets(process)]
            return any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found)
        return False

    def last_lines(self) -> str:
        """Return the name of the log and its last lines."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES_SHOWN:]
        return "\n".join([f"Log {self.log}:", *lines])

    def stop(self, *, patience: float = 20.0) -> None:
        """Ask the whole group to end, wait up to ``patience`` seconds, then kill every process of it that is left."""
        strays = self._strays()
        self._signal(signal.SIGTERM, strays)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._signal(signal.SIGKILL, strays)
        self._process.wait()

    def _strays(self) -> list[psutil.Process]:
        """Return the descendants that have left the process group, as Airflow's tasks do."""
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            started = psutil.Process(self.pid).children(recursive=True)
            return [process for process in started if os.getpgid(process.pid) != self.pid]
        return []

    def _signal(self, number: signal.Signals, strays: Sequence[psutil.Process]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        for process in strays:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def _sockets(process: psutil.Process) -> list[Any]:
    """Return the connections of a process; none of one that has ended."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return list(process.net_connections("tcp"))
    return []


def end_groups(leaders: Sequence[psutil.Process], *, patience: float = 20.0) -> None:
    """End processes that another process started, and their descendants.

    They are asked to end. Those that are left after ``patience`` seconds are killed.
    """
    started = [process for leader in leaders for process in (leader, *leader.children(recursive=True))]
    for process in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    give_up = time.monotonic() + patience
    while any(map(lives, started)) and time.monotonic() < give_up:
        time.sleep(0.1)
    for process in filter(lives, started):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def lives(process: psutil.Process) -> bool:
    """Return whether a process runs. The system lists an ended process until its parent reads its exit status."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def wait_until(
    ready: Callable[[], bool], *, servers: Sequence[Server], seconds: float, what: str, poll: float = 0.1
) -> None:
    """Wait until ``ready`` returns true, and check meanwhile that the servers live.

    Raises:
        RetriableLakeError: a server ended, or the time is over.
    """
    end = time.monotonic() + seconds
    while not ready():
        for server in servers:
            server.check()
        if time.monotonic() > end:
            logs = "\n".join(server.last_lines() for server in servers)
            raise RetriableLakeError(f"{what} took more than {seconds:.0f} s. {logs}")
        time.sleep(poll)


_PORTS = range(20_000, 32_000)
"""Below the ports that systems give to whoever asks for any: a free one stays free until a server has started."""


def free_port(wanted: int | None = None) -> int:
    """Return ``wanted`` if nothing listens there on the loopback address, else any free port."""
    any_port = [*secrets.SystemRandom().sample(_PORTS, min(100, len(_PORTS))), 0]
    for port in any_port if wanted is None else [wanted, *any_port]:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((LOOPBACK, port))
            return int(probe.getsockname()[1])
    raise RetriableLakeError(f"no free port on {LOOPBACK}")


def answers(port: int) -> bool:
    """Return whether something accepts connections on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
