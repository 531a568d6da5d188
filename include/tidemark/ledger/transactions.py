"""The states of transactions that were open over the end of a run, as the ledger keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from tidemark.lake.filters import equals
from tidemark.ledger.completeness import Times
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.states import LEFT_BEHIND, CutState
from tidemark.ledger.tally import Seen

States = dict[str | None, TransactionRow]

OPEN = "open"

WHOLE = "whole"

UNDONE = "rolled_back"

MARKED = "marked"
"""Of the row without an id: the source is known to send markers."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a source that sends markers is known to hold, and not to hold."""

    tables: Times = {}
    """Commit time of the earliest event of each table."""
    elsewhere: Times = {}
    """Collections whose events transactions did not wait for, and the newest commit time of such a transaction."""
    undelivered: tuple[str, ...] = ()
    """Patterns of collections that never land, as the source file had them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """The transactions that were published although they were open: nothing waits for their ends any more."""

    cuts: Mapping[str, int] = field(default_factory=dict)
    """By id, the first cut that took the events of the transaction."""
    moved: Mapping[str, int] = field(default_factory=dict)
    """By table, the newest published cut that did not leave the table behind."""

    @property
    def ids(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self.cuts)

    def shown_in(self, table: str) -> frozenset[str]:
        """Return those whose events a published table has: no cut since left it behind."""
        newest = self.moved.get(table, 0)
        return frozenset(id_ for id_, cut in self.cuts.items() if cut <= newest)


def given_up(ledger: Ledger, until: int | None = None) -> GivenUp:
    """Return what published cuts have given up, as far as a cut knows (None: the newest).

    A cut says so in its own row. So it counts from the moment in which the cut is published, whatever is killed, and
    ends when ``restore`` forgets the cut.
    """
    published = [row for row in ledger.cuts(equals("state", CutState.PUBLISHED)) if until is None or row.cut <= until]
    first: dict[str, int] = {}
    for row in sorted(published, key=lambda row: row.cut):
        for id_ in row.given_up or ():
            first.setdefault(id_, row.cut)
    if not first:
        return GivenUp()
    numbers = {row.cut for row in published}
    rows = sorted(ledger.tables(), key=lambda row: row.cut)
    moved = [row for row in rows if row.cut in numbers and row.state not in LEFT_BEHIND]
    return GivenUp(cuts=first, moved={row.object: row.cut for row in moved})


def states(ledger: Ledger, batch: int) -> States:
    """Return by id the newest row of each transaction that was ever open over the end of a run, as of a batch."""
    return as_of(ledger.transactions(), batch)


def as_of(rows: Iterable[TransactionRow], batch: int | None = None) -> States:
    """Return by id the newest of some rows of ``transactions``, as of a batch (None: of all)."""
    known: States = {}
    for row in rows:
        if (batch is None or row.batch <= batch) and row.batch >= known.get(row.id, row).batch:
            known[row.id] = row
    return known


def marked(known: States) -> bool:
    """Return whether the source is known to send markers of its transactions."""
    return None in known


def facts(known: States) -> Facts | None:
    """Return what is known of a source that sends markers; None if nothing is, or an earlier version wrote the row."""
    row = known.get(None)
    return msgspec.json.decode(row.seen, type=Facts) if row is not None and row.seen else None


def unsettled(known: States) -> frozenset[str]:
    """Return the ids of transactions whose further events and markers must all be reported."""
    return frozenset(id_ for id_, row in known.items() if id_ is not None and row.state in {OPEN, UNDONE})


def seen_of(row: TransactionRow) -> Seen:
    """Return what was seen of the transaction of a row."""
    return msgspec.json.decode(row.seen, type=Seen)


def ids_in(rows: Iterable[TransactionRow], batch: int, state: str) -> frozenset[str]:
    """Return the ids of the transactions that were in a state, as of a batch. ``rows`` are all of the ledger's."""
    return frozenset(id_ for id_, row in as_of(rows, batch).items() if id_ is not None and row.state == state)
