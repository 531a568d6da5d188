"""Histories of tables for the tests of compaction: change events as plain values, and as messages of Debezium.

A history is a list of ``reference.Change``. Every table has the columns of ``COLUMNS``; a text that a change did not
capture is left out of its partial image, and written as Debezium's placeholder.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import EllipsisType
from typing import Any

from support.reference import Change, Key, Row, fold
from tidemark.events import Operation
from tidemark.positions import Position, changed, encode_position

COLUMNS = {"id": "long", "line": "long", "name": "string", "note": "string", "amount": "decimal(12, 2)"}
"""Columns of every table of a history; the key is ``id``, or ``id`` and ``line``."""

UNAVAILABLE = "__debezium_unavailable_value"
_CODES = {
    Operation.SNAPSHOT: "r",
    Operation.INSERT: "c",
    Operation.UPDATE: "u",
    Operation.DELETE: "d",
    Operation.TRUNCATE: "t",
}


def position(place: int, operation: Operation, row: int = 0) -> Position:
    """Position that Debezium's MySQL source block at byte ``place`` of the log, and a row there, stands for."""
    return changed(3, place, row, 0 if operation is Operation.DELETE else 1)


def message(change: Change) -> bytes:
    """Write a change as a bare envelope of Debezium for MySQL."""
    snapshot = "false" if change.load is None else "true"
    origin = {"connector": "mysql", "snapshot": snapshot, "db": "shop", "table": change.table, "ts_ms": 1767225600000}
    after = change.after
    if after is not None and change.partial:
        uncaptured = {name: UNAVAILABLE for name in ("name", "note") if name not in after}
        after = {name: {**after, **uncaptured}[name] for name in COLUMNS if name in after or name in uncaptured}
    envelope = {
        "op": _CODES[change.operation],
        "before": change.before,
        "after": after,
        "source": {**origin, "file": "mysql-bin.000003", "pos": change.position[2], "row": change.position[3]},
    }
    return json.dumps(envelope, ensure_ascii=False).encode()


def timed(change: Change, at: datetime) -> bytes:
    """Write a change as ``message`` does, with the time that it took place."""
    envelope = json.loads(message(change))
    envelope["source"]["ts_ms"] = int(at.timestamp() * 1000)
    return json.dumps(envelope).encode()


def canal(
    table: str,
    kind: str,
    types: Mapping[str, str],
    *rows: Sequence[Any],
    key: Sequence[str] | None = ("id",),
    old: Row | None = None,
    database: str = "shop",
) -> bytes:
    """Write rows of one table as a FlatMessage of Canal; ``types`` are MySQL's, a DELETE's rows those that went."""
    flat = {
        "type": kind,
        "database": database,
        "table": table,
        "isDdl": False,
        "mysqlType": types,
        "pkNames": key,
        "data": [dict(zip(types, row, strict=True)) for row in rows],
        "old": None if old is None else [old],
        "es": 1767225600000,
    }
    return json.dumps(flat, ensure_ascii=False).encode()


