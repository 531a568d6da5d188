"""Records of Kafka that did not land between others that did: gaps between the offsets of all batches.

A gap is no proof of a loss: records that log compaction removed, markers that end transactions, and transactions that
were aborted have offsets too. So a partition with many gaps is not judged, nor are single offsets where three or more
are missing apart from each other. What is left is reported once, in the cut that shows it. Gaps are found in all that
has landed: files that land later close them, in whatever order they come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from tidemark.ledger.offset_rows import OffsetsRow, merged_offsets
from tidemark.ledger.tally import OffsetRange
from tidemark.quality.source_verdict import SourceResult
from tidemark.quality.verdicts import CheckResult
from tidemark.sources.choices import Severity
from tidemark.text import harmless

MISSING_OFFSETS = "offsets missing between landed records"
"""Name of the check."""

_FEW = 3
"""A partition with at most this many gaps is judged, however few records it has."""

_RECORDS_FOR_A_GAP = 20
"""Beyond ``_FEW``, a partition with fewer records for each gap is not judged."""

_MARKERS = 3
"""From this many gaps of one offset on, they are taken for markers of transactions."""

_SHOWN = 5
"""Gaps that are reported with their places."""


class Gap(NamedTuple):
    """Offsets of a partition that did not land."""

    topic: str
    partition: int
    low: int
    high: int
    next: OffsetRange
    """The records behind it."""

    @property
    def offsets(self) -> int:
        """How many offsets are missing."""
        return self.high - self.low + 1

    def __str__(self) -> str:
        """Return what is missing, and where."""
        missing = f"offset {self.low}" if self.low == self.high else f"offsets {self.low} to {self.high}"
        return (
            f"{missing} of {harmless(self.topic)}, partition {self.partition}, did not land. The next record is "
            f"message {self.next.place} of {harmless(self.next.file)}"
        )


def gaps(rows: Iterable[OffsetsRow]) -> list[Gap]:
    """Return what is missing in the partitions that can be judged.

    Args:
        rows: of all batches, in any order.
    """
    of_partitions = defaultdict[tuple[str, int], list[OffsetsRow]](list)
    for row in rows:
        of_partitions[row.topic, row.partition].append(row)
    return [
        gap
        for partition, found in sorted(of_partitions.items())
        if all(row.dense for row in found)
        for gap in _gaps(*partition, merged_offsets(each for row in found for each in row.parsed()))
    ]


def _gaps(topic: str, partition: int, ranges: Sequence[OffsetRange]) -> Iterator[Gap]:
    """Yield the gaps of a partition that are judged: none of many gaps, and no single offsets where these are many."""
    records = sum(each.high - each.low + 1 for each in ranges)
    found = [Gap(topic, partition, one.high + 1, other.low - 1, other) for one, other in pairwise(ranges)]
    if len(found) > max(_FEW, records // _RECORDS_FOR_A_GAP):
        return
    singles = sum(gap.offsets == 1 for gap in found)
    for gap in found:
        if gap.offsets > 1 or singles < _MARKERS:
            yield gap


def judged(source: str, rows: Sequence[OffsetsRow], published: int, severity: Severity) -> SourceResult:
    """Return what a cut's batches show, with a sentence for each of the first gaps.

    Args:
        source: name of the source.
        rows: of all batches up to the cut's.
        published: the last batch that is published; gaps that were there by then have been reported.
        severity: what the source file says.
    """
    before = {gap[:4] for gap in gaps(row for row in rows if row.batch <= published)}
    found = [gap for gap in gaps(rows) if gap[:4] not in before]
    partitions = dict.fromkeys(f"{harmless(gap.topic)}, partition {gap.partition}" for gap in found)
    result = CheckResult(
        name=MISSING_OFFSETS,
        columns=tuple(partitions)[:_SHOWN],
        severity=severity,
        success=not found,
        observed=str(sum(gap.offsets for gap in found)),
        expected="0",
        approvable=True,
    )
    sentences = [f"{source}: {gap}" for gap in found[:_SHOWN]]
    if len(found) > _SHOWN:
        sentences.append(f"{source}: {len(found) - _SHOWN} more gaps between offsets")
    return SourceResult(result, tuple(sentences))
