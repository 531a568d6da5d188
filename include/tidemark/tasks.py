"""Work over files, spread over Spark's workers, or done here when it is too little to be worth a Spark start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark import workers
from tidemark.session import open_session

_FEW_FILES, _FEW_BYTES = 256, 16 << 20
"""So little is read sooner in this process than it is sent to Spark."""

_TASK_BYTES = 48 << 20
"""Stored bytes that one task should have, so that its rows fill a file."""

Part = tuple[Any, int]
"""A piece of work (a msgspec struct) and its size in bytes."""


def is_little(files: int, size: int) -> bool:
    """Whether work over so many files, of so many bytes, needs no Spark."""
    return files <= _FEW_FILES and size <= _FEW_BYTES


def run(parts: Sequence[Part], work: Callable[[bytes], bytes]) -> list[workers.Done]:
    """Do the work for all parts, in tasks of several; what each task did, in no order."""
    if is_little(len(parts), sum(size for _, size in parts)):
        tasks = [[part for part, _ in parts]] if parts else []
        return [_done(work(msgspec.json.encode(task))) for task in tasks]
    tasks = list(_packed(parts))
    frame = open_session().createDataFrame([(bytearray(msgspec.json.encode(task)),) for task in tasks], "task binary")
    done = frame.repartition(len(tasks)).mapInArrow(workers.on_tasks(work), from_arrow_schema(workers.DONE))
    return [_done(bytes(row["done"])) for row in done.collect()]


def _packed(parts: Iterable[Part]) -> Iterator[list[Any]]:
    task: list[Any] = []
    filled = 0
    for part, size in parts:
        if task and filled + size > _TASK_BYTES:
            yield task
            task, filled = [], 0
        task.append(part)
        filled += size
    if task:
        yield task


def _done(text: bytes) -> workers.Done:
    return msgspec.json.decode(text, type=workers.Done)
