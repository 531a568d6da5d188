"""The rows of the ledger's table of contradictions, without the keys of rows: an erased key leaves no trace here."""

from __future__ import annotations

from tidemark.ledger.rows import LedgerRow

MISSING_ROWS, EXISTING_ROWS, DIFFERENT_COPIES = "missing_rows", "existing_rows", "different_copies"
BEFORE_IMAGES, LOADED_AGAIN, INCOMPLETE_ROWS = "before_images", "loaded_again", "incomplete_rows"
"""Kinds of contradictions, as source files name them."""

IN_WORDS = {
    MISSING_ROWS: "updates or deletes of rows that were not there",
    EXISTING_ROWS: "inserts of rows that were there",
    INCOMPLETE_ROWS: "rows of which events carry a part, and none the rest, which is null",
    BEFORE_IMAGES: "before images that are not the row before",
    DIFFERENT_COPIES: "events of which copies say something else",
    LOADED_AGAIN: "loaded rows of keys that were loaded before",
}
"""What events of each kind are; also the names of the invariants."""


class ContradictionRow(LedgerRow, frozen=True, kw_only=True):
    """Events of one table in a cut that contradict the stored rows in one way: how many, and the first of them."""

    TABLE = "contradictions"
    cut: int
    object: str
    kind: str
    events: int
    position: str | None = None
    file: str | None = None
    place: int | None = None

    @property
    def origin(self) -> str:
        """Where the first of them stands."""
        return f"message {self.place} of {self.file}, position {self.position}"
