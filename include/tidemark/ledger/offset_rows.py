"""The rows of the ledger's table of offsets: which records of the partitions of Kafka each batch holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tidemark.ledger.rows import LedgerRow
from tidemark.ledger.tally import OffsetRange, OffsetsOf, Tally

MOST_RANGES = 200
"""Ranges of one partition that a batch keeps. A partition in more pieces is not dense: its topic is compacted."""


class OffsetsRow(LedgerRow, frozen=True, kw_only=True):
    """The offsets of one partition that a batch holds, as ranges."""

    TABLE = "offsets"
    batch: int
    topic: str
    partition: int
    ranges: str
    """``OffsetRange`` as JSON."""
    dense: bool = True
    """False: they were in too many pieces, and one range stands for all of them."""

    def parsed(self) -> list[OffsetRange]:
        """Return the ranges."""
        return msgspec.json.decode(self.ranges, type=list[OffsetRange])


def rows_of(found: Mapping[int, Sequence[Tally]]) -> list[OffsetsRow]:
    """Return the rows of what tasks saw, by batch."""
    seen = defaultdict[tuple[int, str, int], list[OffsetsOf]](list)
    for batch, tallies in found.items():
        for each in (each for tally in tallies for each in tally.offsets):
            seen[batch, each.topic, each.partition].append(each)
    return [
        OffsetsRow(
            batch=batch,
            topic=topic,
            partition=partition,
            ranges=msgspec.json.encode(ranges).decode(),
            dense=dense and all(part.dense for part in parts),
        )
        for (batch, topic, partition), parts in sorted(seen.items())
        for ranges, dense in [bounded(merged_offsets(each for part in parts for each in part.ranges))]
    ]


def merged_offsets(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Return ranges in order, and one range for ranges that overlap or touch."""
    found: list[OffsetRange] = []
    for each in sorted(ranges, key=lambda each: (each.low, -each.high, each.file, each.place)):
        if found and each.low <= found[-1].high + 1:
            found[-1] = msgspec.structs.replace(found[-1], high=max(found[-1].high, each.high))
        else:
            found.append(each)
    return found


def bounded(ranges: Sequence[OffsetRange]) -> tuple[Sequence[OffsetRange], bool]:
    """Return ranges in order, and true; or one range for all of them, and false, if there are too many."""
    if len(ranges) <= MOST_RANGES:
        return ranges, True
    return [msgspec.structs.replace(ranges[0], high=ranges[-1].high)], False