def deliver(folder: Path, file: str, messages: Iterable[bytes]) -> None:
    """Put a dump of JSON lines into a landing folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{file}.json").write_bytes(b"".join(line + b"\n" for line in messages))


class Table:
    """A table whose changes a test writes down one by one, by the key's and the other columns' values.

    ``...`` in the place of a text makes the image partial: the text was not captured.
    """

    def __init__(
        self, name: str, key: tuple[str, ...] = ("id",), columns: Sequence[str] = ("id", "name", "note")
    ) -> None:
        self.name = name
        self.key = key
        self.columns = tuple(columns)

    def insert(self, at: int, *values: Any) -> Change:
        """A row was inserted."""
        return self._change(at, Operation.INSERT, after=self.image(values))

    def loaded(self, at: int, *values: Any) -> Change:
        """A row of the initial load, read when the log stood at a place."""
        return self._change(at, Operation.SNAPSHOT, after=self.image(values))

    def load(self, at: int, *rows: Sequence[Any]) -> list[Change]:
        """The rows of a complete initial load that began at a place; in a dump its place follows in the position."""
        began = position(at, Operation.SNAPSHOT)
        return [
            self._change(at, Operation.SNAPSHOT, after=self.image(row))._replace(position=(*began, number), load=began)
            for number, row in enumerate(rows)
        ]

    def update(self, at: int, *values: Any, was: Key | None = None) -> Change:
        """A row was updated; ``was`` is its key before, where it changed. Else the old image has the key alone."""
        after = self.image(values)
        old_columns = self.columns if was or not self.key else self.key
        before = dict.fromkeys(self.columns) | {name: after.get(name) for name in old_columns}
        before |= dict(zip(self.key, was or (), strict=False))
        return self._change(at, Operation.UPDATE, before=before, after=after)

    def delete(self, at: int, *values: Any) -> Change:
        """A row was deleted; the values are the row as it was, or its key alone."""
        return self._change(at, Operation.DELETE, before=self.image(values))

    def truncate(self, at: int) -> Change:
        """All rows went."""
        return self._change(at, Operation.TRUNCATE)

    def image(self, values: Sequence[Any]) -> Row:
        """The row with these values; ``...`` leaves a column out."""
        pairs = zip(self.columns, values, strict=False)
        return {name: value for name, value in pairs if not isinstance(value, EllipsisType)}

    def _change(self, at: int, operation: Operation, *, before: Row | None = None, after: Row | None = None) -> Change:
        partial = after is not None and len(after) < len(self.columns)
        return Change(self.name, operation, position(at, operation), self.key, before, after, partial=partial)


def with_position(changes: Iterable[Change]) -> Iterator[Change]:
    """Write each change's position into its row, so that the model shows which change wrote a row last."""
    for change in changes:
        after = change.after and {**change.after, "_cdc_position": encode_position(change.position)}
        yield change._replace(after=after)


def generated(name: str, seed: int) -> list[Change]:
    """Make up the history of one table, in the order of the log: the same for the same seed.

    Few keys, so that each sees inserts, whole and partial updates, changes of the key, deletes and inserts again; now
    and then a TRUNCATE, an update or delete of a row that never was, and a column added half way.
    """
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    key = ("id", "line") if dice.random() < 0.4 else ("id",)
    early = ("id", "line", "name", "note")
    late = (*early, "amount") if dice.random() < 0.5 else early
    length = dice.randint(4, 24)
    added = dice.randint(1, length)
    alive: dict[Key, Row] = {}
    changes = []
    for place in range(1, length + 1):
        table = Table(name, key, early if place < added else late)
        change = _next(dice, table, place * 10, alive)
        changes.append(change)
        _apply(alive, change)
    return changes


def several(name: str, seed: int, count: int) -> list[Change]:
    """Many histories side by side in one table (``side_by_side``)."""
    return side_by_side(lambda own: generated(name, own), beside, seed, count)


def side_by_side(
    make: Callable[[int], list[Change]], beside: Callable[[Change, int, int], Change], seed: int, count: int
) -> list[Change]:
    """Many histories in one table, each with rows of its own, in the order of the log.

    A TRUNCATE is of all rows, so only the first history brings any.

    Args:
        make: gives the history of a seed; those with another key than the first are passed over.
        beside: gives a change keys and a position that no other of so many histories has, by the history's number.
        seed: of the first history.
        count: how many histories.
    """
    found = [make(seed)]
    for other in itertools.count(1):
        if len(found) == count:
            break
        history = make(seed + 7919 * other)
        if history[0].key == found[0][0].key:
            found.append([change for change in history if change.operation is not Operation.TRUNCATE])
    changes = (beside(change, number, count) for number, history in enumerate(found) for change in history)
    return sorted(changes, key=lambda change: change.position)


