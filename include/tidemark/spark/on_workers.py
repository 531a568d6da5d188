"""Running a Python function over serialized tasks on Spark's workers.

Workers import this module, so it imports little.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

DONE = pa.schema([("done", pa.binary())])
"""One row for each task: its result as JSON."""


def on_tasks(tasks: Sequence[bytes], work: Callable[[bytes], bytes]) -> Batches:
    """Return a function for ``mapInArrow`` that does the task of each number.

    It takes batches with a column ``id``, the numbers of tasks, and yields batches of ``DONE``.
    """
    return partial(_on_tasks, tasks=tasks, work=work)


def rows_of(tasks: Sequence[bytes], work: Callable[[bytes], Iterable[pa.RecordBatch]]) -> Batches:
    """Return a function for ``mapInArrow`` that yields the rows which the task of each number makes.

    It takes batches with a column ``id``, the numbers of tasks.
    """
    return partial(_rows_of, tasks=tasks, work=work)


def _rows_of(
    batches: Iterable[pa.RecordBatch], *, tasks: Sequence[bytes], work: Callable[[bytes], Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    gc.freeze()
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from work(tasks[number])


def _on_tasks(
    batches: Iterable[pa.RecordBatch], *, tasks: Sequence[bytes], work: Callable[[bytes], bytes]
) -> Iterator[pa.RecordBatch]:
    # Spark collects garbage after each task. Without this, the collector would go through all imported modules.
    gc.freeze()
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield pa.RecordBatch.from_pylist([{"done": work(tasks[number])}], schema=DONE)
