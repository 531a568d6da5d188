"""Random rows of the shop, with many values that a careless reader would change."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal

from tidemark.demo.story.model import Row, Value

_EPOCH_DAY = date(1970, 1, 1)

_TEXTS = (
    "",
    "plain",
    'O\'Brien said "yes"',
    "back\\slash \\n is no newline",
    "two\nlines\tand a tab\r\n",
    "😀 naïve façade 漢字 ½",
    " blanks around ",
    '{"a": [1, null], "b": 1.10}',
    "null",
    "1.10",
    "NUL \x00 inside",
    "'; DROP TABLE customers; --",
    "%s ${HOME} {{ ds }} $(id)",
    "line separator \u2028 and \u00a0 blank",
)

_NAMES = ("Ada", "Zoë", "Łukasz", "李", 'Max "Power"')

_DATES = (date(1000, 1, 1), date(1899, 12, 31), date(1969, 12, 31), date(2000, 2, 29), date(9999, 12, 31))

_DOUBLES = (0.0, 0.1, 0.1 + 0.2, -2.5, 1e-05, 1e22, 5e-324, 1.7976931348623157e308)


class Goods:
    """Makes rows from one stream of random numbers."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._customer = 9_007_199_254_740_993  # 2**53 + 1: the first integer that a double cannot hold
        self._order = 1_000_000_000_000
        self._payment = 0

    def next_customer(self) -> int:
        """Return a customer number that was not used before."""
        self._customer += 1
        return self._customer

    def next_order(self) -> int:
        """Return an order id that was not used before."""
        self._order += 1
        return self._order

    def customer(self, number: int) -> Row:
        """Return the row of a customer."""
        return {
            "customer_number": number,
            "name": f"{self._random.choice(_NAMES)} {number % 100000}",
            "email": self.email(),
            "is_active": self._random.randint(0, 1),
            "credit_limit": self.money() - Decimal(2000),
            "lifetime_value": self.precise(),
            "born_on": self._random.choice((None, *_DATES, _EPOCH_DAY + timedelta(self._random.randrange(15000)))),
            "registered_at": datetime(2025, 1, 1) + timedelta(microseconds=self._random.randrange(3 * 10**13)),  # noqa: DTZ001 - wall clock, no zone
            "badge": self.badge(),
            "notes": self.text(),
        }

    def extreme_customer(self, number: int) -> Row:
        """Return the row of a customer with extreme values of their types."""
        return {
            **self.customer(number),
            "email": "",
            "credit_limit": Decimal("-9999999999999999.99"),
            "lifetime_value": Decimal("1234567890123456789012345678.0123456789"),
            "born_on": date(9999, 12, 31),
            "registered_at": datetime(1000, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001 - wall clock, no zone
            "badge": bytes(range(0x78, 0x88)),
            "notes": "".join(_TEXTS),
        }

    def order(self, order: Value, customer: Value, now: datetime) -> Row:
        """Return the row of an order that is placed now."""
        return {
            "order_id": order,
            "customer_number": customer,
            "status": "new",
            "order_date": now.date(),
            "placed_at": self.instant(now),
            "shipped_at": None,
            "total": self.money(),
            "quantity_total": self._random.randint(1, 99),
            "external_reference": Decimal(self._random.choice((0, 2**63, 2**63 + self._random.randrange(2**63)))),
            "weight_kg": self.rate(),
            "remark": self.text(),
        }

    def extreme_order(self, order: int, customer: int, now: datetime) -> Row:
        """Return the row of an order with extreme values of their types."""
        return {
            **self.order(order, customer, now),
            "order_date": date(1000, 1, 1),
            "placed_at": datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 - wall clock, no zone
            "total": Decimal("9999999999999999.99"),
            "quantity_total": 2**31 - 1,
            "external_reference": Decimal(2**64 - 1),
            "weight_kg": 5e-324,
        }

    def line(self, order: Value, number: int) -> Row:
        """Return the row of an order's line."""
        return {
            "order_id": order,
            "line_number": number,
            "sku": f"SKU-{self._random.randrange(10**6):06d}",
            "quantity": self._random.randint(1, 20),
            "unit_price": self.money(),
            "discount_rate": self.rate(),
            "gift_note": self.text(),
        }

    def payment(self, order: Value, now: datetime) -> Row:
        """Return the row of an order's payment. One in five is a refund, whose amount is negative."""
        self._payment += 1
        refund = self._random.random() < 0.2
        return {
            "payment_id": self._payment,
            "order_id": order,
            "method": self._random.choice(("card", "cash", "transfer")),
            "amount": -self.money() if refund else self.money(),
            "is_refund": int(refund),
            "paid_at": self.instant(now),
            "receipt": self._random.choice((None, b"", self._random.randbytes(32))),
        }

    def money(self) -> Decimal:
        """Return an amount with two decimals, not negative; often 0.00 or 1.10, which ends in a zero."""
        return Decimal(self._random.choice((0, 110, self._random.randrange(500_000)))).scaleb(-2)

    def precise(self) -> Decimal | None:
        """Return null, or an amount with ten decimals."""
        return self._random.choice((None, Decimal(self._random.randrange(-(10**15), 10**15)).scaleb(-10)))

    def rate(self) -> float | None:
        """Return null or a double."""
        return self._random.choice((None, *_DOUBLES, self._random.random()))

    def text(self) -> str | None:
        """Return null, an empty text, or a text that is hard to quote."""
        return self._random.choice((None, *_TEXTS))

    def email(self) -> str | None:
        """Return null, an empty text or an address."""
        return self._random.choice((None, "", f"user{self._random.randrange(10**6)}@example.com"))

    def badge(self) -> bytes | None:
        """Return null or up to 16 bytes of any value."""
        return self._random.choice((None, b"", b"\x00\xff\x80", self._random.randbytes(16)))

    def instant(self, now: datetime) -> datetime:
        """Return a wall clock time within this second, with microseconds."""
        return now.replace(tzinfo=None, microsecond=self._random.choice((0, 1, 120_000, self._random.randrange(10**6))))


def under_all_names(payment: Row) -> Row:
    """Return a payment with all names that its columns ever have; the database takes the names of the day."""
    return {**payment, "channel": payment["method"], "currency": "EUR"}
