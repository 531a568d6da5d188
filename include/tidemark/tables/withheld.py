"""Which events of open and undone transactions a cut leaves out of a table, and which earlier ones it takes in."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.transactions import OPEN, UNDONE, as_of, seen_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """What open, undone and released transactions change about the events that a cut takes into one table."""

    left_out: frozenset[str] = frozenset()
    """Transactions whose events in the new batches are not taken."""
    released: frozenset[str] = frozenset()
    """Transactions whose events in earlier batches are taken now."""
    waiting: frozenset[str] = frozenset()
    """Transactions whose events are not taken, whatever their batch."""
    since: int = 0
    """First batch with an event of a transaction that is released, or that was held and is now undone; 0 if none."""
    taken: tuple[int, int] = (0, 0)
    """Events, and the TRUNCATEs among them, that are taken in addition to all events of the new batches. Below zero if
    fewer are taken."""
    held: int = 0
    """Events that wait for the end of their transaction, including events of earlier batches."""
    discarded: int = 0
    """Events of transactions that turned out to be undone."""

    def __add__(self, other: Withheld) -> Withheld:
        """Return the same of two tables together: what is withheld of one is withheld by its transaction alone."""
        return Withheld(
            left_out=self.left_out | other.left_out,
            released=self.released | other.released,
            waiting=self.waiting | other.waiting,
            since=min(filter(None, (self.since, other.since)), default=0),
            taken=(self.taken[0] + other.taken[0], self.taken[1] + other.taken[1]),
            held=self.held + other.held,
            discarded=self.discarded + other.discarded,
        )


NOTHING = Withheld()


def acting(rows: Sequence[TransactionRow], after: int) -> list[TransactionRow]:
    """Return the rows of the transactions that can concern tables which stand at batch ``after`` or later."""
    newest = as_of(rows)
    acts = {id_ for id_, row in newest.items() if id_ is not None and (row.state == OPEN or row.batch > after)}
    return [row for row in rows if row.id in acts]


def tables_of(rows: Iterable[TransactionRow]) -> list[str]:
    """Return the tables that have events of the transactions, sorted by name."""
    return sorted({name for row in rows for name in seen_of(row).tables})


def withheld_for(
    rows: Sequence[TransactionRow],
    table: str,
    after: int,
    batch: int,
    *,
    lacking: Container[str],
    given_up: Container[str],
) -> Withheld:
    """Return what to leave out and what to take in when a table moves from batch ``after`` to ``batch``.

    Args:
        rows: the rows that ``acting`` returned.
        table: the table as source files name it.
        after: the batch that the table stands at.
        batch: the batch that it is to reach.
        lacking: the transactions whose events the table lacks if they were open at batch ``after``.
        given_up: the transactions that count as whole, whatever comes of them.
    """
    then, now = as_of(rows, after), as_of(rows, batch)
    left_out: set[str] = set()
    released: set[str] = set()
    waiting: set[str] = set()
    since = []
    events = truncates = held = discarded = 0
    for id_, row in now.items():
        if id_ is None:  # the row for the fact that the source sends markers
            continue
        seen, before = seen_of(row), then.get(id_)
        total, was = seen.tables.get(table, (0, 0)), (0, 0)
        if before is not None:
            was = seen_of(before).tables.get(table, (0, 0))
        new = (total[0] - was[0], total[1] - was[1])
        back = was if id_ in lacking and before is not None and before.state == OPEN else (0, 0)
        waits = row.state == OPEN and id_ not in given_up
        if waits or (row.state == UNDONE and id_ not in given_up):
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
