"""The ordinary traffic of the shop: orders, payments, deliveries and corrections, chosen at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Container
from datetime import datetime

from tidemark.demo.story.database import Database
from tidemark.demo.story.goods import Goods, under_all_names
from tidemark.demo.story.model import Row, Value


class Traffic:
    """Changes rows of the shop at random; the caller commits.

    ``now`` returns the time in the shop. Keys whose first column is in ``kept`` belong to the scripted scenes, and
    traffic never changes their rows.
    """

    def __init__(
        self,
        db: Database,
        goods: Goods,
        source: random.Random,
        *,
        now: Callable[[], datetime],
        kept: Container[Value],
    ) -> None:
        self._db = db
        self._goods = goods
        self._random = source
        self._now = now
        self._kept = kept

    def change_something(self) -> None:
        """Do one of the things that happen in a shop each day."""
        actions = (self.place_order, self._pay, self._ship, self._edit_customer, self._cancel, self._reprice)
        self._random.choices(actions, weights=(6, 4, 4, 4, 2, 4))[0]()

    def any_key(self, table: str) -> tuple[Value, ...]:
        """Return the key of a random row that traffic may change."""
        return self._random.choice([key for key in self._db.rows[table] if key[0] not in self._kept])

    def place_order(self) -> None:
        """Insert an order with its lines, at times with a new customer and a payment."""
        if self._random.random() < 0.3:
            number = self._goods.next_customer()
            self._db.insert("customers", self._goods.customer(number))
            customer: Value = number
        else:
            customer = self.any_key("customers")[0]
        order = self._goods.next_order()
        self._db.insert("orders", self._goods.order(order, customer, self._now()))
        for line in range(1, self._random.randint(2, 5)):
            self._db.insert("order_lines", self._goods.line(order, line))
        if self._random.random() < 0.5:
            self._db.insert("payments", self._payment(order))

    def _pay(self) -> None:
        (order,) = self.any_key("orders")
        self._db.insert("payments", self._payment(order))
        self._db.update("orders", order, status="paid")

    def _payment(self, order: Value) -> Row:
        return under_all_names(self._goods.payment(order, self._now()))

    def _ship(self) -> None:
        (order,) = self.any_key("orders")
        shipped_at = self._goods.instant(self._now()) if self._random.random() < 0.8 else None
        self._db.update("orders", order, shipped_at=shipped_at, status="shipped" if shipped_at else "returned")

    def _edit_customer(self) -> None:
        (customer,) = self.any_key("customers")
        edits: dict[str, Callable[[], Value]] = {
            "email": self._goods.email,
            "credit_limit": self._goods.money,
            "lifetime_value": self._goods.precise,
            "notes": self._goods.text,
            "badge": self._goods.badge,
        }
        names = self._random.sample(sorted(edits), k=self._random.randint(1, 3))
        self._db.update("customers", customer, **{name: edits[name]() for name in names})

    def _cancel(self) -> None:
        (order,) = self.any_key("orders")
        for table in ("payments", "order_lines"):
            for key in [key for key, row in self._db.rows[table].items() if row["order_id"] == order]:
                self._db.delete(table, *key)
        self._db.delete("orders", order)

    def _reprice(self) -> None:
        keys = [key for key in self._db.rows["order_lines"] if key[0] not in self._kept]
        for key in self._random.sample(keys, k=self._random.randint(1, 6)):
            self._db.update("order_lines", *key, unit_price=self._goods.money(), discount_rate=self._goods.rate())
