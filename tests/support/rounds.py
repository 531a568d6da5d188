"""How much a test tries: little in ``make test``, all of it in ``make prove``, which sets ``TIDEMARK_PROVE``.

A test that has the marker ``more`` runs in both, and tries more in ``make prove``. What has the marker ``prove``
runs in ``make prove`` only: ``conftest.py`` leaves it out otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

import pytest

PROVING = "TIDEMARK_PROVE" in os.environ
"""Whether this is ``make prove``."""

ROUNDS = int(os.environ.get("TIDEMARK_PROVE", "1"))
"""How many seeds a test of generated histories takes."""


T = TypeVar("T")


def how_many(*, usually: T, proving: T) -> T:
    """Return one of the two: how many of something a test makes up."""
    return proving if PROVING else usually


def in_two_runs(runs: Sequence[Sequence[T]], *, last: bool = False) -> list[list[T]]:
    """Return what a case delivers in each run, of three at most: in ``make test`` the first two of three are one.

    What comes late comes in the last one, and a run costs much more than its rows.

    Args:
        runs: events by run.
        last: the last two are one: the case is about what the second run finds.
    """
    if PROVING or len(runs) < 3:
        return [list(run) for run in runs]
    first, second, third = runs
    return [list(first), [*second, *third]] if last else [[*first, *second], list(third)]


def crash_windows(windows: Iterable[str], *, usually: Collection[str]) -> list[Any]:
    """Return the parameters of a test that kills a run in each window; all but ``usually`` are for ``make prove``."""
    windows = list(windows)
    assert set(usually) <= set(windows)
    return [window if window in usually else pytest.param(window, marks=pytest.mark.prove) for window in windows]
