"""Source transactions, as far as events and markers tell of them: which are whole, which are open, which were undone.

Runs where messages are decoded. It keeps the few columns of the change log that tell of transactions and settles, a
column at a time, which transactions are whole; only the others become Python objects. Imports neither Spark nor
Iceberg.

A transaction is *marked* where its end can be known: its events have a last-event flag, or the source sends markers
that name their transaction. Of the others nothing is tracked, so that nothing waits for an end that never comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.events import OLD_HALF, Operation
from tidemark.ledger.tally import Seen, merge_ranges, merged

BEGINS: Final = frozenset({"transaction_begin"})

ENDS: Final = frozenset({"transaction_end", "xa_commit"})

UNDOES: Final = frozenset({"transaction_rollback", "transaction_abort", "xa_rollback"})

MARKERS: Final = frozenset({"transaction_begin", "transaction_end", "transaction_rollback", "transaction_abort"})
"""Control events that show, by naming their transaction, that the source marks its transactions. An XA commit does not:
it may name a transaction of its own, as a MySQL GTID does."""

READ: Final = (
    "operation", "position", "committed_at", "transaction_id", "transaction_number", "transaction_last",
)  # fmt: skip
"""Columns of the change log that are looked at."""

_SETTLE_ROWS: Final = 500_000
"""Rows kept until those of whole transactions are dropped: some tens of megabytes."""


class Told(msgspec.Struct, kw_only=True):
    """What one task saw of transactions."""

    marked: bool = False
    """Whether a marker named its transaction."""
    seen: list[Seen] = []
    """Marked transactions that were not whole, and those undone."""
    exact: bool = True
    """False: a transaction may be listed though the task saw it whole, as copies came after it."""


class Tracker:
    """Collects what rows of the change log tell of transactions."""

    def __init__(self, *, marked: bool, keep: frozenset[str] = frozenset(), only: frozenset[str] | None = None) -> None:
        """Begin.

        Args:
            marked: whether the source is known to send markers.
            keep: ids to tell of though they look whole here.
            only: ids to look at and to tell of, whole or not; None: all.
        """
        self._marked = marked
        self._told = Told()
        self._only = None if only is None else pa.array(sorted(only), pa.string())
        self._keep = pa.array(sorted(keep if only is None else only), pa.string())
        self._rows: list[pa.RecordBatch] = []
        self._kept = 0
        self._size = 0

    def changes(self, batch: int, table: str, rows: pa.RecordBatch) -> None:
        """Take note of change events of one batch and table: ``READ``, in any order of columns."""
        ids = rows.column("transaction_id")
        if ids.null_count == len(ids):
            return
        number, last = rows.column("transaction_number"), rows.column("transaction_last")
        if number.null_count < len(number):
            # The old half of an update says nothing of the new one, which has the same number.
            update = pc.equal(rows.column("operation"), "UPDATE")
            half = pc.and_(update, pc.ends_with(rows.column("position"), f".{OLD_HALF}"))
            number = pc.if_else(half, pa.scalar(None, pa.int64()), number)
        count = pc.if_else(last, number, pa.scalar(None, pa.int64()))
        truncate = pc.equal(rows.column("operation"), Operation.TRUNCATE.value)
        self._add(
            batch,
            table,
            id=ids,
            number=number,
            count=count,
            ended=pc.fill_null(last, pa.scalar(value=False)),
            flagged=last.is_valid(),
            at=rows.column("committed_at").cast(pa.int64()),
            truncate=truncate,
        )

    def controls(self, batch: int, rows: pa.RecordBatch) -> None:
        """Take note of control events of one batch: ``READ``, in any order of columns."""
        ids, kinds = rows.column("transaction_id"), rows.column("operation")
        if ids.null_count == len(ids):
            return
        named = rows.filter(pc.and_(ids.is_valid(), pc.is_in(kinds, pa.array([*BEGINS, *ENDS, *UNDOES], pa.string()))))
        if not named.num_rows:
            return
        kinds = named.column("operation")
        if pc.any(pc.is_in(kinds, pa.array(sorted(MARKERS), pa.string()))).as_py():
            self._told.marked = True
        ended = pc.is_in(kinds, pa.array(sorted(ENDS), pa.string()))
        undone = pc.is_in(kinds, pa.array(sorted(UNDOES), pa.string()))
        count = pc.if_else(ended, named.column("transaction_number"), pa.scalar(None, pa.int64()))
        self._add(batch, "", id=named.column("transaction_id"), count=count, ended=ended, undone=undone)

    def _add(self, batch: int, table: str, **told: pa.Array) -> None:
        """Keep rows of ``_ROWS``; what is not told is null, or false."""
        length = len(told["id"])
        constants = {
            "batch": batch,
            "table": table,
            "ended": False,
            "undone": False,
            "flagged": False,
            "truncate": False,
        }
        rows = pa.RecordBatch.from_arrays(
            [
                told[field.name]
                if field.name in told
                else pa.repeat(pa.scalar(constants.get(field.name), field.type), length)
                for field in _ROWS
            ],
            schema=_ROWS,
        )
        ids = rows.column("id")
        if self._only is not None:
            rows = rows.filter(pc.is_in(ids, self._only))
        elif ids.null_count:
            rows = rows.filter(ids.is_valid())
        self._rows.append(rows)
        self._size += rows.num_rows
        if self._size > self._kept + _SETTLE_ROWS:
            rest = self._unsettled()
            self._rows, self._kept, self._size = rest.to_batches(), rest.num_rows, rest.num_rows
            self._told.exact = False

    def _unsettled(self) -> pa.Table:
        """The rows of transactions that are not whole by what is known so far."""
        rows = pa.Table.from_batches(self._rows).combine_chunks()
        rest = _not_whole(rows, self._keep, ("number", "count"))
        # Only where an event came more than once do its copies have to be told apart, which costs more.
        return _not_whole(rest, self._keep, ("number", "count_distinct", _VALID)) if rest.num_rows else rest

    def close(self) -> Told:
        """What was seen."""
        if self._rows:
            rest = self._unsettled()
            if not (self._marked or self._told.marked):
                flagged = rest.column("id").filter(rest.column("flagged"))
                rest = rest.filter(pc.is_in(rest.column("id"), flagged)) if len(flagged) else rest.slice(0, 0)
            self._told.seen = _seen(rest)
        return self._told


_ROWS: Final = pa.schema([
    ("batch", pa.int32()), ("table", pa.string()), ("id", pa.string()), ("number", pa.int64()), ("count", pa.int64()),
    ("ended", pa.bool_()), ("undone", pa.bool_()), ("flagged", pa.bool_()), ("at", pa.int64()),
    ("truncate", pa.bool_()),
])  # fmt: skip

_VALID: Final = pc.CountOptions(mode="only_valid")


def _not_whole(
    rows: pa.Table, keep: pa.Array, counting: tuple[str, str] | tuple[str, str, pc.CountOptions]
) -> pa.Table:
    """Rows without those of transactions whose events, counted in one way, are all there."""
    encoded = pc.dictionary_encode(rows.column("id")).combine_chunks()
    ids = encoded.indices
    numbered = rows.drop_columns(["id"]).append_column("id", ids).group_by("id", use_threads=False)
    totals = numbered.aggregate(
        [("number", "min"), ("number", "max"), counting, ("count", "max"), ("ended", "any"), ("undone", "any")]
    )
    low, high, count = (totals.column(name) for name in ("number_min", "number_max", "count_max"))
    numbers = totals.column(f"number_{counting[1]}")
    solid = pc.and_(pc.equal(pc.add(pc.subtract(high, low), 1), numbers), pc.equal(low, 1))
    covers = pc.fill_null(pc.and_(solid, pc.greater_equal(high, count)), pa.scalar(value=False))
    whole = pc.or_(pc.or_(count.is_null(), pc.equal(numbers, 0)), covers)
    whole = pc.and_(whole, pc.and_(totals.column("ended_any"), pc.invert(totals.column("undone_any"))))
    by_id = totals.column("id").combine_chunks()
    kept = pc.is_in(encoded.dictionary.take(by_id), keep)
    return rows.filter(pc.is_in(ids, by_id.filter(pc.or_(pc.invert(whole).combine_chunks(), kept))))


def _seen(rows: pa.Table) -> list[Seen]:
    """One entry a transaction."""
    parts = rows.group_by(["id", "table"], use_threads=False).aggregate([
        ("batch", "min"), ("number", "distinct", _VALID), ("count", "max"), ("ended", "any"), ("undone", "any"),
        ("flagged", "any"), ("at", "min"), ("at", "max"), ("truncate", "sum"), ([], "count_all"),
    ])  # fmt: skip
    found: dict[str, Seen] = {}
    for part in parts.to_pylist():
        seen = Seen(
            id=part["id"],
            since=part["batch_min"],
            numbers=merge_ranges((number, number) for number in part["number_distinct"]),
            count=part["count_max"],
            ended=part["ended_any"],
            undone=part["undone_any"],
            flagged=part["flagged_any"],
            tables={part["table"]: (part["count_all"], part["truncate_sum"])} if part["table"] else {},
            first=part["at_min"],
            last=part["at_max"],
        )
        found[seen.id] = merged(found[seen.id], seen) if seen.id in found else seen
    return list(found.values())


def all_of(told: Sequence[Told]) -> dict[str, Seen]:
    """What several tasks saw, by id."""
    found: dict[str, Seen] = {}
    for task in told:
        for seen in task.seen:
            found[seen.id] = merged(found[seen.id], seen) if seen.id in found else seen
    return found
