"""Initial loads, as one task sees them in its messages."""

from __future__ import annotations

import hashlib

from tidemark.events import ChangeEvent
from tidemark.ledger.tally import Load

MOST_LOADS = 100
"""Loads of one row that a task remembers. If there are more, they are no loads: each row has a place of its own."""


class LoadTracker:
    """Collects what the rows of one complete initial load say of it."""

    __slots__ = ("_at", "_row", "several")

    def __init__(self, first: ChangeEvent) -> None:
        self._at: int | None = None
        self._row = first.after or b""
        self.several = False
        """Whether the load has two rows that differ."""

    def add(self, event: ChangeEvent) -> None:
        """Add one row of the load."""
        at = event.captured_at if event.committed_at is None else event.committed_at
        if at is not None and (self._at is None or at < self._at):
            self._at = at
        self.several = self.several or event.after != self._row

    def result(self) -> Load:
        """Return what the rows so far say of the load."""
        return Load(self._at, None if self.several else hashlib.blake2b(self._row, digest_size=8).hexdigest())
