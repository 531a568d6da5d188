"""Whether positions rise with the commits of the log that they count in (``Traits.ranks_by_commit``)."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.positions import encode_position

_OFFSET = encode_position([1])
"""Begins a place in the dump with the offset of a Kafka record (``Message.order``)."""

_OF_A_SEQUENCE = 3


def of_offsets(parts: Sequence[str]) -> bool:
    """Return whether a position is the offset of a Kafka record. In files, their names decide."""
    return parts[1] == _OFFSET


def of_a_sequence(parts: Sequence[str]) -> bool:
    """Return whether a position is the producer's own number of a change, and a number within it."""
    return len(parts) == _OF_A_SEQUENCE
