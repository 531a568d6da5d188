"""The rows of the ledger's table of checks."""

from __future__ import annotations

from datetime import datetime

from tidemark.ledger.rows import LedgerRow

CHECK, QUALITY = "check", "quality"
"""Stages that judge a cut: before it is published, and again on demand."""

RENAMED = "renames of the table that are not followed"
"""Name of the check that ``tidemark.quality.renamed_tables`` makes."""


class CheckRow(LedgerRow, frozen=True, kw_only=True):
    """What one check of one table found in a cut."""

    TABLE = "checks"
    cut: int
    stage: str
    target: str
    place: int
    name: str
    columns: tuple[str, ...]
    severity: str
    success: bool
    observed: str
    expected: str
    written_at: datetime | None = None
