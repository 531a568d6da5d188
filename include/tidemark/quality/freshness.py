"""How old the newest data is when a run checks it, of the source and of each table with a limit of its own.

A heartbeat proves that the capture tool is alive where nothing changes, so it counts for the source, and for no table.
A time in the future counts for neither: it would keep a feed fresh that has died.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Self

from tidemark.ledger.rows import BatchRow, TableRow
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.freshness import Freshness
from tidemark.sources.model import Source
from tidemark.sources.routes import entry_of
from tidemark.values.declared_types import is_pattern

OF_SOURCE = "hours since the newest commit or heartbeat"

OF_TABLE = "hours since the newest commit"
"""Names of the checks."""

_AHEAD: Final = timedelta(minutes=10)
"""By so much the clock of a source may be ahead of the clock here."""


class _Times(NamedTuple):
    """The times of one thing that is judged."""

    newest: datetime | None
    """The newest that is not in the future."""
    ahead: datetime | None
    """The newest of what came last, where it is in the future."""
    unknown: str = "no message has a time"
    """Why no time is known, where none is."""

    @classmethod
    def of(cls, times: Iterable[datetime | None], last: Iterable[datetime | None], now: datetime) -> Self:
        """Return the times of which the last ones came last. Others in the future were reported when they came."""
        until = now + _AHEAD
        newest = max((at for at in times if at is not None and at <= until), default=None)
        ahead = max((at for at in last if at is not None and at > until), default=None)
        return cls(newest, ahead, "every time is in the future") if ahead else cls(newest, ahead)


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
    rows = sorted(tables, key=lambda row: row.cut)
    if source.freshness is not None:
        yield _finding(source.source, OF_SOURCE, source.freshness, _of_source(rows, list(batches), now), now)
    by_object = defaultdict[str, list[TableRow]](list)
    for row in rows:
        by_object[row.object].append(row)
    for name, found in sorted(by_object.items()):
        limits = source.table_for(name).freshness
        times = [row.committed_at for row in found if row.committed_at is not None]
        if limits is not None:
            yield _finding(found[-1].target or name, OF_TABLE, limits, _Times.of(times, times[-1:], now), now)
    known = {entry_of(name) for name in by_object}
    for name, entry in source.tables.items():
        if entry.freshness is not None and name not in known and not is_pattern(name):
            yield _finding(name, OF_TABLE, entry.freshness, _NEVER, now)


_NEVER: Final = _Times(newest=None, ahead=None, unknown="nothing of it was ever published")


def _of_source(rows: Sequence[TableRow], batches: Sequence[BatchRow], now: datetime) -> _Times:
    cut, batch = max((row.cut for row in rows), default=0), max((row.batch for row in batches), default=0)
    last = [row.committed_at for row in rows if row.cut == cut]
    last += [row.heard for row in batches if row.batch == batch]
    return _Times.of([*(row.committed_at for row in rows), *(row.heard for row in batches)], last, now)


def _finding(name: str, check: str, limits: Freshness, times: _Times, now: datetime) -> SourceResult:
    """Return whether something is as fresh as it has to be; a warning where no time is known, or one is ahead."""
    age = None if times.newest is None else (now - times.newest) / timedelta(hours=1)
    broken = _broken(limits, age)
    limit = broken or _limits(limits)[0]
    result = CheckResult(
        name=check,
        columns=(name,) if check == OF_TABLE else (),
        severity=limit[0] if broken or times.ahead is None else Severity.WARN,
        success=broken is None and times.ahead is None,
        observed=_observed(age, times),
        expected=f"at most {limit[1]:g}",
        approvable=True,
    )
    return SourceResult(result, tuple(_sentences(name, check, times, age, broken)))


def _observed(age: float | None, times: _Times) -> str:
    if age is None:
        return f"not known: {times.unknown}"
    return f"{max(age, 0.0):.1f}{', and a newer time in the future' if times.ahead else ''}"


def _sentences(
    name: str, check: str, times: _Times, age: float | None, broken: tuple[Severity, float] | None
) -> Iterator[str]:
    """Yield what is wrong, for people."""
    what = "commit or heartbeat" if check == OF_SOURCE else "commit"
    if times.ahead is not None:
        at = times.ahead.isoformat(timespec="seconds")
        yield (
            f"{name}: a {what} is of {at}, in the future, and does not count for freshness. The clock of the source is "
            "wrong, or its zone is (`timezone` in `options`, where the format has it)"
        )
    if age is None or times.newest is None:
        yield f"{name}: freshness cannot be judged: {times.unknown}"
    elif broken is not None:
        newest = f"its newest {what} is of {times.newest.isoformat(timespec='seconds')}, {age:.1f} hours ago"
        yield f"{name}: {newest} (freshness: {broken[0]}_after_hours: {broken[1]:g})"


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
