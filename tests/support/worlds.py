"""Histories in which all happens that a source may do to its tables, and the logs of them by Debezium for MySQL.

Rows are written, deleted and moved to other keys. Tables exchange their names, and are loaded again, some with rows
that went and left no event. From a place on the server has another log, whose places lie below those of the old one.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

from support.debezium_log import START, Log, Message
from support.renames import Rows

RESTART = 200
"""Place of histories from which on events are in another log."""

RESTARTED_AT = datetime.fromtimestamp(START / 1000 + RESTART, UTC).isoformat()


class _TwoLogs(Log):
    """The log of one table, first of one server and then of another."""

    def moved(self, at: int, old: int, new: int, v: Any) -> list[Message]:
        """A row got another key; ``...``: its value was not captured."""
        return [self._message(at, op="d", before={"id": old}, after=None), self.put(at, id=new, v=v)]

    def loaded(self, at: int, **row: Any) -> Message:
        """A row of a complete load that began at a place."""
        message = json.loads(self._message(at, op="r", before=None, after=row))
        message["source"]["snapshot"] = "true"
        return json.dumps(message).encode()

    def _message(self, at: int, **members: Any) -> Message:
        message = json.loads(super()._message(at, **members))
        if at >= RESTART:
            message["source"] |= {"file": "mysql-bin.000001", "pos": at - RESTART}
        return json.dumps(message).encode()


class World:
    """Three tables, what is done to them, and the log of it."""

    def __init__(self, prefix: str, seed: int, *, steps: int = 60) -> None:
        self._dice = random.Random(seed)  # noqa: S311  a test's own mixing
        self._prefix = prefix
        self.tables: dict[str, Rows] = {f"{prefix}{name}": {0: "first", 1: "first"} for name in "abc"}
        self.log: list[Message] = []
        self._at = 10
        for name in self.tables:
            self._load(name)
        for _ in range(steps):
            self._at += 10
            self._step()

    @property
    def names(self) -> set[str]:
        """All names that events came under."""
        return {json.loads(message)["source"]["table"] for message in self.log} | set(self.tables)

    def _step(self) -> None:
        dice, name = self._dice, self._dice.choice(sorted(self.tables))
        rows, number, chance = self.tables[name], self._dice.randrange(6), self._dice.random()
        if chance < 0.1:
            self._rename()
        elif chance < 0.25 and len(rows) > 1:
            if dice.random() < 0.6:
                del rows[dice.choice(sorted(rows))]  # without an event
            self._load(name)
        elif chance < 0.45 and rows and (free := sorted({*range(6)} - rows.keys())):
            old, new = dice.choice(sorted(rows)), dice.choice(free)
            rows[new] = rows.pop(old)
            self.log += _TwoLogs(name).moved(self._at, old, new, ... if dice.random() < 0.6 else rows[new])
        elif chance < 0.6 and number in rows:
            self.log.append(_TwoLogs(name).delete(self._at, id=number, v=rows.pop(number)))
        else:
            before = {"id": number, "v": rows[number]} if number in rows else None
            rows[number] = f"{name} {self._at}"
            self.log.append(_TwoLogs(name).put(self._at, before, id=number, v=rows[number]))

    def _load(self, name: str) -> None:
        self.log += [_TwoLogs(name).loaded(self._at, id=number, v=v) for number, v in self.tables[name].items()]

    def _rename(self) -> None:
        one, other = self._dice.sample(sorted(self.tables), 2)
        free = sorted({f"{self._prefix}{name}" for name in "abcd"} - self.tables.keys())
        pairs = [(one, f"{self._prefix}tmp"), (other, one), (f"{self._prefix}tmp", other)]
        if self._dice.random() < 0.5:
            pairs = [(one, free[0])]
        for old, new in pairs:
            self.tables[new] = self.tables.pop(old)
        text = "RENAME TABLE " + ", ".join(f"{old} TO {new}" for old, new in pairs)
        self.log.append(_TwoLogs(one).statement(self._at, text))
