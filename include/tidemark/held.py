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
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, IsNull, LessThanOrEqual, Or
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark import tasks, transactions, workers
from tidemark.data_files import Target, Written
from tidemark.ledger import Ledger, Row
from tidemark.row_filters import above, among, equals
from tidemark.rows import Kind
from tidemark.transactions import Seen
from tidemark.workers import Done, LogPart

States = dict[str | None, Row]

OPEN = "open"
WHOLE = "whole"
UNDONE = "rolled_back"
MARKED = "marked"
"""Of the row without an id: from this batch on the source is known to send markers."""

_A_DAY = 86_400_000_000
"""By so many µs the clock of an end marker may be behind that of its events."""


def states(ledger: Ledger, batch: int) -> States:
    """The newest word on each transaction that was ever open over the end of a run, as of a batch; by id."""
    return as_of(ledger.read("transactions"), batch)


def as_of(rows: Iterable[Row], batch: int | None = None) -> States:
    """Of rows of ``transactions`` the newest of each id, as of a batch (None: of all)."""
    known: States = {}
    for row in rows:
        if (batch is None or row["batch"] <= batch) and row["batch"] >= known.get(row["id"], row)["batch"]:
            known[row["id"]] = row
    return known


def marked(known: States) -> bool:
    """Whether the source is known to send markers of its transactions."""
    return None in known


def unsettled(known: States) -> frozenset[str]:
    """Ids of transactions of which every further event and marker must be told."""
    return frozenset(row["id"] for row in known.values() if row["state"] in {OPEN, UNDONE})


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
    rows = [{"batch": newest, "id": None, "state": MARKED, "since": newest, "events": 0, "seen": ""}] if marks else []
    fresh: dict[str, Seen] = {}
    for id_, seen in transactions.all_of(told).items():
        before = known.get(id_)
        if before is None:
            fresh |= {id_: seen} if seen.tables else {}
        elif before["state"] != WHOLE:
            rows.append(_row(newest, transactions.merged(seen_of(before), seen)))
    asked = [seen for seen in fresh.values() if not (seen.whole or seen.undone)]
    if asked:
        # Most likely open; but it may be a copy of what was whole before, or an end may have come ahead of its events.
        for seen in transactions.all_of(log.look(asked, [] if exact else written, ever=marks)).values():
            apart = msgspec.structs.replace(seen, tables={}, since=fresh[seen.id].since)
            fresh[seen.id] = transactions.merged(fresh[seen.id], apart)
    rows += [_row(newest, seen) for seen in fresh.values() if not seen.whole]
    done = above("batch", log.done)
    if rows:
        ledger.replace("transactions", rows, done)
    else:
        ledger.forget("transactions", done)


def settle_again(ledger: Ledger, did: Sequence[Done], log: ChangeLog) -> None:
    """Write down anew which transactions are open or undone, from the whole change log, after batches were replaced."""
    told = [task.transactions for task in did if task.transactions is not None]
    if not (marked(states(ledger, log.done)) or any(task.marked for task in told)):
        return
    rows = [{"batch": log.done, "id": None, "state": MARKED, "since": log.done, "events": 0, "seen": ""}]
    rows += [_row(log.done, seen) for seen in transactions.all_of(log.look_everywhere()).values() if not seen.whole]
    ledger.replace("transactions", rows, above("batch", 0))


def _row(batch: int, seen: Seen) -> Row:
    state = UNDONE if seen.undone else WHOLE if seen.whole else OPEN
    events = sum(count for count, _ in seen.tables.values())
    told = msgspec.json.encode(seen).decode()
    return {"batch": batch, "id": seen.id, "state": state, "since": seen.since, "events": events, "seen": told}


