"""The cuts of erasures, which are no usual ones: no check judges them, and they take in no event."""

from __future__ import annotations

from tidemark.lake.filters import at_most, not_null, unset
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import TableState


def is_of_an_erasure(row: TableRow) -> bool:
    """Return whether the cut of an erasure has a row: it moved the table, and no check judged it.

    A table that was stopped then stays so, and the row names its target all the same.
    """
    moved = row.target is not None and row.snapshot is not None and row.state != TableState.CANDIDATE
    return moved and row.verdict is None and row.erased is not None


def rows_of_erasures(ledger: Ledger, newest: int) -> list[TableRow]:
    """Return the rows of the cuts of erasures up to a number, also of tables that were stopped or waited then."""
    rows = ledger.tables(unset("verdict"), not_null("target"), at_most("cut", newest))
    return [row for row in rows if is_of_an_erasure(row)]
