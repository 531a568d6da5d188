"""The rows of the ledger's tables that say whether the order of events is in doubt."""

from __future__ import annotations

from datetime import datetime

from tidemark.ledger.rows import LedgerRow, instant_of
from tidemark.ledger.tally import Span


class DisorderRow(LedgerRow, frozen=True, kw_only=True):
    """A table for which names of files and times of events disagree on the order."""

    TABLE = "disorders"
    batch: int
    object: str
    events: int
    of: int
    before: str
    behind: str
    written_at: datetime | None = None

    def __str__(self) -> str:
        """Return what is wrong, and what to do."""
        return (
            f"{self.object}: names of files and times of events disagree: {self.events} of {self.of} events stand in "
            f"files that come behind files with newer events only ({self.behind} behind {self.before}), and the order "
            "of files decides which event is newer. Rows may be older than they should be, unless the older events "
            "were late: deliver files whose names rise with their events"
        )


class SpanRow(LedgerRow, frozen=True, kw_only=True):
    """What the change events of a table in a batch span."""

    TABLE = "spans"
    batch: int
    object: str
    newest: str
    oldest: str | None = None
    first: datetime | None = None
    last: datetime | None = None
    unplaced: int = 0
    unplaced_last: datetime | None = None
    back: datetime | None = None
    back_to: str | None = None
    commits_from: str | None = None
    changes_to: str | None = None
    commits_by: str | None = None
    database: str | None = None

    @classmethod
    def of(cls, batch: int, name: str, span: Span) -> SpanRow:
        """Return the row of a span."""
        return cls(
            batch=batch,
            object=name,
            newest=span.newest,
            oldest=span.oldest or None,
            first=instant_of(span.first),
            last=instant_of(span.last),
            unplaced=span.unplaced,
            unplaced_last=instant_of(span.unplaced_last),
            back=instant_of(span.back),
            back_to=span.back_to or None,
            commits_from=span.commits_from or None,
            changes_to=span.changes_to or None,
            commits_by=span.commits_by,
            database=span.database,
        )
