"""Histories of tables whose updates come as two events, the old row and the new one, as SharePlex writes them."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from support.histories import COLUMNS, side_by_side
from support.reference import Change, Key, Row
from tidemark.events import Operation
from tidemark.positions import Position, changed

_START = datetime(2026, 1, 1, tzinfo=UTC)


def at(change: Change) -> datetime:
    """When a change was committed: a minute for each place in the log."""
    return _START + timedelta(minutes=int(change.position[1]))


def message(change: Change) -> bytes:
    """Write a change as SharePlex does, without the size of its transaction."""
    whole = change.before is not None and change.after is not None
    names = {
        Operation.INSERT: "ins",
        Operation.DELETE: "del",
        Operation.TRUNCATE: "TRUNCATE",
        Operation.UPDATE: "upd" if whole else "UPDATE BEFORE" if change.after is None else "UPDATE AFTER",
    }
    place, number = change.position[1:3]
    meta = {"op": names[change.operation], "table": f"shop.{change.table}", "scn": str(place), "seq": number}
    body: dict[str, Any] = {"meta": {**meta, "time": at(change).strftime("%Y-%m-%dT%H:%M:%S")}}
    if change.operation is not Operation.TRUNCATE:
        body["data"] = change.after or change.before
    if whole:
        body["key"] = change.before
    return json.dumps(body, ensure_ascii=False).encode()


class Table:
    """A table whose changes a test writes down one by one; a column that is not given was not captured."""

    def __init__(self, name: str, key: tuple[str, ...] = ("id",)) -> None:
        self.name = name
        self.key = key

    def insert(self, place: int, **row: Any) -> Change:
        """A row was inserted."""
        return self._change(Operation.INSERT, place, after=row)

    def update(self, place: int, **row: Any) -> Change:
        """A row was updated, in one message."""
        before = {name: row[name] for name in self.key}
        return self._change(Operation.UPDATE, place, before=before, after=row)

    def old(self, place: int, **row: Any) -> Change:
        """The old half of an update."""
        return self._change(Operation.UPDATE, place, 0, before=row)

    def new(self, place: int, **row: Any) -> Change:
        """The new half of an update."""
        return self._change(Operation.UPDATE, place, 1, after=row)

    def delete(self, place: int, **row: Any) -> Change:
        """A row was deleted."""
        return self._change(Operation.DELETE, place, before=row)

    def truncate(self, place: int) -> Change:
        """All rows went."""
        return self._change(Operation.TRUNCATE, place)

    def _change(
        self, operation: Operation, place: int, *half: int, before: Row | None = None, after: Row | None = None
    ) -> Change:
        position: Position = changed(place, 1, *half)
        return Change(self.name, operation, position, self.key, before, after, partial=operation is Operation.UPDATE)


def generated(name: str, seed: int) -> list[Change]:
    """Make up the history of one table, in the order of the log: the same for the same seed.

    Few keys; most updates come in halves, which may lack columns, and some of these change the key. Now and then an
    old half has no new one, or is of another key; as is so of a log that was cut.
    """
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    table = Table(name, ("id", "line") if dice.random() < 0.4 else ("id",))
    alive: set[Key] = set()
    changes: list[Change] = []
    for place in range(1, dice.randint(5, 25)):
        changes += _next(dice, table, place, alive)
        for change in changes[-2:]:
            _count(change, alive)
    return changes


def _next(dice: random.Random, table: Table, place: int, alive: set[Key]) -> list[Change]:
    chance = dice.random()
    known = dice.choice(sorted(alive)) if alive and dice.random() < 0.8 else _key(dice, table)
    if chance < 0.04:
        return [table.truncate(place)]
    if chance < 0.25 or not alive:
        return [table.insert(place, **_row(dice, table, _key(dice, table)))]
    if chance < 0.35:
        return [table.update(place, **_some(dice, table, known))]
    if chance < 0.45:
        return [table.delete(place, **_some(dice, table, known))]
    other = _key(dice, table) if chance < 0.55 else known
    halves = [table.old(place, **_row(dice, table, known)), table.new(place, **_some(dice, table, other))]
    return halves if dice.random() < 0.9 else [dice.choice(halves)]


def _key(dice: random.Random, table: Table) -> Key:
    return tuple(str(dice.randint(1, 4 if name == "id" else 2)) for name in table.key)


def _row(dice: random.Random, table: Table, key: Key) -> Row:
    made = {
        "line": str(dice.randint(1, 2)),
        "name": dice.choice((None, "a", "b", "ä\u2028\"'`")),
        "note": f"n{dice.randint(0, 99)}",
        "amount": f"{dice.randint(-999, 999)}.{dice.randint(0, 99):02d}",
    }
    values = {**made, **dict(zip(table.key, key, strict=True))}
    return {name: values[name] for name in COLUMNS}


def _some(dice: random.Random, table: Table, key: Key) -> Row:
    """A row, perhaps without some columns, which were not captured."""
    row = _row(dice, table, key)
    return {name: value for name, value in row.items() if name in table.key or dice.random() < 0.6}


def _count(change: Change, alive: set[Key]) -> None:
    """Keep count of the keys that exist, so that many changes meet a row."""
    if change.operation is Operation.TRUNCATE:
        alive.clear()
    for image, exists in ((change.before, False), (change.after, True)):
        if image is not None:
            key = tuple(image[name] for name in change.key)
            alive.discard(key)
            if exists:
                alive.add(key)


def several(name: str, seed: int, count: int) -> list[Change]:
    """Many histories side by side in one table (``histories.side_by_side``)."""
    return side_by_side(lambda own: generated(name, own), beside, seed, count)


def beside(change: Change, number: int, count: int) -> Change:
    """The change with keys and a position that no other of ``count`` histories has."""

    def moved(image: Row | None) -> Row | None:
        return image and {**image, "id": str(int(image["id"]) + 10 * number)}

    place = int(change.position[1]) * count + number
    position = changed(place, *change.position[2:])
    return change._replace(position=position, before=moved(change.before), after=moved(change.after))
