"""Where a table was last emptied: one position, or one for each shard of a table that others are folded into.

Positions of different shards are of different logs, and nothing compares them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding.frames import key_names
from tidemark.tables.plan import Plan


class TruncateEvent(NamedTuple):
    """A TRUNCATE of a table, or of one shard of it."""

    position: str
    at: int
    """When the source committed it, epoch µs, UTC; 0: unknown."""
    shard: str = ""
    """The source's name of the shard; empty for a table of its own."""


class Truncates:
    """The TRUNCATEs that are known of a table."""

    def __init__(self, known: Iterable[TruncateEvent]) -> None:
        """Take all that are known, in any order."""
        self.known = tuple(sorted(set(known)))
        self.newest = {each.shard: each for each in self.known}

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self.known)

    def position(self, plan: Plan, prefix: str = "") -> Expression:
        """Return the position of the newest TRUNCATE of a row's shard, or null; ``prefix`` of the key's names."""
        return by_shard({shard: F.lit(each.position) for shard, each in self.newest.items()}, plan, prefix)

    def committed_at(self, plan: Plan) -> Expression:
        """Return when the newest TRUNCATE of a row's shard was committed, or null."""
        times = {
            shard: F.timestamp_micros(F.lit(each.at or None).cast("bigint")) for shard, each in self.newest.items()
        }
        return by_shard(times, plan)

    def positions(self, plan: Plan) -> Expression:
        """Return the positions of all TRUNCATEs of a row's shard as an array, or null."""
        of_shard: dict[str, list[Expression]] = defaultdict(list)
        for each in self.known:
            of_shard[each.shard].append(F.lit(each.position))
        return by_shard({shard: F.array(*positions) for shard, positions in of_shard.items()}, plan)


def by_shard(values: Mapping[str, Expression], plan: Plan, prefix: str = "") -> Expression:
    """Return the value of a row's shard, or null; of a table of its own, its one value.

    Args:
        values: by the source's name of the shard; at least one.
        plan: the table's. The shard is the last column of its key.
        prefix: of the names of the key's columns.
    """
    if not plan.found.shards:
        return values[""]
    pairs = [part for shard, value in values.items() for part in (F.lit(shard), value)]
    return F.try_element_at(F.create_map(*pairs), F.col(f"`{prefix}{key_names(plan)[-1]}`"))
