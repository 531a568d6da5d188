"""How old the newest data is when a run checks it, of the source and of each table with a limit of its own.

A heartbeat proves that the capture tool is alive where nothing changes, so it counts for the source, and for no table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from tidemark.ledger.rows import BatchRow, TableRow
from tidemark.quality.of_source import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.freshness import Freshness
from tidemark.sources.model import Source

OF_SOURCE = "hours since the newest commit or heartbeat"

OF_TABLE = "hours since the newest commit"

FRESHNESS = frozenset({OF_SOURCE, OF_TABLE})
"""Names of the checks."""


def judged(
    source: Source, tables: Iterable[TableRow], batches: Iterable[BatchRow], now: datetime
) -> Iterator[SourceResult]:
    """Yield a finding for the source and for each table, where the source file has limits.

    Args:
        source: the source.
        tables: what is published, and what the cut would publish.
        batches: all batches.
        now: the time of the check.
    """
    newest: dict[str, tuple[str, datetime | None]] = {}
    for row in tables:
        at = newest.get(row.object, ("", None))[1]
        later = max((time for time in (at, row.committed_at) if time is not None), default=None)
        newest[row.object] = (row.target or row.object, later)
    if source.freshness is not None:
        heard = [row.heard for row in batches] + [at for _, at in newest.values()]
        at = max((time for time in heard if time is not None), default=None)
        yield _finding(source.source, OF_SOURCE, source.freshness, at, now)
    for name, (target, at) in sorted(newest.items()):
        limits = source.table_for(name).freshness
        if limits is not None:
            yield _finding(target, OF_TABLE, limits, at, now)


def _finding(name: str, check: str, limits: Freshness, at: datetime | None, now: datetime) -> SourceResult:
    """Return whether something is as fresh as it has to be; where no time is known, a warning that says so."""
    age = None if at is None else (now - at) / timedelta(hours=1)
    broken = _broken(limits, age)
    limit = broken or _limits(limits)[0]
    result = CheckResult(
        name=check,
        columns=(name,) if check == OF_TABLE else (),
        severity=limit[0],
        success=broken is None,
        observed="not known: no message has a time" if age is None else f"{max(age, 0.0):.1f}",
        expected=f"at most {limit[1]:g}",
    )
    if broken is None:
        return SourceResult(result)
    if age is None or at is None:
        return SourceResult(result, (f"{name}: freshness cannot be judged: no message has a time",))
    what = "commit or heartbeat" if check == OF_SOURCE else "commit"
    newest = f"its newest {what} is of {at.isoformat(timespec='seconds')}, {age:.1f} hours ago"
    return SourceResult(result, (f"{name}: {newest} (freshness: {limit[0]}_after_hours: {limit[1]:g})",))


def _limits(limits: Freshness) -> list[tuple[Severity, float]]:
    """Return the limits that are given, the one that is reached first before the other."""
    given = ((Severity.WARN, limits.warn_after_hours), (Severity.BLOCK, limits.block_after_hours))
    return [(severity, hours) for severity, hours in given if hours is not None]


def _broken(limits: Freshness, age: float | None) -> tuple[Severity, float] | None:
    """Return the worst limit that an age exceeds; an age that is not known only warns."""
    known = _limits(limits)
    if age is None:
        return (Severity.WARN, known[0][1])
    return next((limit for limit in reversed(known) if age > limit[1]), None)
