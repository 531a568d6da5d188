"""Work over files, spread over Spark's workers, or done here when it is too little to be worth a Spark start."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark.spark import on_workers
from tidemark.spark.session import open_session

_FEW_FILES, _FEW_BYTES = 256, 32 << 20
"""So little is read sooner in this process than it is sent to Spark."""

_TASK_BYTES = 128 << 20
"""What one task should have at least: starting it costs a worker a tenth of a second."""

Part = tuple[Any, int]
"""A piece of work (a msgspec struct) and its size in expanded bytes, about."""

Result = TypeVar("Result", bound=msgspec.Struct)


def run(parts: Sequence[Part], work: Callable[[bytes], bytes], result: type[Result]) -> list[Result]:
    """Return what each task did, in no order.

    Args:
        parts: the pieces of work; a task takes several.
        work: the task, from its parts (a JSON array) to its result (JSON).
        result: the type of that result.
    """
    if not parts:
        return []
    if len(parts) <= _FEW_FILES and sum(size for _, size in parts) <= _FEW_BYTES:
        return [msgspec.json.decode(work(msgspec.json.encode([part for part, _ in parts])), type=result)]
    tasks = [msgspec.json.encode(task) for task in _packed(parts)]
    numbers = open_session().range(0, len(tasks), 1, len(tasks))
    done = numbers.mapInArrow(on_workers.on_tasks(tasks, work), from_arrow_schema(on_workers.DONE))
    return [msgspec.json.decode(bytes(row["done"]), type=result) for row in done.collect()]


def _packed(parts: Sequence[Part]) -> list[list[Any]]:
    """Parts by tasks that have about as much to do as each other, in each in their order."""
    count = max(2, round(sum(size for _, size in parts) / _TASK_BYTES))
    filled = [(0, number) for number in range(min(count, len(parts)))]
    tasks: list[list[int]] = [[] for _ in filled]
    for place in sorted(range(len(parts)), key=lambda place: -parts[place][1]):
        size, number = heapq.heappop(filled)
        tasks[number].append(place)
        heapq.heappush(filled, (size + parts[place][1], number))
    return [[parts[place][0] for place in sorted(task)] for task in tasks]
