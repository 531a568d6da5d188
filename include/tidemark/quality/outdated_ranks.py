"""Events that were decoded when the source file named other new logs or loads than it does now.

``log_restarts`` and ``reloads`` raise the position of each event by its own time, when it is decoded. A reprocess of
some intervals leaves the events of later ones where they were: below the load, which replaces them, and below changes
of the new log. A moment that is taken out of the source file, or hidden by another entry of ``tables``, leaves the
events behind it above all that comes later. Each event by itself is sound, so only the ledger (``spans``) tells.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from tidemark.dumps.listing import moments
from tidemark.lake.filters import among, at_most
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import CutRow
from tidemark.ledger.tally import log_of
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.restarts import written
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source, Table
from tidemark.text import harmless, listed
from tidemark.values.declared_types import entry_for
from tidemark.values.iso8601 import from_micros, to_micros

OUTDATED_RANKS: Final = "tables with events that rank below a new log or load, and are later"
"""Name of the check of events that rank too low."""

UNNAMED_RANKS: Final = "tables with events of a new log or load that the source file does not name"
"""Name of the check of events that rank too high."""


class _Left(NamedTuple):
    """Events of a table that rank as if the source file did not name a moment before them."""

    batch: int
    table: str
    since: datetime
    until: datetime


def judged(ledger: Ledger, source: Source, batches: JudgedBatches, cut: CutRow) -> Iterator[SourceResult]:
    """Yield a finding for each kind: events that rank too low, and events that rank too high.

    Looked at are tables with events in the new batches; after a reprocess that no published cut has shown, in all of
    them. Those that rank too high may be published: they hide the new ones.
    """
    begun = batches.begun(cut)
    spans = ledger.spans(at_most("batch", batches.newest))
    new = [span for span in spans if span.batch > begun]
    if left := [found for span in new if (found := _left(source, span))]:
        tables = sorted({each.table for each in left})
        yield _result(OUTDATED_RANKS, tables, _sentence(ledger, source, tables, left))
    with_events = {span.object for span in new}
    ranked = {span.object for span in spans if _opened_by(span) > len(_moments(source, span.object))}
    if tables := sorted(with_events & ranked):
        yield _result(UNNAMED_RANKS, tables, _of_unnamed(source, tables))


def _result(check: str, tables: Sequence[str], sentence: str) -> SourceResult:
    result = CheckResult.of_findings(check, Severity.BLOCK, len(tables), columns=tuple(tables))
    return SourceResult(result, (harmless(sentence),))


def _moments(source: Source, table: str) -> list[datetime]:
    """Return the times from which the source file ranks events of a table higher."""
    return sorted((*source.log_restarts, *(entry_for(source.tables, table) or Table()).reloads))


def _opened_by(span: SpanRow) -> int:
    """Return how many new logs and loads the highest event of a span is behind, by its position."""
    return log_of(span.newest) - 1


def _left(source: Source, span: SpanRow) -> _Left | None:
    """Return the events of a span that rank too low, judged by the latest of them; None where they rank as they must.

    The latest event ranks by its commit time, a loaded row by the time at which it was read.
    """
    until = max((at for at in (span.last, span.unplaced_last) if at), default=None)
    if until is None:
        return None
    opened, reached = _moments(source, span.object), _opened_by(span)
    if bisect_right(opened, until) <= reached:
        return None
    return _Left(span.batch, span.object, max(span.first or opened[reached], opened[reached]), until)


def _of_unnamed(source: Source, tables: Sequence[str]) -> str:
    return (
        f"{source.source}: events of {listed(tables)} rank behind a new log or load (`log_restarts`, `reloads`) that "
        "the source file does not name for these tables. It named more when they were decoded. They hide what comes "
        "later: write the moments as they were, or decode all events again: "
        f"`tidemark run {source.source} --reprocess`"
    )


def _sentence(ledger: Ledger, source: Source, tables: Sequence[str], left: Sequence[_Left]) -> str:
    since, until = min(each.since for each in left), max(each.until for each in left)
    start = _start(ledger, source, {each.batch for each in left})
    bound = f" --start {written(start).removesuffix('T00:00:00Z')}" if start else ""
    return (
        f"{source.source}: events of {listed(tables)} from {written(since)} to {written(until)} were "
        "decoded before the source file named the new log or load that they are behind (`log_restarts`, `reloads`). "
        "They rank below it, so it hides them, though they are later: "
        f"`tidemark run {source.source}{bound} --reprocess` decodes them again"
    )


def _start(ledger: Ledger, source: Source, batches: Iterable[int]) -> datetime | None:
    """Return the latest start of an interval without an end that has a file of each batch; None for no bound.

    A file whose path names no time is of every interval.
    """
    landed_with = {row.landed_with for row in ledger.batches(among("batch", batches))}
    shown = defaultdict[int, list[datetime | None]](list)
    for file in ledger.files(among("batch", landed_with)):
        shown[file.batch].append(file.interval_start)
    latest = [max(each for each in found if each) for found in shown.values() if None not in found]
    starts = [moments(to_micros(each), source.zone)[-1] for each in latest]
    return from_micros(min(starts)) if starts and shown.keys() >= landed_with else None
