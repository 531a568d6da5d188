"""Servers that Tidemark starts on this machine: each a process group of its own, with a log, stopped as a whole."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from tidemark.errors import RetriableLakeError

LOOPBACK = "127.0.0.1"

_LINES_SHOWN = 20


class Server:
    """A child process in its own group; everything that it starts ends with it."""

    def __init__(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str], log: Path, files: Sequence[int] = ()
    ) -> None:
        """Start ``command``; output goes to ``log``; the open ``files`` are kept open by it and all that it starts."""
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
        """Process, and process group, of the server."""
        return self._process.pid

    def check(self) -> None:
        """Do nothing while the server lives.

        Raises:
            RetriableLakeError: it ended; with the last lines of its log.
        """
        if (status := self._process.poll()) is not None:
            raise RetriableLakeError(f"{self.name} ended with status {status}. {self.last_lines()}")

    def last_lines(self) -> str:
        """Name the log, and show its end."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES_SHOWN:]
        return "\n".join([f"Log {self.log}:", *lines])

    def stop(self, *, patience: float = 20.0) -> None:
        """Ask the whole group to end, wait ``patience`` seconds for it, then kill what is left of all it started."""
        strays = self._strays()
        self._signal(signal.SIGTERM, strays)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._signal(signal.SIGKILL, strays)
        self._process.wait()

    def _strays(self) -> list[psutil.Process]:
        """Return the descendants that have left the group, as Airflow's tasks do."""
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


def end_groups(leaders: Sequence[psutil.Process], *, patience: float = 20.0) -> None:
    """Ask process groups to end that another process had started, and all that they started; then kill what is left."""
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
    """Whether a process runs; one that has ended stays listed until its parent asks for its status."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def wait_until(
    ready: Callable[[], bool], *, servers: Sequence[Server], seconds: float, what: str, poll: float = 0.1
) -> None:
    """Wait until ``ready`` says so, watching that the servers live.

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


def free_port(wanted: int | None = None) -> int:
    """Return ``wanted`` if nothing listens there on the loopback address, else any free port."""
    for port in (wanted, 0):
        if port is None:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((LOOPBACK, port))
            return int(probe.getsockname()[1])
    raise RetriableLakeError(f"no free port on {LOOPBACK}")


def answers(port: int) -> bool:
    """Tell whether something accepts connections on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
