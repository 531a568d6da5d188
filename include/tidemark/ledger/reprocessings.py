"""The reprocessings of a source, by number: 1 derived batches again first.

The rows of batches say which one derived their events last, those of cuts which was the newest when they were built. So
a cut that was built before a reprocessing answers for nothing of it, whenever it is published.
"""

from __future__ import annotations

from tidemark.ledger.ledger import Ledger


def newest(ledger: Ledger) -> int:
    """Return the number of the newest reprocessing; 0 if there was none."""
    numbers = [row.reprocessed for row in ledger.batches()] + [row.reprocessed for row in ledger.cuts()]
    return max((number or 0 for number in numbers), default=0)
