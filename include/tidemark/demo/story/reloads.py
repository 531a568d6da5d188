"""The history of a shop whose orders are read once more while they change: a load that replaces what was before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from tidemark.demo.story.model import RowEvent, Rows, ShopHistory, Transaction, act
from tidemark.events import Operation

TABLE = "orders"


def reloaded(history: ShopHistory, at: datetime) -> ShopHistory:
    """Return the history with a load of all orders as they are at a moment."""
    return replace(history, transactions=tuple(_reloaded(history, at)))


def _reloaded(history: ShopHistory, at: datetime) -> Iterator[Transaction]:
    state: dict[str, Rows] = {table: {} for table in history.schemas}
    schema, is_done = history.schemas[TABLE][0], False
    for transaction in history.transactions:
        if not is_done and transaction.committed_at >= at:
            load = (
                RowEvent(schema=schema, operation=Operation.SNAPSHOT, number=number, after=row)
                for number, row in enumerate(state[TABLE].values(), start=1)
            )
            yield Transaction(id=transaction.id, committed_at=at, events=tuple(load))
            is_done = True
        yield transaction
        act(state, transaction)
        if transaction.ddl is not None and transaction.ddl.schema.table == TABLE:
            schema = transaction.ddl.schema
