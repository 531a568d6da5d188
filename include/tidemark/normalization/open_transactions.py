"""Open transactions: settles which transactions are open, and writes them to the ledger.

The events of an open transaction wait until its end lands. The events of a transaction that was undone wait for good.
Normalize settles the states of transactions here, and the ledger keeps them by batch. Compact leaves out the events of
open transactions, and takes in the events of transactions that closed since (``tables.withheld``,
``compaction.event_log``). Transactions that begin and end in one run of normalize are never written to the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, Or
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from tidemark.lake.data_files import Target, WrittenFile
from tidemark.lake.filters import above, among, at_least, at_most, equals, unset
from tidemark.lake.log_schemas import RowKind
from tidemark.ledger import tally
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.tally import Seen
from tidemark.ledger.transactions import MARKED, OPEN, UNDONE, WHOLE, States, marked, seen_of, states
from tidemark.normalization import tasks, transaction_tracker
from tidemark.normalization.tasks import Done, LogPart
from tidemark.normalization.transaction_tracker import TransactionsSeen
from tidemark.spark import spread

_A_DAY = 86_400_000_000
"""The time, in µs, by which the clock of an end marker may be behind the clock of its events."""


def settle(ledger: Ledger, known: States, results: Sequence[Done], log: ChangeLog, newest: int) -> None:
    """Write to the ledger which transactions the new batches opened, closed or undid.

    The rows replace those that an interrupted attempt left.

    Args:
        ledger: of the source.
        known: ``states`` as of the last batch that is committed.
        results: what the tasks of normalize wrote and saw.
        log: the change log, which is searched for a transaction that is not known before it counts as open.
        newest: last of the new batches.
    """
    by_task = [task.transactions for task in results if task.transactions is not None]
    written = [file for task in results for file in task.files]
    first_marked = any(task.marked for task in by_task) and not marked(known)
    if first_marked and len(by_task) > 1:  # a task that saw no marker has reported no transaction
        by_task = log.look(None, written)
    exact = len(by_task) <= 1 and all(task.exact for task in by_task)
    rows = [_marked(newest)] if first_marked else []
    fresh: dict[str, Seen] = {}
    for id_, seen in transaction_tracker.all_of(by_task).items():
        before = known.get(id_)
        if before is None:
            fresh |= {id_: seen} if seen.tables else {}
        elif before.state != WHOLE:
            rows.append(_row(newest, tally.merged(seen_of(before), seen)))
    wanted = [seen for seen in fresh.values() if not (seen.whole or seen.undone)]
    if wanted:
        # They are most likely open. But they may be copies of transactions that were whole before, or an end may have
        # landed before its events.
        for seen in transaction_tracker.all_of(log.look(wanted, [] if exact else written, ever=first_marked)).values():
            apart = msgspec.structs.replace(seen, tables={}, since=fresh[seen.id].since)
            fresh[seen.id] = tally.merged(fresh[seen.id], apart)
    rows += [_row(newest, seen) for seen in fresh.values() if not seen.whole]
    done = above("batch", log.done)
    if rows:
        ledger.replace(TransactionRow, rows, done)
    else:
        ledger.forget(TransactionRow, done)


def settle_again(ledger: Ledger, results: Sequence[Done], log: ChangeLog) -> None:
    """Write to the ledger which transactions of the whole change log are open or undone, in place of all earlier rows.

    Used after batches of the change log were replaced.

    Args:
        ledger: of the source.
        results: what the tasks that decoded the batches again wrote and saw.
        log: the change log with the new batches.
    """
    by_task = [task.transactions for task in results if task.transactions is not None]
    if not (marked(states(ledger, log.done)) or any(task.marked for task in by_task)):
        return
    everywhere = transaction_tracker.all_of(log.look_everywhere()).values()
    rows = [_marked(log.done), *(_row(log.done, seen) for seen in everywhere if not seen.whole)]
    ledger.replace(TransactionRow, rows, above("batch", 0))


def _marked(batch: int) -> TransactionRow:
    """Return the row for the fact that the source is known to send markers from a batch on."""
    return TransactionRow(batch=batch, id=None, state=MARKED, since=batch, events=0, seen="")


def _row(batch: int, seen: Seen) -> TransactionRow:
    state = UNDONE if seen.undone else WHOLE if seen.whole else OPEN
    events = sum(count for count, _ in seen.tables.values())
    text = msgspec.json.encode(seen).decode()
    return TransactionRow(batch=batch, id=seen.id, state=state, since=seen.since, events=events, seen=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLog:
    """The change log, as a place to look for transactions."""

    table: Table
    target: Target
    done: int
    """Last batch that is committed to it."""

    def look(
        self, wanted: Sequence[Seen] | None, written: Iterable[WrittenFile], *, ever: bool = False
    ) -> list[TransactionsSeen]:
        """Return what each task that read the files saw of transactions.

        Args:
            wanted: the transactions to look for, in committed files too. None: look for all transactions, but only in
                ``written``.
            written: files of this run, which are not committed yet.
            ever: whether to read committed files of any time, not only of the times of the transactions.
        """
        parts = [
            self._part(file.location, file.partition, file.size) for file in written if file.partition[1] in _KINDS
        ]
        if wanted is not None and self.done:
            parts += self._committed(wanted, ever=ever)
        return self._look(parts, None if wanted is None else frozenset(seen.id for seen in wanted))

    def look_everywhere(self) -> list[TransactionsSeen]:
        """Return what each task saw of all transactions in the whole change log."""
        planned = self.table.scan(row_filter=among("kind", _KINDS)).plan_files()
        parts = [
            self._part(each.file.file_path, [each.file.partition[n] for n in range(3)], each.file.file_size_in_bytes)
            for each in planned
        ]
        return self._look(parts, None)

    def _look(self, parts: Sequence[spread.Part], only: frozenset[str] | None) -> list[TransactionsSeen]:
        results = spread.run(parts, partial(tasks.look, only=only, log=self.target), Done)
        return [task.transactions for task in results if task.transactions is not None]

    def _part(self, location: str, partition: Sequence[Any], size: int) -> spread.Part:
        batch, kind, table = partition
        path = PyArrowFileIO.parse_location(location, self.table.io.properties)[2]
        return LogPart(path=path, batch=batch, table=table if kind == RowKind.CHANGE else None), size

    def _committed(self, wanted: Sequence[Seen], *, ever: bool) -> Iterator[spread.Part]:
        """Yield the committed files that may hold events or ends of the transactions.

        A transaction that was whole before was whole within one run, or else the ledger would know it. So a batch that
        has one of its events has all of them. An end that landed before its events is in a batch without them, and is
        not much older than they are.
        """
        firsts, lasts = [seen.first for seen in wanted], [seen.last for seen in wanted]
        first = None if ever or None in firsts else min(at for at in firsts if at is not None)
        last = None if ever or None in lasts else max(at for at in lasts if at is not None)
        batches = {RowKind.CHANGE.value: self._batches(RowKind.CHANGE, _between(first, last))}
        ends = self._batches(RowKind.CONTROL, _between(first and first - _A_DAY, None))
        batches[RowKind.CONTROL.value] = ends | batches[RowKind.CHANGE.value]
        for kind, numbers in batches.items():
            for planned in self.table.scan(row_filter=equals("kind", kind)).plan_files():
                partition = [planned.file.partition[place] for place in range(3)]
                if partition[0] in numbers:
                    yield self._part(planned.file.file_path, partition, planned.file.file_size_in_bytes)

    def _batches(self, kind: RowKind, when: BooleanExpression) -> set[int]:
        """Return the batches that may have a row of a kind at a time."""
        planned = self.table.scan(row_filter=And(equals("kind", kind.value), when)).plan_files()
        return {int(each.file.partition[0]) for each in planned}


_KINDS = (RowKind.CHANGE.value, RowKind.CONTROL.value)
"""Kinds of rows that concern transactions."""


def _between(first: int | None, last: int | None) -> BooleanExpression:
    """Return the condition that a row was committed between two times, or at an unknown time.

    The times are in epoch µs; None is no bound.
    """
    bounds: BooleanExpression = AlwaysTrue()
    if first is not None:
        bounds = And(bounds, at_least("committed_at", first))
    if last is not None:
        bounds = And(bounds, at_most("committed_at", last))
    return bounds if isinstance(bounds, AlwaysTrue) else Or(unset("committed_at"), bounds)
