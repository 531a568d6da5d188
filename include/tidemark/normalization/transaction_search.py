"""The change log, as a place to look for the parts of source transactions that earlier runs wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, Or
from pyiceberg.table import Table
from pyiceberg.types import TimestamptzType

from tidemark.lake.data_files import TableFolder, WrittenFile
from tidemark.lake.filters import among, at_least, at_most, equals, unset
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.stores import path_of
from tidemark.ledger import completeness
from tidemark.ledger.completeness import LandedTables, Times
from tidemark.ledger.tally import Seen
from tidemark.normalization import tasks, transaction_tracker
from tidemark.normalization.tasks import Done, LogPart
from tidemark.normalization.transaction_tracker import Tracker, TransactionsSeen
from tidemark.spark import spread

_A_DAY = 86_400_000_000
"""The time, in µs, by which the clock of an end marker may be behind the clock of its events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLog:
    """The change log, as a place to look for transactions."""

    table: Table
    target: TableFolder
    done: int
    """Last batch that is committed to it."""

    def look(
        self, wanted: Sequence[Seen], written: Iterable[WrittenFile], landed: LandedTables, *, ever: bool = False
    ) -> list[TransactionsSeen]:
        """Return what each task that read the files saw of some transactions.

        Args:
            wanted: the transactions to look for, in committed files too.
            written: files of this run, which are not committed yet.
            landed: what is known of the source's tables.
            ever: whether to read committed files of any time, not only of the times of the transactions.
        """
        parts = self._written(written)
        if self.done:
            parts += self._committed(wanted, ever=ever)
        return self._look(parts, landed, only=frozenset(seen.id for seen in wanted))

    def look_in(
        self, written: Iterable[WrittenFile], landed: LandedTables, unsettled: frozenset[str]
    ) -> list[TransactionsSeen]:
        """Return what each task saw of all transactions in files of this run, and all that it saw of ``unsettled``."""
        return self._look(self._written(written), landed, keep=unsettled)

    def look_everywhere(
        self,
        landed: LandedTables,
        written: Iterable[WrittenFile] = (),
        *,
        marked: bool = True,
        keep: frozenset[str] = frozenset(),
    ) -> list[TransactionsSeen]:
        """Return what tasks saw of all transactions in the whole change log, and in files of this run.

        A task that sees the end of a transaction without its events leaves it out as whole, and copies of events that
        come late look like events without an end. So the transactions that are not whole by this are looked for once
        more, by their ids: then each task reports all that it sees of them.

        Args:
            landed: what is known of the source's tables.
            written: files of this run, which are not committed yet.
            marked: whether the source sends markers; else only events with flags show transactions.
            keep: ids of transactions to report even if they are whole.
        """
        planned = self.table.scan(row_filter=among("kind", _KINDS)).plan_files()
        parts = [
            self._part(each.file.file_path, [each.file.partition[n] for n in range(3)], each.file.file_size_in_bytes)
            for each in planned
        ]
        parts += self._written(written)
        seen = self._look(parts, landed, marked=marked, keep=keep)
        if len(seen) <= 1 and all(task.exact for task in seen):
            return seen
        scope = landed.scope()
        found = transaction_tracker.all_of(seen)
        unsure = frozenset(id_ for id_, each in found.items() if not completeness.is_whole(each, scope))
        if not unsure:
            return seen
        for task in seen:
            task.seen = [each for each in task.seen if each.id not in unsure]
        return [*seen, *self._look(parts, landed, only=unsure)]

    def tables(self) -> Times:
        """Return the commit time of the earliest event of each table, by the statistics of the committed files."""
        column = self.table.schema().find_field("committed_at").field_id
        found: list[Times] = []
        for each in self.table.scan(row_filter=equals("kind", RowKind.CHANGE.value)).plan_files():
            file = each.file
            bound = (file.lower_bounds or {}).get(column)
            complete = (file.null_value_counts or {}).get(column) == 0
            at = int(from_bytes(TimestamptzType(), bound)) if complete and bound is not None else None
            found.append({str(file.partition[2]): at})
        return completeness.earliest(found)

    def _look(
        self,
        parts: Sequence[spread.Part],
        landed: LandedTables,
        *,
        marked: bool = True,
        only: frozenset[str] | None = None,
        keep: frozenset[str] = frozenset(),
    ) -> list[TransactionsSeen]:
        begin = partial(Tracker, marked=marked, keep=keep, only=only, landed=landed)
        results = spread.run(parts, partial(tasks.look, log=self.target, begin=begin), Done)
        return [task.transactions for task in results if task.transactions is not None]

    def _written(self, files: Iterable[WrittenFile]) -> list[spread.Part]:
        return [self._part(file.location, file.partition, file.size) for file in files if file.partition[1] in _KINDS]

    def _part(self, location: str, partition: Sequence[Any], size: int) -> spread.Part:
        batch, kind, table = partition
        path = path_of(self.table, location)
        table = None if kind == RowKind.CONTROL else table
        return LogPart(path=path, batch=batch, table=table, erased=kind == RowKind.ERASED), size

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
        batches[RowKind.ERASED.value] = self._batches(RowKind.ERASED, _between(first, last))
        for kind, numbers in batches.items():
            for planned in self.table.scan(row_filter=equals("kind", kind)).plan_files():
                partition = [planned.file.partition[place] for place in range(3)]
                if partition[0] in numbers:
                    yield self._part(planned.file.file_path, partition, planned.file.file_size_in_bytes)

    def _batches(self, kind: RowKind, when: BooleanExpression) -> set[int]:
        """Return the batches that may have a row of a kind at a time."""
        planned = self.table.scan(row_filter=And(equals("kind", kind.value), when)).plan_files()
        return {int(each.file.partition[0]) for each in planned}


_KINDS = (RowKind.CHANGE.value, RowKind.CONTROL.value, RowKind.ERASED.value)
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
