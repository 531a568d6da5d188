"""The history as single row events, for formats with one message for each. A TRUNCATE is an event without rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from tidemark.demo.story.model import RowEvent, ShopHistory, Transaction
from tidemark.events import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """A row event, its transaction, and its place in the history."""

    transaction: Transaction
    event: RowEvent
    ordinal: int
    """Number in the whole history, from 1."""
    day: date
    """The interval whose dump has it."""


def singles(history: ShopHistory) -> Iterator[Single]:
    """Yield every row event, in order. In a split transaction, events after the first statement are in the next day."""
    ordinal = 0
    for transaction in history.transactions:
        day = transaction.committed_at.date()
        if transaction.ddl is not None and transaction.ddl.kind == "TRUNCATE":
            ordinal += 1
            emptied = RowEvent(schema=transaction.ddl.schema, operation=Operation.TRUNCATE, number=1)
            yield Single(transaction=transaction, event=emptied, ordinal=ordinal, day=day)
        for number, statement in enumerate(transaction.statements()):
            moved = day + timedelta(days=1) if transaction.split and number else day
            for event in statement:
                ordinal += 1
                yield Single(transaction=transaction, event=event, ordinal=ordinal, day=moved)
