"""The history of a shop whose payments were called ``charges`` before: a table that is renamed while it lives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemark.demo.story.landmarks import DAYS
from tidemark.demo.story.model import Schema, SchemaEvent, ShopHistory, Transaction

TABLE, EARLIER = "payments", "charges"

RENAMED_ON = DAYS[2]
"""The table is renamed after the first transaction of this day."""


def renamed(history: ShopHistory) -> ShopHistory:
    """Return the history with the earlier name of the table, up to the statement that renames it."""
    return replace(history, transactions=tuple(_renamed(history)))


def _renamed(history: ShopHistory) -> Iterator[Transaction]:
    is_earlier = True
    for transaction in history.transactions:
        yield _under_earlier_name(transaction) if is_earlier else transaction
        if is_earlier and transaction.committed_at.date() == RENAMED_ON:
            is_earlier = False
            statement = f"RENAME TABLE `shop`.`{EARLIER}` TO `shop`.`{TABLE}`"
            schema = _newest(history, transaction)
            ddl = SchemaEvent(kind="RENAME", statement=statement, schema=schema)
            yield replace(transaction, events=(), ddl=ddl, late=False, split=False)


def _newest(history: ShopHistory, until: Transaction) -> Schema:
    """Return the columns of the table as they were after a transaction."""
    schemas = [each.ddl.schema for each in history.transactions if each.ddl is not None and each.id <= until.id]
    return [schema for schema in schemas if schema.table == TABLE][-1]


def _under_earlier_name(transaction: Transaction) -> Transaction:
    ddl, events = transaction.ddl, transaction.events
    if ddl is not None and ddl.schema.table == TABLE:
        statement = ddl.statement.replace(f"`{TABLE}`", f"`{EARLIER}`")
        return replace(transaction, ddl=replace(ddl, statement=statement, schema=_earlier(ddl.schema)))
    moved = (replace(each, schema=_earlier(each.schema)) if each.table == TABLE else each for each in events)
    return replace(transaction, events=tuple(moved))


def _earlier(schema: Schema) -> Schema:
    return replace(schema, table=EARLIER)
