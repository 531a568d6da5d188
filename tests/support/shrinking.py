"""Shrinking a delivery that leads to the wrong rows: what is left of it shows the mistake to a reader."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from support.reference import Change

Delivery = list[list[Change]]
"""Changes of one table, run by run."""


def changes_of(runs: Delivery) -> list[Change]:
    """The changes of all runs, as they were delivered."""
    return [change for run in runs for change in run]


def shrunk(runs: Delivery, failing: Callable[[Mapping[str, Delivery], int], list[str]]) -> Delivery:
    """Leave changes out, half of them, then less, while what is left still fails.

    Args:
        runs: a delivery that fails.
        failing: names those that fail of tries by the name of their table, which become one source; and the step.
    """
    size = len(changes_of(runs)) // 2
    for step in range(8):
        starts = range(0, len(changes_of(runs)), size or 1)
        tries = {f"s{start}": _without(runs, range(start, start + size), f"s{start}") for start in starts}
        tries = {name: delivery for name, delivery in tries.items() if changes_of(delivery)}
        failed = failing(tries, step) if size and tries else []
        runs = tries[failed[0]] if failed else runs
        size = min(size if failed else size // 2, len(changes_of(runs)) // 2)
    return runs


def _without(runs: Delivery, numbers: range, table: str) -> Delivery:
    place = itertools.count()
    return [[change._replace(table=table) for change in run if next(place) not in numbers] for run in runs]