def seen_of(row: Row) -> Seen:
    """What a row of the ledger tells of its transaction."""
    return msgspec.json.decode(row["seen"], type=Seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLog:
    """The change log, for looking up transactions in it."""

    table: Table
    target: Target
    done: int
    """Last batch that is committed to it."""

    def look(
        self, asked: Sequence[Seen] | None, written: Iterable[Written], *, ever: bool = False
    ) -> list[transactions.Told]:
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
        did = tasks.run(parts, partial(workers.look, only=only, log=self.target))
        return [task.transactions for task in did if task.transactions is not None]

    def look_everywhere(self) -> list[transactions.Told]:
        """What the whole change log tells of all transactions."""
        planned = self.table.scan(row_filter=among("kind", _KINDS)).plan_files()
        parts = [
            self._part(each.file.file_path, [each.file.partition[n] for n in range(3)], each.file.file_size_in_bytes)
            for each in planned
        ]
        did = tasks.run(parts, partial(workers.look, only=None, log=self.target))
        return [task.transactions for task in did if task.transactions is not None]

    def _part(self, location: str, partition: Sequence[Any], size: int) -> tasks.Part:
        batch, kind, table = partition
        told = table if kind == Kind.CHANGE else None
        path = PyArrowFileIO.parse_location(location, self.table.io.properties)[2]
        return LogPart(path=path, batch=batch, table=told), size

    def _committed(self, asked: Sequence[Seen], *, ever: bool) -> Iterator[tasks.Part]:
        """Files that may tell of the transactions.

        One that was whole before was so within one run, as else the ledger knew it: the batch that has any of its
        events has them all. An end that came before its events stands alone, and is not much older than they are.
        """
        firsts, lasts = [seen.first for seen in asked], [seen.last for seen in asked]
        first = None if ever or None in firsts else min(at for at in firsts if at is not None)
        last = None if ever or None in lasts else max(at for at in lasts if at is not None)
        batches = {Kind.CHANGE.value: self._batches(Kind.CHANGE, _between(first, last))}
        ends = self._batches(Kind.CONTROL, _between(first and first - _A_DAY, None))
        batches[Kind.CONTROL.value] = ends | batches[Kind.CHANGE.value]
        for kind, wanted in batches.items():
            for planned in self.table.scan(row_filter=equals("kind", kind)).plan_files():
                partition = [planned.file.partition[place] for place in range(3)]
                if partition[0] in wanted:
                    yield self._part(planned.file.file_path, partition, planned.file.file_size_in_bytes)

    def _batches(self, kind: Kind, when: BooleanExpression) -> set[int]:
        planned = self.table.scan(row_filter=And(equals("kind", kind.value), when)).plan_files()
        return {int(each.file.partition[0]) for each in planned}


_KINDS = (Kind.CHANGE.value, Kind.CONTROL.value)
"""What tells of transactions."""

_Compared: Any = GreaterThanOrEqual, LessThanOrEqual, IsNull
# Any: PyIceberg's expressions are models whose constructors type checkers read in two ways.


def _between(first: int | None, last: int | None) -> BooleanExpression:
    not_before, not_after, unknown = _Compared
    bounds: BooleanExpression = AlwaysTrue()
    if first is not None:
        bounds = And(bounds, not_before("committed_at", first))
    if last is not None:
        bounds = And(bounds, not_after("committed_at", last))
    return bounds if isinstance(bounds, AlwaysTrue) else Or(unknown("committed_at"), bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """What transactions change about the events that a run takes for one table."""

    left_out: frozenset[str] = frozenset()
    """Transactions whose events in the new batches are not taken."""
    released: frozenset[str] = frozenset()
    """Transactions whose events in earlier batches are taken now."""
    waiting: frozenset[str] = frozenset()
    """Transactions whose events are not taken, whatever their batch."""
    since: int = 0
    """First batch that holds an event of those released, or held and now undone; 0 for none."""
    taken: tuple[int, int] = (0, 0)
    """Events, and TRUNCATEs among them, that are taken beyond (below zero: less than) those of the new batches."""
    held: int = 0
    """Events that wait for the end of their transaction, those of earlier batches included."""
    discarded: int = 0
    """Events of transactions that turned out to be undone."""


NOTHING = Withheld()


def acting(rows: Sequence[Row], after: int) -> list[Row]:
    """The rows of transactions that say something to tables that stand at batch ``after`` or later."""
    newest = as_of(rows)
    acts = {id_ for id_, row in newest.items() if id_ is not None and (row["state"] == OPEN or row["batch"] > after)}
    return [row for row in rows if row["id"] in acts]


def undone(ledger: Ledger, batch: int) -> frozenset[str]:
    """Ids of the transactions that were rolled back, as of a batch."""
    return frozenset(row["id"] for row in states(ledger, batch).values() if row["state"] == UNDONE)


def tables_of(rows: Iterable[Row]) -> list[str]:
    """Tables that have events of transactions, by name."""
    return sorted({name for row in rows for name in seen_of(row).tables})


def withheld(rows: Sequence[Row], table: str, after: int, batch: int, *, carried: bool, ignored: bool) -> Withheld:
    """What to leave out and to take in when a table goes from batch ``after`` to ``batch``.

    Args:
        rows: ``acting``.
        table: as source files name it.
        after: batch at which the table stands.
        batch: batch that it is to reach.
        carried: whether it stands there without the events of transactions that were open then.
        ignored: whether open transactions hold nothing back.
    """
    then, now = as_of(rows, after), as_of(rows, batch)
    left_out: set[str] = set()
    released: set[str] = set()
    waiting: set[str] = set()
    since = []
    events = truncates = held = discarded = 0
    for id_, row in now.items():
        seen, before = seen_of(row), then.get(id_)
        total, was = seen.tables.get(table, (0, 0)), (0, 0)
        if before is not None:
            was = seen_of(before).tables.get(table, (0, 0))
        new = (total[0] - was[0], total[1] - was[1])
        back = was if carried and before is not None and before["state"] == OPEN else (0, 0)
        waits = row["state"] == OPEN and not ignored
        if waits or row["state"] == UNDONE:
            waiting.add(row["id"])
            if new[0]:
                left_out.add(row["id"])
            events, truncates = events - new[0], truncates - new[1]
            held += new[0] + back[0] if waits else 0
            discarded += 0 if waits else new[0] + back[0]
            if back[0] and not waits:
                since.append(seen.since)
        elif back[0]:
            released.add(row["id"])
            since.append(seen.since)
            events, truncates = events + back[0], truncates + back[1]
    return Withheld(
        left_out=frozenset(left_out),
        released=frozenset(released),
        waiting=frozenset(waiting),
        since=min(since, default=0),
        taken=(events, truncates),
        held=held,
        discarded=discarded,
    )


def taken(changelog: DataFrame, table: str, after: int, batch: int, found: Withheld) -> DataFrame:
    """The change events that a table takes in on its way from one batch to another.

    Args:
        changelog: rows of ``CHANGE_LOG``.
        table: as source files name it.
        after: batch at which the table stands.
        batch: batch that it is to reach.
        found: ``withheld``.
    """
    new = (F.col("batch") > after) & (F.col("batch") <= batch)
    if found.left_out:
        new &= ~F.coalesce(F.col("transaction_id").isin(*sorted(found.left_out)), F.lit(False))
    if found.released:
        earlier = (F.col("batch") >= found.since) & (F.col("batch") <= after)
        new |= earlier & F.col("transaction_id").isin(*sorted(found.released))
    return changelog.where((F.col("kind") == Kind.CHANGE) & (F.col("object") == table) & new)


def taken_of_all(changelog: DataFrame, tables: Sequence[str], after: int, batch: int) -> DataFrame:
    """The change events of several tables that stand at one batch, and that transactions change nothing about."""
    new = (F.col("batch") > after) & (F.col("batch") <= batch)
    return changelog.where((F.col("kind") == Kind.CHANGE) & F.col("object").isin(*tables) & new)


def log_of(changelog: DataFrame, table: str, batch: int, without: frozenset[str]) -> DataFrame:
    """All change events of a table up to a batch, but for those of some transactions.

    Args:
        changelog: rows of ``CHANGE_LOG``.
        table: as source files name it.
        batch: last batch.
        without: ids of transactions: ``Withheld.waiting`` for all that the published table is to hold, with
            ``Withheld.released`` for what it held before.
    """
    of_table = (F.col("kind") == Kind.CHANGE) & (F.col("object") == table) & (F.col("batch") <= batch)
    if without:
        of_table &= ~F.coalesce(F.col("transaction_id").isin(*sorted(without)), F.lit(False))
    return changelog.where(of_table)
