"""Logs of tables, written down message by message as Debezium for MySQL sends them, and kinds of tables to fill."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

START = 1_767_225_600_000
"""When a log begins, epoch ms; each place is a second later."""
_UNAVAILABLE = "__debezium_unavailable_value"
KINDS: dict[str, dict[str, Any]] = {
    "bag": {"key": []},
    "keyed": {"key": ["id"]},
    "hist": {"key": ["id"], "history": True},
    "soft": {"key": ["id"], "deletes": "soft"},
    "both": {"key": ["id"], "history": True, "deletes": "soft"},
}
"""What the source file says of tables whose names begin so."""
Message = bytes


class Log:
    """The log of one table at a source, with a time for each place."""

    def __init__(self, table: str) -> None:
        self.table = table

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        """An update (where there is a row before) or an insert; a value ``...`` was not captured."""
        after = {name: _UNAVAILABLE if value is ... else value for name, value in row.items()}
        return self._message(at, op="c" if before is None else "u", before=before, after=after)

    def delete(self, at: int, **row: Any) -> Message:
        """A row went."""
        return self._message(at, op="d", before=row, after=None)

    def truncate(self, at: int) -> Message:
        """All rows went."""
        return self._message(at, op="t", before=None, after=None)

    def ddl(self, at: int, text: str) -> Message:
        """A change of the table: what follows ``ALTER TABLE`` and its name."""
        return self.statement(at, f"ALTER TABLE {{}} {text}")

    def empty(self, at: int) -> Message:
        """A statement that takes all rows and makes no event."""
        return self.statement(at, "TRUNCATE TABLE {}")

    def statement(self, at: int, text: str) -> Message:
        """A whole statement; ``{}`` in it is the table's name."""
        statement = {"databaseName": "shop", "ddl": text.format(self.table), "tableChanges": []}
        return self._message(at, ts_ms=START + at * 1000, **statement)

    def within(self, transaction: int | str, *messages: Message, first: int = 1) -> list[Message]:
        """Events of a transaction, numbered from ``first``."""
        events = []
        for number, message in enumerate(messages, first):
            block = {"id": self._id(transaction), "total_order": number, "data_collection_order": 1}
            events.append(json.dumps({**json.loads(message), "transaction": block}).encode())
        return events

    def end(self, transaction: int | str, count: int) -> Message:
        """The end of a transaction of so many events."""
        marker = {"status": "END", "id": self._id(transaction), "ts_ms": START + 10**6, "event_count": count}
        return json.dumps(marker).encode()

    def _id(self, transaction: int | str) -> str:
        return f"{self.table}:{transaction}"

    def _message(self, at: int, **members: Any) -> Message:
        origin = {"connector": "mysql", "snapshot": "false", "db": "shop", "table": self.table}
        place = {"ts_ms": START + at * 1000, "file": "mysql-bin.000003", "pos": at, "row": 0}
        return json.dumps({**members, "source": {**origin, **place}}).encode()


def record(message: Message, *, key: dict[str, Any] | None = None) -> Message:
    """A message as a dump of Kafka's records has it, with the key of its record."""
    key_text = None if key is None else json.dumps(key)
    place = json.loads(message)["source"]["pos"]
    envelope = {"topic": "t", "partition": 0, "offset": place, "timestamp": START, "key": key_text}
    return json.dumps({**envelope, "value": message.decode()}).encode()


def cut(log: Sequence[Message], delivery: str, runs: int) -> list[list[Message]]:
    """Cut a log into runs: ``one_run``, ``in_two``, ``in_order``, ``in_disorder``, ``backwards``."""
    messages = list(log)
    if delivery == "in_disorder":
        random.Random(len(messages)).shuffle(messages)  # noqa: S311  a test's own mixing
    if delivery == "backwards":
        messages.reverse()
    parts = {"one_run": 1, "in_two": 2}.get(delivery, runs)
    size = -(-len(messages) // parts)
    return [messages[place : place + size] for place in range(0, runs * size, size)]
