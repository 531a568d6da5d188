"""The Arrow schema of the ledger's offsets of Kafka."""

from __future__ import annotations

import pyarrow as pa

from tidemark.lake.log_schemas import INSTANT

OFFSETS = pa.schema(
    [
        ("source", pa.string()),
        ("batch", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("ranges", pa.string()),
        ("dense", pa.bool_()),
        ("at", INSTANT),
    ]
)
"""Which records of a partition of Kafka landed in a batch. ``ranges`` are ``OffsetRange`` as JSON: first and last
offset without a gap between them, file and place of the first. ``dense`` is false where the offsets were in more than
200 pieces, as in a topic that is compacted; one range stands for all of them then."""
