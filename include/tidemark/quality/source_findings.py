"""What a check looks at in the name of a source: its messages, and how old its newest data is.

The source file says of each kind whether it holds a cut back, is only reported, or is not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from tidemark.lake import names
from tidemark.lake.filters import at_most
from tidemark.lake.lake import Lake
from tidemark.ledger import member_rows
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.offset_rows import OffsetsRow
from tidemark.ledger.rows import TableRow
from tidemark.quality import (
    freshness,
    lone_tombstones,
    missing_offsets,
    unknown_members,
    unknown_messages,
    unread_messages,
)
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.source_verdict import SourceResult
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.model import Source


def of_age(ledger: Ledger, source: Source, tables: Iterable[TableRow]) -> list[SourceResult]:
    """Return how old the newest data is, where the source file limits it."""
    limited = source.freshness or any(table.freshness for table in source.tables.values())
    return list(freshness.judged(source, tables, ledger.batches(), datetime.now(UTC))) if limited else []


def of_messages(
    lake: Lake, ledger: Ledger, source: Source, batches: JudgedBatches, offsets: Sequence[OffsetsRow]
) -> Iterator[SourceResult]:
    """Yield what the cut's messages lack, what of them is unknown, and how many cannot be read."""
    consequence = source.invariants.missing_offsets
    if offsets and consequence is not Consequence.OFF:
        yield missing_offsets.judged(source.source, offsets, batches.published, Severity(consequence.value))
    quarantine = lake.find(names.quarantine(source.source))
    consequence = source.invariants.unknown_messages
    if quarantine is not None and consequence is not Consequence.OFF:
        yield from unknown_messages.judged(source.source, quarantine, batches, Severity(consequence.value))
    if quarantine is not None and source.invariants.quarantined_share is not Consequence.OFF:
        yield from unread_messages.judged(ledger, source, quarantine, batches)
    consequence = source.invariants.unknown_members
    known = (
        [] if consequence is Consequence.OFF else member_rows.unknown_members(ledger, at_most("batch", batches.newest))
    )
    if members := [row for row in known if batches.shows(row)]:
        yield unknown_members.judged(source.source, source.format, members, Severity(consequence.value))
    consequence = source.invariants.lone_tombstones
    if consequence is not Consequence.OFF:
        yield from lone_tombstones.judged(lake, source.source, batches, Severity(consequence.value))
