"""Source transactions, as events and markers show them: which are whole, which are open, which were undone.

This runs where messages are decoded, and imports neither Spark nor Iceberg. It keeps the few columns of the change log
that concern transactions, and finds the whole transactions with Arrow functions on these columns. Only the other
transactions become Python objects.

A transaction is *marked* if its end can be known: its events have a last-event flag, or the source sends markers that
name their transaction. Other transactions are not tracked, so no event waits for an end that never comes.

An end may count events that never land in this source. Whether a transaction is whole without them is decided by
``ledger.completeness``, from what the task knows of the source's tables. A task that knows too few of them is found out
by ``open_transactions``, which looks at its rows again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.events import Operation
from tidemark.ledger import completeness
from tidemark.ledger.completeness import LandedTables, Times
from tidemark.ledger.tally import Seen, larger_counts, merge_ranges, merged
from tidemark.positions import OLD_HALF

BEGINS: Final = frozenset({"transaction_begin"})
ENDS: Final = frozenset({"transaction_end", "xa_commit"})
UNDOES: Final = frozenset({"transaction_rollback", "transaction_abort", "xa_rollback"})

MARKERS: Final = frozenset({"transaction_begin", "transaction_end", "transaction_rollback", "transaction_abort"})
"""Control events that show that the source marks its transactions, if they name a transaction. An XA commit shows
nothing: it may name a transaction of its own, as a MySQL GTID does."""

READ: Final = (
    "operation", "position", "committed_at", "transaction_id", "transaction_number", "transaction_last",
)  # fmt: skip
"""The columns of the change log that a tracker reads of change events."""

READ_OF_CONTROLS: Final = (*READ, "detail")

COUNTED: Final = frozenset({"message", "drop_column"})
"""Control events that the source counts among the events of their transaction, and that have a number there."""

_SETTLE_ROWS: Final = 500_000
"""Rows that a tracker collects before it drops the rows of whole transactions: some tens of megabytes."""


class TransactionsSeen(msgspec.Struct, kw_only=True):
    """What one task saw of transactions."""

    marked: bool = False
    """Whether a marker named its transaction."""
    seen: list[Seen] = []
    """Marked transactions that the task did not see whole, and transactions that were undone."""
    exact: bool = True
    """False: a transaction may be listed although the task saw it whole, because copies of its events came later."""
    tables: Times = {}
    """Commit time of the earliest event of each table."""
    elsewhere: Times = {}
    """Collections whose events whole transactions did not wait for, and the newest time of such a transaction."""


class Tracker:
    """Collects what rows of the change log show of transactions."""

    def __init__(
        self,
        *,
        marked: bool,
        keep: frozenset[str] = frozenset(),
        only: frozenset[str] | None = None,
        landed: LandedTables | None = None,
    ) -> None:
        """Begin without rows.

        Args:
            marked: whether the source is known to send markers.
            keep: ids of transactions to report even if they look whole here.
            only: ids of the only transactions to look at; they are reported, whole or not. None: look at all.
            landed: what is known of the source's tables.
        """
        self._marked = marked
        self._landed = landed or LandedTables()
        self._result = TransactionsSeen()
        self._only = None if only is None else pa.array(sorted(only), pa.string())
        self._keep = pa.array(sorted(keep if only is None else only), pa.string())
        self._rows: list[pa.RecordBatch] = []
        self._kept = 0
        self._size = 0

    def changes(self, batch: int, table: str, rows: pa.RecordBatch, *, erased: bool = False) -> None:
        """Take note of change events of one batch and table.

        Args:
            batch: of the events.
            table: as source files name it.
            rows: have the columns ``READ``, in any order.
            erased: whether an erasure left only their places. They count for whether a transaction is whole, and not
                as events that the table can take in.
        """
        ids, at = rows.column("transaction_id"), rows.column("committed_at").cast(pa.int64())
        earliest = None if at.null_count else pc.min(at).as_py()
        self._result.tables = completeness.earliest([self._result.tables, {table: earliest}])
        if ids.null_count == len(ids):
            return
        number, last = rows.column("transaction_number"), rows.column("transaction_last")
        if number.null_count < len(number):
            # The old half of an update has the number of the new half, and must not count as the new half.
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
            at=at,
            truncate=truncate,
            erased=pa.repeat(pa.scalar(erased), len(ids)),
        )

    def controls(self, batch: int, rows: pa.RecordBatch) -> None:
        """Take note of control events of one batch. ``rows`` have the columns ``READ_OF_CONTROLS``, in any order."""
        ids, kinds = rows.column("transaction_id"), rows.column("operation")
        if ids.null_count == len(ids):
            return
        known = pa.array([*BEGINS, *ENDS, *UNDOES, *COUNTED], pa.string())
        named = rows.filter(pc.and_(ids.is_valid(), pc.is_in(kinds, known)))
        if not named.num_rows:
            return
        kinds = named.column("operation")
        if pc.any(pc.is_in(kinds, pa.array(sorted(MARKERS), pa.string()))).as_py():
            self._result.marked = True
        counted, last = pc.is_in(kinds, pa.array(sorted(COUNTED), pa.string())), named.column("transaction_last")
        is_last = pc.and_(counted, pc.fill_null(last, pa.scalar(value=False)))
        ended = pc.or_(pc.is_in(kinds, pa.array(sorted(ENDS), pa.string())), is_last)
        numbers, nothing = named.column("transaction_number"), pa.scalar(None, pa.int64())
        detail = named.column("detail")
        by_collection = pc.and_(ended, pc.fill_null(pc.starts_with(detail, "{"), pa.scalar(value=False)))
        self._add(
            batch,
            "",
            id=named.column("transaction_id"),
            number=pc.if_else(counted, numbers, nothing),
            count=pc.if_else(ended, numbers, nothing),
            counts=pc.if_else(by_collection, detail, pa.scalar(None, pa.string())),
            ended=ended,
            undone=pc.is_in(kinds, pa.array(sorted(UNDOES), pa.string())),
            flagged=pc.and_(counted, last.is_valid()),
        )

    def _add(self, batch: int, table: str, **columns: pa.Array) -> None:
        """Keep rows of ``_ROWS``, given by column. In a column that is not given, every value is false or null."""
        length = len(columns["id"])
        flags = ("ended", "undone", "flagged", "truncate", "erased")
        constants = {"batch": batch, "table": table, **dict.fromkeys(flags, False)}
        rows = pa.RecordBatch.from_arrays(
            [
                columns[field.name]
                if field.name in columns
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
            self._result.exact = False

    def _unsettled(self) -> pa.Table:
        """Return the rows of transactions that are not whole by what was seen so far."""
        return _not_whole(pa.Table.from_batches(self._rows).combine_chunks(), self._keep)

    def close(self) -> TransactionsSeen:
        """Return what was seen."""
        if self._rows:
            rest = self._unsettled()
            if not (self._marked or self._result.marked):
                flagged = rest.column("id").filter(rest.column("flagged"))
                rest = rest.filter(pc.is_in(rest.column("id"), flagged)) if len(flagged) else rest.slice(0, 0)
            self._result.seen = self._without_whole(_seen(rest))
        return self._result

    def _without_whole(self, found: Iterable[Seen]) -> list[Seen]:
        """Return the transactions that are not whole, and those to keep, whole or not."""
        scope, keep = self._landed.scope(self._result.tables), set(self._keep.to_pylist())
        rest, elsewhere = [], []
        for seen in found:
            if seen.id in keep or seen.counts is None or not completeness.is_whole(seen, scope):
                rest.append(seen)
            elif seen.tables:
                elsewhere.append(dict.fromkeys(completeness.not_awaited(seen, scope), seen.last))
        self._result.elsewhere = completeness.newest(elsewhere)
        return rest


_ROWS: Final = pa.schema([
    ("batch", pa.int32()), ("table", pa.string()), ("id", pa.string()), ("number", pa.int64()), ("count", pa.int64()),
    ("ended", pa.bool_()), ("undone", pa.bool_()), ("flagged", pa.bool_()), ("at", pa.int64()),
    ("truncate", pa.bool_()), ("erased", pa.bool_()), ("counts", pa.string()),
])  # fmt: skip

_VALID: Final = pc.CountOptions(mode="only_valid")


def _not_whole(rows: pa.Table, keep: pa.Array) -> pa.Table:
    """Return the rows of transactions that are not whole, and of the transactions to ``keep``.

    Events are counted by their distinct numbers: a copy of one event does not stand for another that is missing.
    """
    encoded = pc.dictionary_encode(rows.column("id")).combine_chunks()
    ids = encoded.indices
    numbered = rows.drop_columns(["id"]).append_column("id", ids).group_by("id", use_threads=False)
    totals = numbered.aggregate(
        [
            ("number", "min"),
            ("number", "max"),
            ("number", "count_distinct", _VALID),
            ("count", "max"),
            ("ended", "any"),
            ("undone", "any"),
        ]
    )
    low, high, count = (totals.column(name) for name in ("number_min", "number_max", "count_max"))
    numbers = totals.column("number_count_distinct")
    solid = pc.and_(pc.equal(pc.add(pc.subtract(high, low), 1), numbers), pc.equal(low, 1))
    covers = pc.fill_null(pc.and_(solid, pc.greater_equal(high, count)), pa.scalar(value=False))
    whole = pc.or_(pc.or_(count.is_null(), pc.equal(numbers, 0)), covers)
    whole = pc.and_(whole, pc.and_(totals.column("ended_any"), pc.invert(totals.column("undone_any"))))
    by_id = totals.column("id").combine_chunks()
    kept = pc.is_in(encoded.dictionary.take(by_id), keep)
    return rows.filter(pc.is_in(ids, by_id.filter(pc.or_(pc.invert(whole).combine_chunks(), kept))))


_counts = msgspec.json.Decoder(dict[str, int])


def _seen(rows: pa.Table) -> list[Seen]:
    """Return one entry for each transaction."""
    parts = rows.group_by(["id", "table"], use_threads=False).aggregate([
        ("batch", "min"), ("number", "distinct", _VALID), ("count", "max"), ("ended", "any"), ("undone", "any"),
        ("flagged", "any"), ("at", "min"), ("at", "max"), ("truncate", "sum"), ("erased", "sum"), ([], "count_all"),
        ("counts", "distinct", _VALID),
    ])  # fmt: skip
    found: dict[str, Seen] = {}
    for part in parts.to_pylist():
        numbers = merge_ranges((number, number) for number in part["number_distinct"])
        counts: dict[str, int] | None = None
        for text in part["counts_distinct"]:
            counts = larger_counts(counts, _counts.decode(text))
        seen = Seen(
            id=part["id"],
            since=part["batch_min"],
            numbers=numbers,
            by_table={part["table"]: numbers} if numbers else {},
            counts=counts,
            count=part["count_max"],
            ended=part["ended_any"],
            undone=part["undone_any"],
            flagged=part["flagged_any"],
            tables={part["table"]: (part["count_all"] - part["erased_sum"], part["truncate_sum"])}
            if part["table"]
            else {},
            first=part["at_min"],
            last=part["at_max"],
        )
        found[seen.id] = merged(found[seen.id], seen) if seen.id in found else seen
    return list(found.values())


def all_of(tasks: Sequence[TransactionsSeen]) -> dict[str, Seen]:
    """Return what several tasks saw, merged, by the id of the transaction."""
    found: dict[str, Seen] = {}
    for task in tasks:
        for seen in task.seen:
            found[seen.id] = merged(found[seen.id], seen) if seen.id in found else seen
    return found
