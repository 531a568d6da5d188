"""What the events of one table span in a batch: positions, times, and loaded rows that have no place; their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.dumps.file_names import series_of
from tidemark.events import ChangeEvent, Operation
from tidemark.ledger.tally import SEVERAL, Span


def delivered(rows: pa.RecordBatch, events: Sequence[ChangeEvent]) -> pa.RecordBatch:
    """Return what ``delivery_order`` follows of one table's events: the columns ``position`` and ``committed_at``.

    If an event carries the last commit before its own, there are three columns more: who is the ``reader`` of the log;
    ``commit``, the place of that commit; ``change``, the place of the change. Places are encoded as positions begin.
    All three are null for events without such a commit.

    Args:
        rows: of the change log.
        events: of the rows.
    """
    followed = rows.select(["position", "committed_at"])
    commits = [event.after_commit for event in events]
    if commits.count(None) == len(commits):
        return followed
    numbers = pa.array([commit and commit[1] for commit in commits], pa.int64()).cast(pa.string())
    parts = pc.split_pattern(followed.column("position"), ".", max_splits=2)
    lengths = pc.utf8_lpad(pc.utf8_length(numbers).cast(pa.string()), 2, padding="0")
    log, place = pc.list_element(parts, 0), pc.list_element(parts, 1)
    columns = {
        "reader": pa.array([commit and commit[0] for commit in commits], pa.string()),
        "commit": pc.binary_join_element_wise(log, pc.binary_join_element_wise(lengths, numbers, ""), "."),
        "change": pc.binary_join_element_wise(log, pc.if_else(pc.is_valid(numbers), place, None), "."),
    }
    return pa.RecordBatch.from_arrays([*followed.columns, *columns.values()], [*followed.schema.names, *columns])


def of_rows(rows: pa.RecordBatch) -> Span:
    """Return the span of change events of one table (``delivered``)."""
    times = pc.min_max(rows.column("committed_at").cast(pa.int64()))
    places = pc.min_max(rows.column("position"))
    oldest, newest = (places[end].as_py() or "" for end in ("min", "max"))
    span = Span(newest=newest, oldest=oldest, first=times["min"].as_py(), last=times["max"].as_py())
    if "commit" in rows.schema.names:
        readers = pc.unique(rows.column("reader").drop_null()).to_pylist()
        span.commits_by = readers[0] if len(readers) == 1 else SEVERAL
        span.commits_from = pc.min(rows.column("commit")).as_py()
        span.changes_to = pc.max(rows.column("change")).as_py()
    return span


def newest_of_controls(rows: pa.RecordBatch) -> int | None:
    """Return the time of the newest of some control events, epoch µs: of its commit, or else of its capture."""
    times = pc.coalesce(rows.column("committed_at"), rows.column("captured_at"))
    found: int | None = pc.max(times.cast(pa.int64())).as_py()
    return found


def logs_of(messages: pa.RecordBatch) -> set[str]:
    """Return the orders that messages were dumped in: partitions of topics, and series of files."""
    in_files = pc.is_null(messages.column("offset"))
    found = {series_of(path) for path in pc.unique(messages.column("file").filter(in_files)).to_pylist()}
    records = messages.select(["topic", "partition"]).filter(pc.invert(in_files))
    partitions = pa.Table.from_batches([records]).group_by(["topic", "partition"]).aggregate([]).to_pylist()
    return found | {f"{each['topic'] or ''}/{each['partition'] or 0}" for each in partitions}


def of_loaded(events: Iterable[ChangeEvent]) -> Span:
    """Return the span of the loaded rows among events that neither a place in the log nor a known load ranks."""
    span = Span()
    for event in events:
        # The first part of a position is even where the row has no place in the log (`positions.loaded`).
        is_row = event.operation in {Operation.SNAPSHOT, Operation.INSERT}
        if is_row and event.load is None and int(event.position[0]) % 2 == 0:
            at = event.captured_at if event.committed_at is None else event.committed_at
            span.add(Span(unplaced=1, unplaced_last=at))
    return span
