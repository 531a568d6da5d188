"""Run a Python function over serialized tasks on Spark's workers. Light: workers import it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

DONE = pa.schema([("done", pa.binary())])
"""One row a task: ``Done`` as JSON."""


def on_tasks(tasks: Sequence[bytes], work: Callable[[bytes], bytes]) -> Batches:
    """Batches with a column ``id`` in, batches of ``DONE`` out: ``work`` for the task of each number."""
    return partial(_on_tasks, tasks=tasks, work=work)


def _on_tasks(
    batches: Iterable[pa.RecordBatch], *, tasks: Sequence[bytes], work: Callable[[bytes], bytes]
) -> Iterator[pa.RecordBatch]:
    # Spark collects garbage after each task, and would look through all that was imported.
    gc.freeze()
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield pa.RecordBatch.from_pylist([{"done": work(tasks[number])}], schema=DONE)
