"""The states of transactions that were open over the end of a run, as the ledger keeps them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TransactionRow
from tidemark.ledger.tally import Seen

States = dict[str | None, TransactionRow]

OPEN = "open"

WHOLE = "whole"

UNDONE = "rolled_back"

MARKED = "marked"
"""Of the row without an id: from this batch on the source is known to send markers."""


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


def unsettled(known: States) -> frozenset[str]:
    """Return the ids of transactions whose further events and markers must all be reported."""
    return frozenset(id_ for id_, row in known.items() if id_ is not None and row.state in {OPEN, UNDONE})


def seen_of(row: TransactionRow) -> Seen:
    """Return what was seen of the transaction of a row."""
    return msgspec.json.decode(row.seen, type=Seen)


def ids_in(ledger: Ledger, batch: int, state: str) -> frozenset[str]:
    """Return the ids of the transactions that were in a state, as of a batch."""
    known = states(ledger, batch).items()
    return frozenset(id_ for id_, row in known if id_ is not None and row.state == state)
