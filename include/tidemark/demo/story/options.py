"""What ``shop_options`` must publish, made from the history alone.

The options of ``include/sources/shop_options.yaml`` are applied here once more, in plain Python over plain rows. This
module shares nothing with what publishes tables, so that the demo compares two results, not one with itself.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from datetime import datetime

from tidemark.demo.story.model import Key, Row, ShopHistory, Value
from tidemark.demo.story.shards import SHARDS, sharded
from tidemark.events import Operation

_TRACKED = ("status", "total")

_SHOWN = 4

_LEAST = 3
"""Pieces of an order's line that is published."""


def as_owners_want(history: ShopHistory, secret: str) -> dict[str, list[Row]]:
    """Return table -> its rows after the last commit, and the versions of the orders, in no order."""
    final = sharded(history).final_state()
    receipts = _receipts(history)
    orders = [_order(row, shard, secret) for shard in SHARDS for row in final[f"orders_{shard}"]]
    return {
        "customers": [_customer(row, secret) for row in final["customers"]],
        "orders": orders,
        "orders__history": list(_versions(history, secret)),
        "order_lines": [_line(row) for row in final["order_lines"] if _whole(row["quantity"]) >= _LEAST],
        "payments": [_payment(row, receipts) for row in final["payments"]],
    }


def _customer(row: Row, secret: str) -> Row:
    """Return a customer: masked, without some columns, and without the level, which came after the first cut."""
    name, email = str(row["name"]), row["email"]
    return {
        "customer_number": _keyed(row["customer_number"], secret),
        "full_name": "****" + (name[-_SHOWN:] if len(name) > _SHOWN else ""),
        "email": None if email is None else hashlib.sha256(str(email).encode()).hexdigest(),
        "is_active": row["is_active"],
        "credit_limit": row["credit_limit"],
        "born_on": None,
        "registered_at": row["registered_at"],
        "notes": None if row["notes"] is None else "****",
    }


def _order(row: Row, shard: int, secret: str) -> Row:
    shard_columns: Row = {"shard": str(shard), "_cdc_table": f"shop.orders_{shard}"}
    return {**row, **shard_columns, "customer_number": _keyed(row["customer_number"], secret)}


def _line(row: Row) -> Row:
    quantity, price = _whole(row["quantity"]), row["unit_price"]
    return {**row, "amount": quantity * price, "currency": "EUR"}  # type: ignore[operator]  # a price is a decimal


def _payment(row: Row, receipts: dict[Value, Value]) -> Row:
    kept = {name: row[name] for name in ("payment_id", "order_id", "channel", "amount", "currency")}
    return {**kept, "receipt": receipts[row["payment_id"]]}


def _receipts(history: ShopHistory) -> dict[Value, Value]:
    """Return payment -> its receipt by the last event of the payment; null if that came after receipts were dropped."""
    rows = (event.after for event in history.events() if event.table == "payments" and event.after is not None)
    return {row["payment_id"]: row.get("receipt") for row in rows}


def _versions(history: ShopHistory, secret: str) -> Iterator[Row]:
    """Yield the versions of all orders. A version is a run of events between which no tracked column changes."""
    current: dict[Key, tuple[datetime, Row]] = {}
    for transaction in history.transactions:
        for event in (event for event in transaction.events if event.table == "orders"):
            key, at = event.schema.key_of(event.after or event.before or {}), transaction.committed_at
            began, shown = current.pop(key, (at, None))
            same = event.after is not None and shown is not None and _tracked(shown) == _tracked(event.after)
            if shown is not None and not same:
                yield _version(shown, secret, began, at)
            if event.operation is not Operation.DELETE and event.after is not None:
                current[key] = (began if same else at, event.after)
    for began, row in current.values():
        yield _version(row, secret, began, None)


def _version(row: Row, secret: str, began: datetime, ended: datetime | None) -> Row:
    validity: Row = {"valid_from": began, "valid_to": ended, "is_current": ended is None}
    return {**_order(row, _whole(row["order_id"]) % len(SHARDS), secret), **validity}


def _tracked(row: Row) -> list[Value]:
    return [row[name] for name in _TRACKED]


def _keyed(value: Value, secret: str) -> str:
    return hmac.new(secret.encode(), str(value).encode(), hashlib.sha256).hexdigest()


def _whole(value: Value) -> int:
    return int(str(value))
