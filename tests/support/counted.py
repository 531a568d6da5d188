"""Transactions whose ends count their events by table, as Debezium for PostgreSQL sends them, step by step."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tidemark.ledger.completeness import is_named

START = 1_767_225_600_000
HOUR = 3_600_000


class Told(NamedTuple):
    """One message of a transaction."""

    transaction: int
    hour: int
    """When it was committed."""
    number: int = 0
    """0: the end."""
    table: str = ""
    """Without a name: a logical message."""
    operation: str = "c"
    counts: tuple[tuple[str, int], ...] = ()
    total: int | None = None

    def bytes(self) -> bytes:
        """The message."""
        at = START + self.hour * HOUR
        if not self.number:
            counts = [{"data_collection": name, "event_count": count} for name, count in self.counts]
            total = sum(count for _, count in self.counts) if self.total is None else self.total
            marker: dict[str, Any] = {"status": "END", "id": f"{self.transaction}:{9000 + self.transaction}"}
            return json.dumps({**marker, "event_count": total, "data_collections": counts, "ts_ms": at}).encode()
        lsn = 1000 * self.transaction + self.number
        place = {"connector": "postgresql", "snapshot": "false", "db": "erp", "ts_ms": at, "lsn": lsn}
        block = {"id": f"{self.transaction}:{lsn}", "total_order": self.number, "data_collection_order": 1}
        if not self.table:
            message = {"prefix": "p", "content": "aGk="}
            return json.dumps({"op": "m", "source": place, "message": message, "transaction": block}).encode()
        after = {"id": lsn} if self.operation == "c" else None
        source = {**place, "schema": "public", "table": self.table}
        envelope = {"op": self.operation, "before": None, "after": after, "source": source, "transaction": block}
        return json.dumps(envelope).encode()


def transaction(number: int, hour: int, *tables: str, total: int | None = None) -> list[Told]:
    """The events of a transaction, each of a table (without a name: a logical message), and its end."""
    events = [Told(number, hour, place, table) for place, table in enumerate(tables, 1)]
    counts: dict[str, int] = {}
    for place, table in enumerate(tables, 1):
        # as versions of Debezium before 2.2 name a logical message
        name = f"public.{table}" if table else f"{_MESSAGE}@{place:x}"
        counts[name] = counts.get(name, 0) + 1
    return [*events, Told(number, hour, counts=tuple(counts.items()), total=total)]


_MESSAGE = "io.debezium.connector.postgresql.LogicalDecodingMessageMonitor$LogicalDecodingMessageId"


def generated(seed: int, count: int) -> list[list[Told]]:
    """Make up transactions over tables, one of which never lands, and logical messages."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    names = ("one", "one", "two", "late", "never", "")
    return [
        transaction(number, 3 * number, *(dice.choice(names) for _ in range(dice.randint(1, 5))))
        for number in range(1, count + 1)
    ]


def open_ones(landed: Iterable[Told]) -> set[int]:
    """The reference: transactions with row events that have landed, and that lack some."""
    there = set(landed)
    rows = [message for message in there if message.table]
    since: dict[str, int] = {}
    for row in rows:
        since[row.table] = min(row.hour, since.get(row.table, row.hour))
    found = set()
    for number in {row.transaction for row in rows}:
        mine = [row for row in rows if row.transaction == number]
        ends = [message for message in there if message.transaction == number and not message.number]
        if not ends or not _complete(mine, ends[0].counts, since):
            found.add(number)
    return found


def _complete(mine: Sequence[Told], counts: Iterable[tuple[str, int]], since: dict[str, int]) -> bool:
    for name, count in counts:
        tables = [
            table for table, hour in since.items() if is_named(f"erp.public.{table}", name) and hour <= mine[0].hour
        ]
        if tables and sum(row.table in tables for row in mine) < count:
            return False
    return True
