"""The history of a small shop: four days, five tables, and every known trap of change data.

The same seed gives the same history on every machine. Neither a clock nor the environment has an influence.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from tidemark.demo.story.database import Database
from tidemark.demo.story.goods import Goods, under_all_names
from tidemark.demo.story.landmarks import (
    DAYS,
    EXTREME_ORDER,
    FIRST_DAY,
    HOT,
    LARGEST_SCALE,
    SCRIPTED,
    TRANSACTIONS_A_DAY,
)
from tidemark.demo.story.model import Row, SchemaEvent, ShopHistory
from tidemark.demo.story.schemas import (
    CUSTOMERS_LEVELLED,
    ORDERS,
    ORDERS_WIDENED,
    PAYMENTS_BY_CHANNEL,
    PAYMENTS_OF_ANY_CURRENCY,
    SCHEMAS,
    create_table,
)
from tidemark.demo.story.stockroom import TABLE as STOCK_SCANS
from tidemark.demo.story.stockroom import Stockroom
from tidemark.demo.story.traffic import Traffic

RETURNING, RENUMBERED, NEW_NUMBER, SPARSE, LATE, EXTREME = (9_007_199_254_740_993 + 1_000_000 + n for n in range(6))
"""Customers of the scripted scenes."""

DEPOSIT, LATE_PAYMENT, ABROAD = (999_000_001 + n for n in range(3))
"""Payments of the scripted order."""

_KEPT = {SPARSE, EXTREME, HOT, SCRIPTED, EXTREME_ORDER}
"""First key columns of rows that ordinary traffic does not change."""


def history(seed: int = 7, scale: int = 1) -> ShopHistory:
    """Return the history of the shop's four days, 2026-01-01 to 2026-01-04 UTC.

    Args:
        seed: Seed of the random choices.
        scale: Factor for the rows of the initial load and the transactions of a day; 1 gives about 3,000 row events.

    Raises:
        ValueError: ``scale`` is not within 1 and ``LARGEST_SCALE``.
    """
    if not 1 <= scale <= LARGEST_SCALE:
        raise ValueError(f"scale is {scale}; it must be within 1 and {LARGEST_SCALE}")
    return _Shop(seed, scale).live()


class _Shop:
    """The shop, while its history happens: the ordinary traffic of each day, and scripted scenes between."""

    def __init__(self, seed: int, scale: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - choices of a demo, not secrets
        self._scale = scale
        self._goods = Goods(self._random)
        self._db = Database()
        self._stockroom = Stockroom(self._db, self._next_second)
        self._traffic = Traffic(self._db, self._goods, self._random, now=lambda: self._now, kept=_KEPT)
        self._now = datetime.combine(FIRST_DAY, datetime.min.time(), UTC)

    def live(self) -> ShopHistory:
        """Let the four days happen and return their history."""
        for day in DAYS:
            self._now = datetime.combine(day, datetime.min.time(), UTC) + timedelta(minutes=10)
            if day == FIRST_DAY:
                self._create_tables()
                self._initial_load()
            self._work(day)
        return ShopHistory(transactions=tuple(self._db.log), attempts=tuple(self._db.attempts), schemas=SCHEMAS)

    def _commit(self, *, late: bool = False, split: bool = False) -> None:
        self._db.commit(self._tick(), late=late, split=split)

    def _define(self, ddl: SchemaEvent) -> None:
        self._db.define(self._tick(), ddl)

    def _tick(self) -> datetime:
        self._now += timedelta(seconds=max(1, self._random.randint(60, 300) // self._scale))
        return self._now

    def _next_second(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    def _create_tables(self) -> None:
        for table, versions in SCHEMAS.items():
            if table == STOCK_SCANS:
                continue
            statement = create_table(versions[0])
            self._define(SchemaEvent(kind="CREATE", statement=statement, schema=versions[0]))

    def _initial_load(self) -> None:
        for number in range(80 * self._scale):
            self._db.load("customers", self._goods.customer(self._goods.next_customer()))
            if number % 50 == 49:
                self._commit()
        self._db.load("customers", self._goods.customer(RETURNING))
        self._db.load("customers", self._goods.customer(RENUMBERED))
        self._db.load("customers", self._goods.customer(SPARSE))
        self._commit()
        for order in (HOT, SCRIPTED, *(self._goods.next_order() for _ in range(60 * self._scale))):
            self._db.load("orders", self._goods.order(order, self._traffic.any_key("customers")[0], self._now))
            for line in range(1, 4):
                self._db.load("order_lines", self._goods.line(order, line))
            self._commit()

    def _work(self, day: date) -> None:
        number_of_day = (day - FIRST_DAY).days + 1
        for number in range(TRANSACTIONS_A_DAY * self._scale):
            for scene in self._scenes().get((number_of_day, number), ()):
                scene()
            if number % 4 == 0:
                self._db.update("orders", HOT, total=self._goods.money(), remark=self._goods.text())
            self._traffic.change_something()
            self._commit(late=number_of_day == 2 and 100 <= number < 112)
        if number_of_day == 2:
            self._stockroom.give_up()
            self._stockroom.close_the_day()
            self._stockroom.take_out()
            self._traffic.place_order()
            self._stockroom.put_back()
            self._commit(split=True)

    def _scenes(self) -> Mapping[tuple[int, int], tuple[Callable[[], None], ...]]:
        """Return (day from 1, n from 0) -> the scenes before the n-th transaction of the day."""
        return {
            (1, 10): (self._extremes,),
            (1, 50): (lambda: self._set_email(None),),
            (2, 10): (self._stockroom.open,),
            (2, 20): (self._leave, self._return),
            (2, 40): (self._replace_line,),
            (2, 50): (lambda: self._set_email(""),),
            (2, 60): (self._renumber_customer,),
            (2, 80): (self._add_index,),
            (2, 102): (self._stockroom.scan_late_below,),
            (2, 104): (self._change_late,),
            (2, 106): (self._stockroom.count_anew,),
            (2, 108): (self._stockroom.scan_late_above,),
            (3, 20): (self._stockroom.rename_shelf,),
            (3, 30): (self._add_level, self._set_levels),
            (3, 40): (self._widen_quantity,),
            (3, 50): (lambda: self._set_email("back@example.com"),),
            (3, 55): (self._rename_method,),
            (3, 60): (self._renumber_line,),
            (3, 90): (self._heat,),
            (3, 100): (self._change_after_late,),
            (4, 10): (self._stockroom.name_scanners,),
            (4, 20): (self._reuse_number,),
            (4, 30): (self._take_any_currency,),
            (4, 50): (lambda: self._set_email(None), lambda: self._set_email("")),
            (4, 70): (self._set_levels,),
        }

    def _extremes(self) -> None:
        self._db.insert("customers", self._goods.extreme_customer(EXTREME))
        self._db.insert("orders", self._goods.extreme_order(EXTREME_ORDER, EXTREME, self._now))
        self._db.insert("payments", self._scripted_payment(DEPOSIT))
        self._commit()

    def _set_email(self, email: str | None) -> None:
        self._db.update("customers", SPARSE, email=email)
        self._commit()

    def _leave(self) -> None:
        self._db.delete("customers", RETURNING)
        self._commit()

    def _return(self) -> None:
        self._db.insert("customers", self._goods.customer(RETURNING))
        self._commit()

    def _replace_line(self) -> None:
        self._db.delete("order_lines", SCRIPTED, 1)
        self._db.insert("order_lines", self._goods.line(SCRIPTED, 1))
        self._commit()

    def _renumber_customer(self) -> None:
        self._db.update("customers", RENUMBERED, customer_number=NEW_NUMBER)
        for key in [key for key, row in self._db.rows["orders"].items() if row["customer_number"] == RENUMBERED]:
            self._db.update("orders", *key, customer_number=NEW_NUMBER)
        self._commit()

    def _add_index(self) -> None:
        statement = "CREATE INDEX `idx_orders_status` ON `shop`.`orders` (`status`)"
        self._define(SchemaEvent(kind="CINDEX", statement=statement, schema=ORDERS))

    def _change_late(self) -> None:
        """Change rows that later days change again, and rows that nothing changes again; delivered late."""
        self._db.insert("customers", self._goods.customer(LATE))
        self._db.update("orders", HOT, total=self._goods.money())
        self._commit(late=True)
        self._db.insert("payments", self._scripted_payment(LATE_PAYMENT))
        self._commit(late=True)
        self._db.delete("order_lines", SCRIPTED, 2)
        self._db.insert("order_lines", self._goods.line(SCRIPTED, 9))
        self._commit(late=True)

    def _add_level(self) -> None:
        statement = "ALTER TABLE `shop`.`customers` ADD COLUMN `loyalty_level` int NULL"
        self._define(SchemaEvent(kind="ALTER", statement=statement, schema=CUSTOMERS_LEVELLED))

    def _set_levels(self) -> None:
        for key in self._random.sample(list(self._db.rows["customers"]), k=40):
            self._db.update("customers", *key, loyalty_level=self._random.choice((0, 1, 2, 3, None)))
        self._commit()

    def _widen_quantity(self) -> None:
        statement = "ALTER TABLE `shop`.`orders` MODIFY COLUMN `quantity_total` bigint NOT NULL"
        self._define(SchemaEvent(kind="ALTER", statement=statement, schema=ORDERS_WIDENED))
        self._db.update("orders", SCRIPTED, quantity_total=2**31)
        self._db.update("orders", HOT, quantity_total=2**62 + 1)
        self._commit()

    def _scripted_payment(self, payment: int) -> Row:
        paid: Row = {"payment_id": payment, "order_id": SCRIPTED, "method": "card", "amount": Decimal("1.10")}
        return under_all_names(paid | {"is_refund": 0, "paid_at": self._now.replace(tzinfo=None), "receipt": b"\x00"})

    def _rename_method(self) -> None:
        """Rename the column ``method`` to ``channel``, also for a payment from before that is delivered late."""
        statement = "ALTER TABLE `shop`.`payments` RENAME COLUMN `method` TO `channel`"
        renamed = {"channel": "method"}
        ddl = SchemaEvent(kind="ALTER", statement=statement, schema=PAYMENTS_BY_CHANNEL, renamed=renamed)
        self._define(ddl)
        self._db.update("payments", DEPOSIT, channel="cheque")
        self._commit()

    def _take_any_currency(self) -> None:
        """Drop the receipts, and add the currency, which is the euro for all payments so far."""
        clauses = "DROP COLUMN `receipt`, ADD COLUMN `currency` varchar(3) NOT NULL DEFAULT 'EUR'"
        statement, defaults = f"ALTER TABLE `shop`.`payments` {clauses}", {"currency": "EUR"}
        ddl = SchemaEvent(kind="ALTER", statement=statement, schema=PAYMENTS_OF_ANY_CURRENCY, defaults=defaults)
        self._define(ddl)
        self._db.update("payments", DEPOSIT, amount=Decimal("0.10"))
        self._db.insert("payments", {**self._scripted_payment(ABROAD), "currency": "CHF"})
        self._commit()

    def _renumber_line(self) -> None:
        self._db.update("order_lines", SCRIPTED, 3, line_number=33)
        self._commit()

    def _heat(self) -> None:
        for quantity in range(30):
            self._db.update("orders", HOT, total=Decimal(quantity).scaleb(-2))
        self._commit()

    def _change_after_late(self) -> None:
        self._db.update("customers", LATE, name="Known late", notes=None)
        self._commit()

    def _reuse_number(self) -> None:
        self._db.insert("customers", self._goods.customer(RENUMBERED))
        self._commit()
