"""The rows of the ledger's table of erased keys."""

from __future__ import annotations

from datetime import datetime

from tidemark.ledger.rows import LedgerRow

BEGUN, DONE = "begun", "done"
"""States of an erasure: its key is refused from then on; nothing of its row is left."""


class ErasureRow(LedgerRow, frozen=True, kw_only=True):
    """A key whose row was erased: how it is recognised, and never the key."""

    TABLE = "erasures"
    object: str
    digest: str
    reading: str
    secret: str
    before: datetime
    horizon: str
    state: str
    cut: int | None = None
    begins: str | None = None
    ends: str | None = None
    unfollowed: int | None = None
    """The last batch whose events were past their time then, so that they could not show other keys of the row."""
    unpaired: int | None = None
    """How many events then did not show whether the row moved to another key."""