def beside(change: Change, number: int, count: int) -> Change:
    """The change with keys and a position that no other of ``count`` histories has."""

    def moved(image: Row | None) -> Row | None:
        return image and {**image, "id": image["id"] + 10 * number}

    place = position(int(change.position[2]) * count + number, change.operation)
    return change._replace(position=place, before=moved(change.before), after=moved(change.after))


def in_one_event(change: Change, number: int, _: int) -> Change:
    """The change with keys of its history, in an event of the log that has a row of each of the histories."""
    place = position(int(change.position[2]), change.operation, number)
    return beside(change, number, 1)._replace(position=place)


def reloaded(dice: random.Random, changes: Sequence[Change]) -> list[Change]:
    """Put complete initial loads into a history, each of the rows that there are and of none that went unseen."""
    table = Table(changes[0].table, changes[0].key, max((change.after or {} for change in changes), key=len))
    history: list[Change] = []
    for change in changes:
        history.append(change)
        if dice.random() < 0.1:
            place = int(change.position[2]) + 5
            rows = fold(history).get(table.name, {}).values()
            left = [[row.get(name) for name in table.columns] for row in rows if dice.random() < 0.6]
            history += table.load(place, *left)
    return history


def _next(dice: random.Random, table: Table, at: int, alive: Mapping[Key, Row]) -> Change:
    chance = dice.random()
    known = dice.choice(sorted(alive)) if alive and dice.random() < 0.7 else _key(dice, table)
    row = _values(dice, table, known)
    unseen = dice.choice((("name",), ("note",), ("name", "note")))
    if chance < 0.05:
        return table.truncate(at)
    if chance < 0.3 or not alive:
        return table.insert(at, *_values(dice, table, _key(dice, table)))
    if chance < 0.5:
        return table.update(at, *row)
    if chance < 0.7:
        pairs = zip(table.columns, row, strict=True)
        return table.update(at, *(... if name in unseen else value for name, value in pairs))
    if chance < 0.85:
        moved = table.update(at, *_values(dice, table, _key(dice, table)), was=known)
        old_values = _told(dice, table, [moved.before[name] for name in table.columns]) if moved.before else []
        return moved._replace(before=table.image(old_values))
    return table.delete(at, *_told(dice, table, row))


def _told(dice: random.Random, table: Table, row: Sequence[Any]) -> list[Any]:
    """The values of an old image: the row, or its key with nulls or nothing beside it."""
    how = dice.random()
    if how < 0.4:
        return list(row)
    beside = None if how < 0.7 else ...
    return [value if name in table.key else beside for name, value in zip(table.columns, row, strict=True)]


def _key(dice: random.Random, table: Table) -> Key:
    return tuple(dice.randint(1, 4 if name == "id" else 2) for name in table.key)


def _values(dice: random.Random, table: Table, key: Key) -> list[Any]:
    key_values = dict(zip(table.key, key, strict=True))
    made = {
        "line": dice.randint(1, 2),
        "name": dice.choice((None, "a", "b", "ä\u2028\"'`")),
        "note": f"n{dice.randint(0, 99)}",
        "amount": f"{dice.randint(-999, 999)}.{dice.randint(0, 99):02d}",
    }
    return [{**made, **key_values}[name] for name in table.columns]


def _apply(alive: dict[Key, Row], change: Change) -> None:
    """Keep count of the keys that exist, so that many changes meet a row."""
    if change.operation is Operation.TRUNCATE:
        alive.clear()
    for image, exists in ((change.before, False), (change.after, True)):
        if image is not None:
            key = tuple(image[name] for name in change.key)
            alive.pop(key, None)
            if exists:
                alive[key] = image


def mixed(dice: random.Random, changes: Sequence[Change], runs: int) -> list[list[Change]]:
    """Deliver a history in so many runs: every change once at least, in any order, some of them again."""
    again = [change for change in changes if dice.random() < 0.2]
    delivered: list[list[Change]] = [[] for _ in range(runs)]
    for change in dice.sample([*changes, *again], len(changes) + len(again)):
        delivered[dice.randrange(runs)].append(change)
    return delivered
