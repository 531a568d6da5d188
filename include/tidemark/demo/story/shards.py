"""The history of a shop whose orders lie in two tables at the source: ``orders_0`` and ``orders_1``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemark.demo.story.model import RowEvent, Schema, SchemaEvent, ShopHistory, Transaction

TABLE = "orders"

SHARDS = (0, 1)
"""An order lies in the shard that its id leaves as remainder."""


def sharded(history: ShopHistory) -> ShopHistory:
    """Return the history with the orders in their shards. A statement on orders is two, one after the other."""
    schemas = {table: versions for table, versions in history.schemas.items() if table != TABLE}
    for shard in SHARDS:
        schemas[_name(shard)] = tuple(_of_shard(version, shard) for version in history.schemas[TABLE])
    transactions = tuple(each for transaction in history.transactions for each in _sharded(transaction))
    return replace(history, transactions=transactions, schemas=schemas)


def _sharded(transaction: Transaction) -> Iterator[Transaction]:
    ddl = transaction.ddl
    if ddl is not None and ddl.schema.table == TABLE:
        for shard in SHARDS:
            yield replace(transaction, ddl=_statement(ddl, shard))
    else:
        yield replace(transaction, events=tuple(_moved(event) for event in transaction.events))


def _statement(ddl: SchemaEvent, shard: int) -> SchemaEvent:
    statement = ddl.statement.replace(f"`{TABLE}`", f"`{_name(shard)}`")
    return replace(ddl, statement=statement, schema=_of_shard(ddl.schema, shard))


def _moved(event: RowEvent) -> RowEvent:
    if event.table != TABLE:
        return event
    order = (event.after or event.before or {})["order_id"]
    return replace(event, schema=_of_shard(event.schema, int(str(order)) % len(SHARDS)))


def _of_shard(schema: Schema, shard: int) -> Schema:
    return replace(schema, table=_name(shard))


def _name(shard: int) -> str:
    return f"{TABLE}_{shard}"
