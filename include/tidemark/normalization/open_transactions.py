"""Held events: those of transactions that are open, kept back until the end lands; and of those undone, for good.

Normalize settles which transactions are open (``settle``), the ledger keeps it by batch, and compact leaves out their
events and takes in those of transactions that closed (``withheld``, ``taken``). Transactions that begin and end in one
run of normalize are never written down.
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
from tidemark.spark import spread

_A_DAY = 86_400_000_000
"""By so many µs the clock of an end marker may be behind that of its events."""


def settle(ledger: Ledger, known: States, did: Sequence[Done], log: ChangeLog, newest: int) -> None:
    """Write down which transactions the new batches opened, closed or undid, in place of what an attempt left.

    Args:
        ledger: of the source.
        known: ``states`` as of the batch that is done.
        did: what the tasks of normalize wrote and saw.
        log: where a transaction that is not known is looked for before it counts as open.
        newest: last of the new batches.
    """
    told = [task.transactions for task in did if task.transactions is not None]
    written = [file for task in did for file in task.files]
    marks = any(task.marked for task in told) and not marked(known)
    if marks and len(told) > 1:  # a task that saw no marker has told of none
        told = log.look(None, written)
    exact = len(told) <= 1 and all(task.exact for task in told)
    rows = [_marked(newest)] if marks else []
    fresh: dict[str, Seen] = {}
    for id_, seen in transaction_tracker.all_of(told).items():
        before = known.get(id_)
        if before is None:
            fresh |= {id_: seen} if seen.tables else {}
        elif before.state != WHOLE:
            rows.append(_row(newest, tally.merged(seen_of(before), seen)))
    asked = [seen for seen in fresh.values() if not (seen.whole or seen.undone)]
    if asked:
        # Most likely open; but it may be a copy of what was whole before, or an end may have come ahead of its events.
        for seen in transaction_tracker.all_of(log.look(asked, [] if exact else written, ever=marks)).values():
            apart = msgspec.structs.replace(seen, tables={}, since=fresh[seen.id].since)
            fresh[seen.id] = tally.merged(fresh[seen.id], apart)
    rows += [_row(newest, seen) for seen in fresh.values() if not seen.whole]
    done = above("batch", log.done)
    if rows:
        ledger.replace(TransactionRow, rows, done)
    else:
        ledger.forget(TransactionRow, done)


def settle_again(ledger: Ledger, did: Sequence[Done], log: ChangeLog) -> None:
    """Write down anew which transactions are open or undone, from the whole change log, after batches were replaced."""
    told = [task.transactions for task in did if task.transactions is not None]
    if not (marked(states(ledger, log.done)) or any(task.marked for task in told)):
        return
    everywhere = transaction_tracker.all_of(log.look_everywhere()).values()
    rows = [_marked(log.done), *(_row(log.done, seen) for seen in everywhere if not seen.whole)]
    ledger.replace(TransactionRow, rows, above("batch", 0))


def _marked(batch: int) -> TransactionRow:
    """Return the row that says that the source is known to send markers from a batch on."""
    return TransactionRow(batch=batch, id=None, state=MARKED, since=batch, events=0, seen="")


def _row(batch: int, seen: Seen) -> TransactionRow:
    state = UNDONE if seen.undone else WHOLE if seen.whole else OPEN
    events = sum(count for count, _ in seen.tables.values())
    text = msgspec.json.encode(seen).decode()
    return TransactionRow(batch=batch, id=seen.id, state=state, since=seen.since, events=events, seen=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLog:
    """The change log, for looking up transactions in it."""

    table: Table
    target: Target
    done: int
    """Last batch that is committed to it."""

    def look(
        self, asked: Sequence[Seen] | None, written: Iterable[WrittenFile], *, ever: bool = False
    ) -> list[transaction_tracker.Told]:
        """What files tell of transactions (None: of all).

        Args:
            asked: transactions to look for in all that is committed as well.
            written: files of this run, not committed yet.
            ever: whether to look through all times, not only through those that the transactions tell.
        """
        parts = [
            self._part(file.location, file.partition, file.size) for file in written if file.partition[1] in _KINDS
        ]
        if asked is not None and self.done:
            parts += self._committed(asked, ever=ever)
        only = None if asked is None else frozenset(seen.id for seen in asked)
        did = spread.run(parts, partial(tasks.look, only=only, log=self.target), Done)
        return [task.transactions for task in did if task.transactions is not None]

    def look_everywhere(self) -> list[transaction_tracker.Told]:
        """What the whole change log tells of all transactions."""
        planned = self.table.scan(row_filter=among("kind", _KINDS)).plan_files()
        parts = [
            self._part(each.file.file_path, [each.file.partition[n] for n in range(3)], each.file.file_size_in_bytes)
            for each in planned
        ]
        did = spread.run(parts, partial(tasks.look, only=None, log=self.target), Done)
        return [task.transactions for task in did if task.transactions is not None]

    def _part(self, location: str, partition: Sequence[Any], size: int) -> spread.Part:
        batch, kind, table = partition
        told = table if kind == RowKind.CHANGE else None
        path = PyArrowFileIO.parse_location(location, self.table.io.properties)[2]
        return LogPart(path=path, batch=batch, table=told), size

    def _committed(self, asked: Sequence[Seen], *, ever: bool) -> Iterator[spread.Part]:
        """Files that may tell of the transactions.

        One that was whole before was so within one run, as else the ledger knew it: the batch that has any of its
        events has them all. An end that came before its events stands alone, and is not much older than they are.
        """
        firsts, lasts = [seen.first for seen in asked], [seen.last for seen in asked]
        first = None if ever or None in firsts else min(at for at in firsts if at is not None)
        last = None if ever or None in lasts else max(at for at in lasts if at is not None)
        batches = {RowKind.CHANGE.value: self._batches(RowKind.CHANGE, _between(first, last))}
        ends = self._batches(RowKind.CONTROL, _between(first and first - _A_DAY, None))
        batches[RowKind.CONTROL.value] = ends | batches[RowKind.CHANGE.value]
        for kind, wanted in batches.items():
            for planned in self.table.scan(row_filter=equals("kind", kind)).plan_files():
                partition = [planned.file.partition[place] for place in range(3)]
                if partition[0] in wanted:
                    yield self._part(planned.file.file_path, partition, planned.file.file_size_in_bytes)

    def _batches(self, kind: RowKind, when: BooleanExpression) -> set[int]:
        planned = self.table.scan(row_filter=And(equals("kind", kind.value), when)).plan_files()
        return {int(each.file.partition[0]) for each in planned}


_KINDS = (RowKind.CHANGE.value, RowKind.CONTROL.value)
"""What tells of transactions."""


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
