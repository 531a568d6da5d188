"""What the events of one table span in a batch: the newest position, the times, and loaded rows that have no place."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.events import ChangeEvent, Operation
from tidemark.ledger.tally import Span


def of_rows(rows: pa.RecordBatch) -> Span:
    """Return the span of change events of one table, from the columns ``position`` and ``committed_at``."""
    times = pc.min_max(rows.column("committed_at").cast(pa.int64()))
    newest = pc.max(rows.column("position")).as_py()
    return Span(newest=newest or "", first=times["min"].as_py(), last=times["max"].as_py())


def of_loaded(events: Iterable[ChangeEvent]) -> Span:
    """Return the span of the loaded rows among events that neither a place in the log nor a known load ranks."""
    span = Span()
    for event in events:
        # The first part of a position is even where the row has no place in the log (`events.loaded`).
        if event.operation is Operation.SNAPSHOT and event.load is None and int(event.position[0]) % 2 == 0:
            at = event.captured_at if event.committed_at is None else event.committed_at
            span.add(Span(unplaced=1, unplaced_last=at))
    return span
