"""Work on files, spread over Spark's workers; done in this process if there is too little work for a Spark start."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark.spark import on_workers
from tidemark.spark.session import open_session

_FEW_FILES, _FEW_BYTES = 256, 32 << 20
"""Up to this number of files and bytes, this process is done sooner than Spark would be."""

_TASK_BYTES = 128 << 20
"""Bytes that a task should have at least, because starting it takes a worker a tenth of a second."""

_MESSAGE_BYTES = 1000
"""Bytes of a message of the usual size."""

Part = tuple[Any, int]
"""A piece of work (a msgspec struct), and its approximate size in uncompressed bytes."""

Result = TypeVar("Result", bound=msgspec.Struct)


def run(parts: Sequence[Part], work: Callable[[bytes], bytes], result: type[Result]) -> list[Result]:
    """Return the result of each task, in no order.

    Args:
        parts: the pieces of work; one task does several.
        work: does a task: takes its parts (a JSON array) and returns its result (JSON).
        result: the type of the results.
    """
    if not parts:
        return []
    size = sum(size for _, size in parts)
    if len(parts) <= _FEW_FILES and size <= _FEW_BYTES:
        return [msgspec.json.decode(work(msgspec.json.encode([part for part, _ in parts])), type=result)]
    tasks = [msgspec.json.encode(task) for task in _packed(parts)]
    numbers = open_session(size // _MESSAGE_BYTES).range(0, len(tasks), 1, len(tasks))
    done = numbers.mapInArrow(on_workers.on_tasks(tasks, work), from_arrow_schema(on_workers.DONE))
    return [msgspec.json.decode(bytes(row["done"]), type=result) for row in done.collect()]


def _packed(parts: Sequence[Part]) -> list[list[Any]]:
    """Return the parts of each task. Tasks have about equal sizes, and parts keep their order within a task."""
    count = max(2, round(sum(size for _, size in parts) / _TASK_BYTES))
    filled = [(0, number) for number in range(min(count, len(parts)))]
    tasks: list[list[int]] = [[] for _ in filled]
    for place in sorted(range(len(parts)), key=lambda place: -parts[place][1]):
        size, number = heapq.heappop(filled)
        tasks[number].append(place)
        heapq.heappush(filled, (size + parts[place][1], number))
    return [[parts[place][0] for place in sorted(task)] for task in tasks]
