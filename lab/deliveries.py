"""The ways in which one stream reaches the landing folder of a source: files, each the dump of one run."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from producers import Record

Dumps = list[list[Record]]


def _in_order(records: Sequence[Record], _chance: random.Random) -> Dumps:
    return [list(records)]


def _shuffled(records: Sequence[Record], chance: random.Random) -> Dumps:
    """Return the records in any order, a tenth of them twice, cut into three runs at random."""
    again = chance.sample(list(records), len(records) // 10)
    mixed = [*records, *again]
    chance.shuffle(mixed)
    first, second = sorted(chance.sample(range(len(mixed)), 2))
    return [mixed[:first], mixed[first:second], mixed[second:]]


def _cut(records: Sequence[Record], chance: random.Random) -> Dumps:
    """Return the records in order, cut into three runs at random."""
    first, second = sorted(chance.sample(range(len(records)), 2))
    return [list(records[:first]), list(records[first:second]), list(records[second:])]


DELIVERIES: Final[Mapping[str, Callable[[Sequence[Record], random.Random], Dumps]]] = {
    "in order": _in_order, "cut": _cut, "shuffled": _shuffled,
}  # fmt: skip
