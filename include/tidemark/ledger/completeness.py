"""Which source transactions are whole: what their ends count, what has landed of it, and what never lands here.

The end of a transaction may count its events by *collection*: a table, as the capture tool names it. It also counts
what a source does not hold: logical messages, and changes of tables whose topics are not among the dumps. A transaction
waits for the events of the collections that belong to the source, and for no others.

A collection belongs to the source from the commit time of its earliest landed event on. So the answer depends on the
set of landed events only, and not on the runs that they landed in. A table whose topic is added to the dumps later does
not open the transactions before it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from tidemark.ledger.tally import Ranges, Seen

NO_ROWS = ""
"""The collection of events that are no row changes: logical messages. Nothing waits for them."""

Times = dict[str, int | None]
"""Table or collection -> a commit time, epoch µs; None where it is not known."""


class Lack(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a transaction that have not landed."""

    collection: str | None
    """As the end of the transaction names it; None: the messages do not say whose events they are."""
    landed: int
    counted: int | None
    """How many there are; None if no message says so."""


class Scope:
    """Which collections belong to a source."""

    def __init__(self, tables: Mapping[str, int | None], undelivered: Sequence[str] = ()) -> None:
        """Begin with what has landed.

        Args:
            tables: each table as source files name it, and the commit time of its earliest event; None: not known, so
                the table was always there.
            undelivered: names and patterns of collections that never land, by the source file.
        """
        self._tables = tables
        self._undelivered = undelivered
        self._since: dict[str, float] = {}

    def waits_for(self, collection: str, last: int | None) -> bool:
        """Return whether a transaction whose newest event is of ``last`` waits for the events of a collection."""
        since = self._since.get(collection)
        if since is None:
            since = self._since[collection] = self._begin(collection)
        return since < math.inf and (last is None or last >= since)

    def _begin(self, collection: str) -> float:
        """Return the time from which on a collection belongs to the source; infinity if it never does."""
        if not collection or any(fnmatchcase(collection, pattern) for pattern in self._undelivered):
            return math.inf
        times = (at for table, at in self._tables.items() if is_named(table, collection))
        return min((-math.inf if at is None else at for at in times), default=math.inf)


class LandedTables(msgspec.Struct, kw_only=True):
    """What is known of a source's tables; it goes to workers."""

    tables: Times = {}
    """Commit time of the earliest event of each table."""
    undelivered: tuple[str, ...] = ()
    """As for ``Scope``."""

    def scope(self, *more: Mapping[str, int | None]) -> Scope:
        """Return which collections belong to the source, if these tables have landed too."""
        return Scope(earliest([self.tables, *more]), self.undelivered)


def is_named(table: str, collection: str) -> bool:
    """Return whether a collection is a table. Either name may have more parts in front than the other.

    >>> is_named("db.public.orders", "public.orders"), is_named("shop.orders", "archive.orders")
    (True, False)
    """
    return f".{table}".endswith(f".{collection}") or f".{collection}".endswith(f".{table}")


def is_whole(seen: Seen, scope: Scope) -> bool:
    """Return whether all events of a transaction that the source holds have landed."""
    if seen.whole:
        return True
    if not seen.ended or seen.undone or seen.count is None or not adds_up(seen):
        return False
    return not any(scope.waits_for(name, seen.last) for name in _missing(seen))


def not_awaited(seen: Seen, scope: Scope) -> list[str]:
    """Return the collections whose events a whole transaction did not wait for."""
    if seen.counts is None or not adds_up(seen):
        return []
    return [name for name in _missing(seen) if name != NO_ROWS and not scope.waits_for(name, seen.last)]


def adds_up(seen: Seen) -> bool:
    """Return whether the end counts by collection, and neither its counts nor the events contradict each other.

    Where they do, the transaction waits for as many events as the larger count says, of whatever collection.
    """
    if seen.counts is None or seen.count != sum(seen.counts.values()):
        return False
    if seen.numbers and seen.numbers[-1][1] > seen.count:
        return False
    names = [name for name in seen.counts if name != NO_ROWS]
    if any(sum(is_named(table, name) for name in names) != 1 for table in seen.by_table if table != NO_ROWS):
        return False
    landed = _landed(seen)
    if sum(landed.values()) != size(seen.numbers):
        return False  # one number stands in two tables, or a row of an earlier version does not name the table
    return all(count <= seen.counts.get(name, 0) for name, count in landed.items())


def lacks(seen: Seen, scope: Scope) -> list[Lack]:
    """Return which events an open transaction lacks, as far as its end or the numbers of its events show."""
    if adds_up(seen):
        landed, counts = _landed(seen), seen.counts or {}
        return [
            Lack(collection=name, landed=landed.get(name, 0), counted=counts[name])
            for name in sorted(_missing(seen))
            if scope.waits_for(name, seen.last)
        ]
    landed_all = size(seen.numbers)
    counted = seen.count or (seen.numbers[-1][1] if seen.numbers else 0)
    return [Lack(collection=None, landed=landed_all, counted=seen.count)] if landed_all < counted else []


def _missing(seen: Seen) -> list[str]:
    landed = _landed(seen)
    return [name for name, count in (seen.counts or {}).items() if landed.get(name, 0) < count]


def _landed(seen: Seen) -> dict[str, int]:
    """Return by collection how many events have landed, copies not counted."""
    found: dict[str, int] = {}
    for table, numbers in seen.by_table.items():
        named = (name for name in seen.counts or () if name != NO_ROWS and is_named(table, name))
        name = NO_ROWS if table == NO_ROWS else next(named, NO_ROWS)
        found[name] = found.get(name, 0) + size(numbers)
    return found


def size(ranges: Ranges) -> int:
    """Return how many numbers there are in ranges."""
    return sum(high - low + 1 for low, high in ranges)


def earliest(parts: Iterable[Mapping[str, int | None]]) -> Times:
    """Return the earliest time of each name; not known where any part does not know it."""
    return _merged_times(parts, min)


def newest(parts: Iterable[Mapping[str, int | None]]) -> Times:
    """Return the newest time of each name; not known where any part does not know it."""
    return _merged_times(parts, max)


def _merged_times(parts: Iterable[Mapping[str, int | None]], better: Callable[[int, int], int]) -> Times:
    found: Times = {}
    for part in parts:
        for name, at in part.items():
            known = found.get(name, at)
            found[name] = None if known is None or at is None else better(known, at)
    return found
