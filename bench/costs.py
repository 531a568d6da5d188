"""What work costs: processor seconds and wall seconds, of a call in this process or of processes started for it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one step took."""

    cpu: float
    """Seconds of processor time, user and system, of all processes that worked for it."""
    wall: float
    """Seconds."""
    memory: float = 0.0
    """MiB that all processes had at once, at the most, as seen ten times a second; 0: not measured."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(cpu=self.cpu + other.cpu, wall=self.wall + other.wall, memory=max(self.memory, other.memory))


Costs = dict[str, Cost]


def of_call(work: Callable[[], None], process: psutil.Process | None = None) -> Cost:
    """Return what a call took in this process, Spark's JVM and its Python workers.

    Args:
        work: the call.
        process: the process that does the work instead, with all that descend from it.
    """
    process = process or psutil.Process()
    cpu, wall = _cpu_seconds(process), time.perf_counter()
    work()
    return Cost(cpu=_cpu_seconds(process) - cpu, wall=time.perf_counter() - wall)


def of_process(command: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Return what a new process took, with all that descend from it, until the last of them has ended.

    Wall seconds end with the process itself: nobody waits for what it leaves behind. Processes that this one started
    before are not counted.

    Raises:
        SystemExit: it ended with another status than 0.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # processes that lose their parent become this one's
    others = set(psutil.Process().children())
    before, began = _waited_for(), time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    workers, ended, status, memory = dict[int, float](), began, 0, 0.0
    while mine := [process for process in psutil.Process().children() if process not in others]:
        memory = max(memory, _note_workers(mine, workers))
        time.sleep(_POLL_SECONDS)
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                workers.pop(found[0], None)
                if found[0] == process.pid:
                    ended, status = time.perf_counter(), os.waitstatus_to_exitcode(found[1])
    process.returncode = status
    if status:
        sys.exit(f"{' '.join(command)} ended with status {status}")
    return Cost(cpu=_waited_for() - before + sum(workers.values()), wall=ended - began, memory=memory)


def _waited_for() -> float:
    """Return the processor seconds of all children that ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _note_workers(roots: Sequence[psutil.Process], workers: dict[int, float]) -> float:
    """Note the times of Spark's Python workers below some processes; return the memory of all of them, in MiB.

    The workers' daemon ignores SIGCHLD, so nobody inherits their times.
    """
    memory = 0
    for process in (each for root in roots for each in _with_descendants(root)):
        with contextlib.suppress(psutil.NoSuchProcess):  # ended since it was listed
            memory += process.memory_info().rss
            if process.pid in workers or _forks_workers(process.parent()):
                times = process.cpu_times()
                workers[process.pid] = times.user + times.system
    return memory / (1 << 20)


apart: set[psutil.Process] = set()
"""Children of this process that are measured by themselves, while they work: not as a part of it."""


def _with_descendants(root: psutil.Process) -> list[psutil.Process]:
    found = [root]
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in root.children():
            if child not in apart:
                found += _with_descendants(child)
    return found


_workers: dict[psutil.Process, float] = {}
"""Python workers of this process's Spark, and their times as last seen. They end after a minute without work."""


def _cpu_seconds(root: psutil.Process) -> float:
    """Return the processor seconds so far of a process, its JVM and the Python workers, ended ones included."""
    total = 0.0
    for process in _with_descendants(root):
        with contextlib.suppress(psutil.NoSuchProcess):  # ended since it was listed
            times = process.cpu_times()[:4]  # user, system, and both of children that it waited for
            if process in _workers or _forks_workers(process.parent()):
                _workers[process] = sum(times)
            else:
                total += sum(times[:2] if _forks_workers(process) else times)
    return total + sum(_workers.values())


def _forks_workers(process: psutil.Process | None) -> bool:
    return process is not None and any(word.endswith("daemon") for word in process.cmdline())
