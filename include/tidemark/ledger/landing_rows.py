"""The rows of the ledger about runs of land: the files that the newest one refused, the intervals that were run."""

from __future__ import annotations

from datetime import datetime

from tidemark.ledger.rows import LedgerRow


class RefusalRow(LedgerRow, frozen=True, kw_only=True):
    """A file that the newest land refused, and why."""

    TABLE = "refusals"
    path: str
    problem: str


class IntervalRow(LedgerRow, frozen=True, kw_only=True):
    """An interval that land has run for."""

    TABLE = "intervals"
    start: datetime | None
    end: datetime | None
