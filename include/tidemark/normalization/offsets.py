"""The offsets of Kafka's records, as one task sees them in its messages; a column of Arrow at a time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.ledger.offset_rows import MOST_RANGES, bounded, merged_offsets
from tidemark.ledger.tally import OffsetRange, OffsetsOf

_COLUMNS = ["topic", "partition", "offset", "file", "place"]


class OffsetsSeen:
    """Collects the offsets of the messages of one batch, by partition."""

    def __init__(self) -> None:
        """Begin without messages."""
        self._ranges = defaultdict[tuple[str, int], list[OffsetRange]](list)
        self._sparse: set[tuple[str, int]] = set()

    def add(self, messages: pa.RecordBatch) -> None:
        """Take note of messages of ``raw``; those that are no records of Kafka have no offset."""
        if messages.column("offset").null_count == messages.num_rows:
            return
        records = pa.Table.from_batches([messages.select(_COLUMNS)]).drop_null().combine_chunks()
        for each in records.group_by(["topic", "partition"]).aggregate([]).to_pylist():
            same = pc.and_(*(pc.equal(records[name], each[name]) for name in ("topic", "partition")))
            self._add((each["topic"], each["partition"]), records.filter(same))

    def _add(self, partition: tuple[str, int], records: pa.Table) -> None:
        offsets, first = np.unique(records["offset"].to_numpy(), return_index=True)
        breaks = np.flatnonzero(np.diff(offsets) > 1)
        starts, ends = [0, *(breaks + 1)], [*breaks, len(offsets) - 1]
        if len(starts) > MOST_RANGES:
            self._sparse.add(partition)
            starts, ends = starts[:1], ends[-1:]
        origins = records.select(["file", "place"]).take(pa.array(first[starts])).to_pylist()
        found = [
            OffsetRange(int(offsets[start]), int(offsets[end]), **origin)
            for start, end, origin in zip(starts, ends, origins, strict=True)
        ]
        ranges, is_dense = bounded(merged_offsets([*self._ranges[partition], *found]))
        self._ranges[partition] = list(ranges)
        if not is_dense:
            self._sparse.add(partition)

    def close(self) -> list[OffsetsOf]:
        """Return what was seen."""
        return [
            OffsetsOf(*partition, ranges, dense=partition not in self._sparse)
            for partition, ranges in self._ranges.items()
        ]
