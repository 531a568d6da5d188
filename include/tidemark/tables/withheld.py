"""Which events of open and undone transactions a run leaves out, and which it takes in late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.transactions import OPEN, UNDONE, as_of, seen_of


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


def acting(rows: Sequence[TransactionRow], after: int) -> list[TransactionRow]:
    """The rows of transactions that say something to tables that stand at batch ``after`` or later."""
    newest = as_of(rows)
    acts = {id_ for id_, row in newest.items() if id_ is not None and (row.state == OPEN or row.batch > after)}
    return [row for row in rows if row.id in acts]


def tables_of(rows: Iterable[TransactionRow]) -> list[str]:
    """Tables that have events of transactions, by name."""
    return sorted({name for row in rows for name in seen_of(row).tables})


def withheld_for(
    rows: Sequence[TransactionRow], table: str, after: int, batch: int, *, carried: bool, ignored: bool
) -> Withheld:
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
        if id_ is None:  # says that the source sends markers
            continue
        seen, before = seen_of(row), then.get(id_)
        total, was = seen.tables.get(table, (0, 0)), (0, 0)
        if before is not None:
            was = seen_of(before).tables.get(table, (0, 0))
        new = (total[0] - was[0], total[1] - was[1])
        back = was if carried and before is not None and before.state == OPEN else (0, 0)
        waits = row.state == OPEN and not ignored
        if waits or row.state == UNDONE:
            waiting.add(id_)
            if new[0]:
                left_out.add(id_)
            events, truncates = events - new[0], truncates - new[1]
            held += new[0] + back[0] if waits else 0
            discarded += 0 if waits else new[0] + back[0]
            if back[0] and not waits:
                since.append(seen.since)
        elif back[0]:
            released.add(id_)
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
