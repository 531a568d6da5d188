"""The rows of the ledger about runs of land: files that the newest refused, files of known bytes, and intervals."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

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
    """A time that land has run for: one interval, or several without a gap."""

    TABLE = "intervals"
    start: datetime | None
    end: datetime | None


Interval = tuple[datetime | None, datetime | None]
"""Its start, and the first moment after it; None: without a bound."""

_EVER = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def together(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals in order, and one for those that overlap or touch: of runs without a gap one is left.

    >>> days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4, 5)]
    >>> found = together([(days[1], days[2]), (days[3], days[4]), (days[0], days[1])])
    >>> found == [(days[0], days[2]), (days[3], days[4])]
    True
    """
    found: list[tuple[datetime, datetime]] = []
    for first, last in sorted((start or _EVER[0], end or _EVER[1]) for start, end in intervals):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return [(None if first == _EVER[0] else first, None if last == _EVER[1] else last) for first, last in found]
