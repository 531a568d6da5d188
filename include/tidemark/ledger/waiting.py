"""The events that are held for open transactions: how many, since when, and what their transactions lack."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemark.ledger.completeness import Lack, Scope, adds_up, lacks
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow, TransactionRow
from tidemark.ledger.states import TableState
from tidemark.ledger.tally import Seen
from tidemark.ledger.transactions import OPEN, Facts, as_of, facts, given_up, seen_of
from tidemark.text import harmless
from tidemark.values.iso8601 import EPOCH

_TABLES_SHOWN = 5
"""Most tables of one transaction that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """One open transaction."""

    id: str
    since: datetime
    """When its first event was normalized."""
    first: datetime | None
    """Commit time of its earliest event."""
    last: datetime | None
    """Commit time of its newest event."""
    events: int
    tables: Mapping[str, int]
    """Table -> events that are held, copies counted."""
    ended: bool
    """Whether its end has landed."""
    lacks: Sequence[Lack]
    """Events that have not landed, as far as the messages show."""
    contradicted: bool
    """Whether its end counts events by collection, and the counts contradict each other or the events."""

    @property
    def why(self) -> str:
        """What it lacks, for people."""
        missing = ", ".join(map(_words, self.lacks))
        parts = [f"{missing} landed"] if missing else []
        if not self.ended:
            parts.append("the end has not landed")
        if self.contradicted:
            parts.append("the counts of its end do not add up")
        return "; ".join(parts) or "some of its events have not landed"

    @property
    def at(self) -> str:
        """Since when it is open, in the source's time where that is known."""
        return (self.first or self.since).isoformat()


def _words(lack: Lack) -> str:
    counted = "an unknown number of" if lack.counted is None else lack.counted
    return f"{lack.landed} of {counted} events" + (f" of {harmless(lack.collection)}" if lack.collection else "")


def waiting(
    rows: Sequence[TransactionRow], batch: int | None = None, *, but: Container[str] = frozenset()
) -> list[OpenTransaction]:
    """Return the transactions that something waits for, the oldest first.

    Args:
        rows: all rows of the ledger about transactions.
        batch: the batch as of which they were open; None: now.
        but: the transactions that were given up.
    """
    newest, began = as_of(rows, batch), _first_written(rows)
    source_facts = facts(newest) or Facts()
    scope = Scope(source_facts.tables, source_facts.undelivered)
    opened = [row for id_, row in newest.items() if id_ is not None and id_ not in but and row.state == OPEN]
    found = [_waiting(row, began[row.id], seen_of(row), scope) for row in opened]
    return sorted(found, key=lambda each: (each.since, each.id))


def _waiting(row: TransactionRow, since: datetime, seen: Seen, scope: Scope) -> OpenTransaction:
    return OpenTransaction(
        id=seen.id,
        since=since,
        first=_moment(seen.first),
        last=_moment(seen.last),
        events=row.events,
        tables={name: events for name, (events, _) in sorted(seen.tables.items())},
        ended=seen.ended,
        lacks=lacks(seen, scope),
        contradicted=seen.counts is not None and not adds_up(seen),
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def _first_written(rows: Iterable[TransactionRow]) -> dict[str | None, datetime]:
    began: dict[str | None, datetime] = {}
    for row in rows:
        if row.written_at is not None:
            began[row.id] = min(row.written_at, began.get(row.id, row.written_at))
    return began


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """All events of a source that readers do not see yet."""

    tables: Mapping[str, TableRow]
    """Tables with held events: where each stands."""
    open: Sequence[OpenTransaction]
    """The open transactions; none if the source file lets events be published without waiting."""
    overdue: Sequence[OpenTransaction]
    """Those that are open for longer than they may."""

    @property
    def events(self) -> int:
        """How many events are held."""
        return sum(row.held for row in self.tables.values())

    @property
    def since(self) -> str | None:
        """Commit time of the earliest event that is held for a transaction."""
        return min((each.at for each in self.open), default=None)


def held_in(ledger: Ledger, most: timedelta) -> Held:
    """Return what is held now.

    Args:
        ledger: of the source.
        most: how long a transaction may be open, in the time of the source: between its newest event and the newest
            event of all.
    """
    standing = ledger.published_tables()
    tables = {name: row for name, row in sorted(standing.items()) if row.held}
    if not tables:
        return Held(tables={}, open=[], overdue=[])
    found = _holding(ledger, tables)
    now = max(_times(ledger, found), default=None)
    overdue = [each for each in found if now is not None and each.last is not None and now - each.last > most]
    return Held(tables=tables, open=found, overdue=overdue)


def _holding(ledger: Ledger, tables: Mapping[str, TableRow]) -> list[OpenTransaction]:
    """Return the transactions that hold events of some tables back."""
    gone = given_up(ledger).ids
    return [each for each in waiting(ledger.transactions(), but=gone) if each.tables.keys() & tables.keys()]


def _times(ledger: Ledger, found: Iterable[OpenTransaction]) -> Iterator[datetime]:
    for row in ledger.tables():
        if row.state == TableState.PUBLISHED and row.committed_at is not None:
            yield row.committed_at
    for each in found:
        if each.last is not None:
            yield each.last


def sentence(source: str, late: OpenTransaction, most: timedelta) -> str:
    """Return the sentence about an overdue transaction and the ways out."""
    names = sorted(late.tables)
    tables = ", ".join(map(harmless, names[:_TABLES_SHOWN])) + (", ..." if len(names) > _TABLES_SHOWN else "")
    return (
        f"{source}: transaction {harmless(late.id)} is open since {late.at}, for longer than "
        f"{most / timedelta(hours=1):g} hours (max_open_hours): {late.why}. {late.events} events are held in {tables}. "
        "Land what it lacks. If that never lands: `undelivered` in the source file names the tables that nothing waits "
        "for, and a run with `transactions: ignore` publishes what is held."
    )
