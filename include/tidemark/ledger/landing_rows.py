"""The rows of the ledger about runs of land: files that the newest refused, files of known bytes, and intervals."""

from __future__ import annotations

from datetime import datetime

from tidemark.ledger.rows import LedgerRow


class RefusalRow(LedgerRow, frozen=True, kw_only=True):
    """A file that the newest land refused, and why."""

    TABLE = "refusals"
    path: str
    problem: str


class KnownFileRow(LedgerRow, frozen=True, kw_only=True):
    """A file whose bytes had landed when land read it, under another path or with another time of change."""

    TABLE = "known_files"
    path: str
    size: int
    modified: str
    checksum: str


class IntervalRow(LedgerRow, frozen=True, kw_only=True):
    """An interval that land has run for."""

    TABLE = "intervals"
    start: datetime | None
    end: datetime | None
