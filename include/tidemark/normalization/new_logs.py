"""Positions of a source whose log began anew, and of tables that were loaded anew (docs/adr/0030).

After a failover, an upgrade or a restore, the new log counts from the beginning, so its positions lie below those of
the old log. The source file says when that was (``log_restarts``), and when tables were loaded again by tools that do
not mark their loads (``reloads``). Both raise the first part of a position, 0 for loaded rows and 1 for changes, by two
for each of these moments that an event does not lie before. So what came later ranks above everything before it. Tables
that schema-change tools made are raised with the table that they were made for, as they take its name.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from tidemark.ddl.migrations import reloads_of
from tidemark.dumps.listing import moments
from tidemark.errors import UnknownTimeError
from tidemark.events import ChangeEvent, Event, Message, Operation, Quarantined, SchemaChange, TableId
from tidemark.normalization.erased_keys import Decode
from tidemark.positions import Position
from tidemark.values.declared_types import entry_for


class NewLogs(msgspec.Struct, frozen=True, kw_only=True):
    """When positions of a source begin anew. All moments are epoch µs, in order."""

    source: tuple[int, ...] = ()
    """Moments at which the log of the source began anew."""
    tables: Mapping[str, tuple[int, ...]] = {}
    """By table or pattern, the moments at which tables were loaded anew."""
    zone: str = "UTC"
    """The zone whose clock the intervals of dumps show."""

    def __bool__(self) -> bool:
        """Return whether there is any moment."""
        return bool(self.source or any(self.tables.values()))


def ranked(decode: Decode, logs: NewLogs) -> Decode:
    """Return a decoder whose events have positions that rank by the log that they come from.

    An event counts by its commit time, else by the time of its capture, of its Kafka record or of its dump's interval.
    A message is set aside if it has none of them.
    """
    moments_of = functools.lru_cache(maxsize=4096)(lambda name: _Reloads.of(logs, name))

    def decoded(message: Message) -> list[Event] | Quarantined:
        events = decode(message)
        if isinstance(events, Quarantined):
            return events
        try:
            return [_ranked(event, message, logs, moments_of) for event in events]
        except UnknownTimeError as error:
            return Quarantined(error.reason, str(error))

    return decoded


class _Reloads(NamedTuple):
    """When a table was loaded anew."""

    moments: Sequence[int]
    """Epoch µs, in order; of a tool's table, when the table was that it was made for."""
    loads: bool
    """Whether rows of the table itself were loaded then."""

    @classmethod
    def of(cls, logs: NewLogs, table: str) -> _Reloads:
        return cls(reloads_of(logs.tables, table), bool(entry_for(logs.tables, table)))


def _ranked(event: Event, message: Message, logs: NewLogs, moments_of: Callable[[str], _Reloads]) -> Event:
    if not isinstance(event, (ChangeEvent, SchemaChange)):
        return event
    reloads, loads = moments_of(str(event.table or TableId(None, None, "")))
    if not (logs.source or reloads):
        return event
    at = _time(event, message, logs.zone)
    reloaded = bisect_right(reloads, at)
    rank = 2 * (bisect_right(logs.source, at) + reloaded)
    if not rank:
        return event
    position = _raised(event.position, rank)
    if isinstance(event, SchemaChange):
        return msgspec.structs.replace(event, position=position)
    load = None if event.load is None else _raised(event.load, rank)
    if reloaded and loads and event.operation is Operation.SNAPSHOT and load is None:
        load = (rank,)
    return msgspec.structs.replace(event, position=position, load=load)


def _raised(position: Position, rank: int) -> Position:
    first, *rest = position
    return (int(first) + rank, *rest)


def _time(event: ChangeEvent | SchemaChange, message: Message, zone: str) -> int:
    """Return when an event was committed, else the best that is known of it; epoch µs."""
    recorded = None if message.timestamp is None else message.timestamp * 1000
    for at in (event.committed_at, event.captured_at, recorded):
        if at is not None:
            return at
    if message.interval:
        return moments(message.interval, ZoneInfo(zone))[0]
    raise UnknownTimeError(
        "the message has no time, so nothing tells whether it belongs to the log before or after `log_restarts` or "
        "`reloads` of the source file. A landing path with fields of time would tell it"
    )
