"""The history with the numbers of DataHub's producers: every row event and every statement has its own sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from tidemark.demo.story.model import RowEvent, SchemaEvent, ShopHistory, Transaction, Value

_FIRST = 1_649_991_610_688_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row event or one statement."""

    transaction: Transaction
    day: date
    """The interval whose dump has it."""
    sequence: int
    event: RowEvent | None = None
    ddl: SchemaEvent | None = None


def steps(history: ShopHistory) -> Iterator[Step]:
    """Yield all row events and statements of the history, in order."""
    sequence = _FIRST
    for transaction in history.transactions:
        day = transaction.committed_at.date()
        if transaction.ddl is not None:
            sequence += 1
            yield Step(transaction=transaction, day=day, sequence=sequence, ddl=transaction.ddl)
        for number, statement in enumerate(transaction.statements()):
            moved = day + timedelta(days=int(transaction.split and number > 0))
            for event in statement:
                sequence += 1
                yield Step(transaction=transaction, day=moved, sequence=sequence, event=event)


def micros(value: date) -> int:
    """Return a wall clock time, or the midnight of a date, as epoch µs."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (value.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def number_text(value: Value) -> str:
    """Return a number as text with all its digits."""
    return format(value, "f") if isinstance(value, Decimal) else repr(value)
