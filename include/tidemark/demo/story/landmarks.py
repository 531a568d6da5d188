"""The days of the shop, and the keys of rows that the story changes again and again."""

from __future__ import annotations

from datetime import date, timedelta

FIRST_DAY = date(2026, 1, 1)

DAYS = tuple(FIRST_DAY + timedelta(days=number) for number in range(4))

TRANSACTIONS_A_DAY = 210

LARGEST_SCALE = 400
"""Above this scale, a day has too few seconds for its commits."""

HOT = 1_000_000_000_000
"""The order that changes more than a hundred times."""

SCRIPTED = 999_000_000_000
"""The order whose lines the scripted scenes change."""

EXTREME_ORDER = 999_000_000_001
"""The order with extreme values."""
