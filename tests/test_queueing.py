"""Commits that have to queue are done again, from many threads at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidemark.queueing import retried


class BusyError(Exception):
    """Another commit came first."""


def test_threads_do_not_disturb_each_other() -> None:
    """One call waits for its next attempt while others begin and end."""
    began, others_done = threading.Event(), threading.Event()
    calls = []

    @retried(BusyError)
    def patient(*, waits: bool) -> bool:
        calls.append(waits)
        if waits and not began.is_set():
            began.set()
            others_done.wait(10)
            raise BusyError
        return waits

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(patient, waits=True)
        began.wait(10)
        assert not any(pool.submit(patient, waits=False).result() for _ in range(3))
        others_done.set()
        assert waiting.result(10)
    assert calls.count(True) == 2


def test_an_error_that_stays_is_raised_and_others_at_once() -> None:
    """So many attempts, and no more."""
    calls = []

    @retried(BusyError, attempts=3)
    def failing(error: type[Exception]) -> None:
        calls.append(error)
        raise error

    with pytest.raises(BusyError):
        failing(BusyError)
    with pytest.raises(KeyError):
        failing(KeyError)
    assert calls == [BusyError] * 3 + [KeyError]
