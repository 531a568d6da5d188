"""Commits that have to queue are done again, from many threads at once."""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidemark.lake.retries import retried


class BusyError(Exception):
    """Another commit came first."""


def test_threads_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls begin all the time while others wait for their next attempt."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    attempts = itertools.count(1)
    interval = sys.getswitchinterval()

    @retried(BusyError, attempts=1000)
    def busy() -> None:
        if next(attempts) % 5:
            raise BusyError

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for call in [pool.submit(busy) for _ in range(10_000)]:
                call.result()
    finally:
        sys.setswitchinterval(interval)


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
