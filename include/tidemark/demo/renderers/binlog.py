"""The history as MySQL's binary log: every row event with its place in the log, as Debezium reports it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from tidemark.demo.story.model import Row, RowEvent, Schema, ShopHistory, Transaction
from tidemark.events import Operation

OPERATIONS = {Operation.SNAPSHOT: "r", Operation.INSERT: "c", Operation.UPDATE: "u", Operation.DELETE: "d"}

TRUNCATE = "t"

_ROTATED_AT = datetime(2026, 1, 2, 6, tzinfo=UTC)

_START = 157
"""Position of the first event in a binary log of MySQL 8.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a rows event in the log, and the number of the row in the event."""

    file: str
    pos: int
    row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change event of Debezium: a row event, one of the two events of a key change, or a TRUNCATE without a row."""

    op: str
    schema: Schema
    before: Row | None
    after: Row | None
    place: Place
    day: date
    """The interval whose dump has the event."""

    @property
    def image(self) -> Row:
        """The after image, or else the before image, or else no columns."""
        return self.after or self.before or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A transaction with its change events, in order, and the place where it begins."""

    transaction: Transaction
    place: Place
    changes: list[Change] = field(default_factory=list)


def log(history: ShopHistory, failed_over_at: datetime | None = None) -> Iterator[Logged]:
    """Yield the transactions as they are logged.

    The log is rotated on day 2, and its positions start again. After a failover another server writes the log,
    and it has written fewer files. All rows of the initial load have the place where the load began. A key change is a
    delete of the old row and an insert of the new one, both at the place of the update.
    """
    begins = {"mysql-bin.000010": _ROTATED_AT}
    if failed_over_at is not None:
        begins["mysql-bin.000002"] = failed_over_at
    file, pos = "mysql-bin.000009", _START
    for transaction in history.transactions:
        if begins and transaction.committed_at >= begins[following := next(iter(begins))]:
            del begins[following]
            file, pos = following, _START
        logged = Logged(transaction=transaction, place=Place(file=file, pos=pos))
        if transaction.initial_load:
            logged.changes.extend(_change(event, logged.place, _day(transaction, 0)) for event in transaction.events)
            yield logged
            continue
        pos += 154
        if transaction.ddl is not None and transaction.ddl.kind == "TRUNCATE":
            emptied, place = transaction.ddl.schema, replace(logged.place, pos=pos)
            logged.changes.append(
                Change(op=TRUNCATE, schema=emptied, before=None, after=None, place=place, day=_day(transaction, 0))
            )
        for number, statement in enumerate(transaction.statements()):
            day = _day(transaction, number)
            for row, event in enumerate(statement):
                logged.changes.extend(_changes(event, Place(file=file, pos=pos, row=row), day))
            pos += 60 + 97 * len(statement)
        yield logged


def _day(transaction: Transaction, statement: int) -> date:
    return transaction.committed_at.date() + timedelta(days=int(transaction.split and statement > 0))


def _changes(event: RowEvent, place: Place, day: date) -> Iterator[Change]:
    if event.key_changed:
        yield Change(op="d", schema=event.schema, before=event.before, after=None, place=place, day=day)
        yield Change(op="c", schema=event.schema, before=None, after=event.after, place=place, day=day)
    else:
        yield _change(event, place, day)


def _change(event: RowEvent, place: Place, day: date) -> Change:
    op = OPERATIONS[event.operation]
    return Change(op=op, schema=event.schema, before=event.before, after=event.after, place=place, day=day)
