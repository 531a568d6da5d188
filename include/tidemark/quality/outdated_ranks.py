"""Events that were decoded before the source file named a new log or a load that they are behind.

``log_restarts`` and ``reloads`` raise the position of each event by its own time, when it is decoded. A reprocess of
some intervals leaves the events of later ones where they were: below the load, which replaces them, and below changes
of the new log. Each event by itself is sound, so only the times in the ledger (``spans``) tell.
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
from tidemark.quality.of_source import SourceResult
from tidemark.quality.restarts import written
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source, Table
from tidemark.text import harmless
from tidemark.values.declared_types import entry_for
from tidemark.values.iso8601 import from_micros, to_micros

OUTDATED_RANKS: Final = "tables with events that rank below a new log or load, and are later"
"""Name of the check."""

_SHOWN: Final = 5
"""Tables that the sentence names."""


class _Left(NamedTuple):
    """Events of a table that rank as if the source file did not name a moment before them."""

    batch: int
    table: str
    since: datetime
    until: datetime


def judged(ledger: Ledger, source: Source, batches: JudgedBatches, cut: CutRow) -> Iterator[SourceResult]:
    """Yield a finding if events were decoded before the source file named a moment that they are not before.

    Looked at are the new batches; after a reprocess that no published cut has shown, all of them.
    """
    if not (source.log_restarts or any(entry.reloads for entry in source.tables.values())):
        return
    begun = 0 if (cut.reprocessed or 0) > batches.reprocessed else batches.published
    spans = (span for span in ledger.spans(at_most("batch", batches.newest)) if span.batch > begun)
    if left := [found for span in spans if (found := _left(source, span))]:
        tables = sorted({each.table for each in left})
        result = CheckResult.of_findings(OUTDATED_RANKS, Severity.BLOCK, len(tables), columns=tuple(tables))
        yield SourceResult(result, (harmless(_sentence(ledger, source, tables, left)),))


def _left(source: Source, span: SpanRow) -> _Left | None:
    """Return the events of a span that rank too low, judged by the latest of them; None where they rank as they must.

    The latest event ranks by its commit time, a loaded row by the time at which it was read.
    """
    until = max((at for at in (span.last, span.unplaced_last) if at), default=None)
    if until is None:
        return None
    opened = sorted((*source.log_restarts, *(entry_for(source.tables, span.object) or Table()).reloads))
    reached = log_of(span.newest) - 1
    if bisect_right(opened, until) <= reached:
        return None
    return _Left(span.batch, span.object, max(span.first or opened[reached], opened[reached]), until)


def _sentence(ledger: Ledger, source: Source, tables: Sequence[str], left: Sequence[_Left]) -> str:
    more = f" and {len(tables) - _SHOWN} more tables" if len(tables) > _SHOWN else ""
    since, until = min(each.since for each in left), max(each.until for each in left)
    start = _start(ledger, source, {each.batch for each in left})
    bound = f" --start {written(start).removesuffix('T00:00:00Z')}" if start else ""
    return (
        f"{source.source}: events of {', '.join(tables[:_SHOWN])}{more} from {written(since)} to {written(until)} were "
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
