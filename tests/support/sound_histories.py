"""Histories without a fault, in which each event finds the row that it needs, and ways to write them down.

So whatever contradicts the rows of such a table is an event that was lost, or has not come yet.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from support.histories import UNAVAILABLE
from tidemark.events import Operation

_START = datetime(2026, 1, 1, tzinfo=UTC)
Values = dict[str, Any]


class Step(NamedTuple):
    """A change of one row, at its place in the log: a second for each place."""

    place: int
    before: Values | None
    after: Values | None

    @property
    def operation(self) -> Operation:
        """What it does."""
        if self.before is None:
            return Operation.INSERT
        return Operation.DELETE if self.after is None else Operation.UPDATE

    @property
    def keys(self) -> set[int]:
        """The rows that it is of: two where the key changes."""
        return {row["id"] for row in (self.before, self.after) if row is not None}

    @property
    def at(self) -> datetime:
        """When it was committed."""
        return _START + timedelta(seconds=self.place)


class Unit(NamedTuple):
    """A message, and the step that it describes: the whole step, or a half of it."""

    step: Step
    message: bytes


Writer = Callable[[str, Step], list[Unit]]


def steps(dice: random.Random, keys: Sequence[int], places: Iterable[int], *, moves: bool = True) -> list[Step]:
    """Make up a history of some rows: inserts, updates, deletes, changes of the key, inserts again."""
    alive: dict[int, Values] = {}
    found = []
    for place in places:
        free = [key for key in keys if key not in alive]
        known = dice.choice(sorted(alive)) if alive and (not free or dice.random() < 0.75) else None
        if known is None:
            step = Step(place, None, _row(dice, dice.choice(free)))
        elif dice.random() < 0.25:
            step = Step(place, alive[known], None)
        elif moves and free and dice.random() < 0.2:
            step = Step(place, alive[known], _row(dice, dice.choice(free)))
        else:
            changed = {"name": _text(dice)} if dice.random() < 0.5 else {"note": _text(dice)}
            step = Step(place, alive[known], {**alive[known], **changed})
        for row, exists in ((step.before, False), (step.after, True)):
            if row is not None:
                alive.pop(row["id"], None)
                if exists:
                    alive[row["id"]] = row
        found.append(step)
    return found


def _row(dice: random.Random, key: int) -> Values:
    return {"id": key, "name": _text(dice), "note": _text(dice)}


def _text(dice: random.Random) -> str:
    return f"n{dice.randint(0, 999)}"


def debezium(table: str, step: Step) -> list[Unit]:
    """Write a step as Debezium for MySQL, with a placeholder for a note that an update did not change."""
    after = step.after
    if step.before is not None and after is not None and step.before["note"] == after["note"]:
        after = {**after, "note": UNAVAILABLE} if step.before["id"] == after["id"] else after
    return [_debezium(table, step, after)]


def debezium_whole(table: str, step: Step) -> list[Unit]:
    """Write a step as Debezium for MySQL."""
    return [_debezium(table, step, step.after)]


def _debezium(table: str, step: Step, after: Values | None) -> Unit:
    code = {Operation.INSERT: "c", Operation.UPDATE: "u", Operation.DELETE: "d"}[step.operation]
    origin = {"connector": "mysql", "snapshot": "false", "db": "shop", "table": table, "file": "bin.000003", "row": 0}
    origin |= {"ts_ms": int(step.at.timestamp() * 1000), "pos": step.place}
    envelope = {"op": code, "before": step.before, "after": after, "source": origin}
    return Unit(step, json.dumps(envelope).encode())


def halves(table: str, step: Step) -> list[Unit]:
    """Write a step as SharePlex: an update in two messages; the new one lacks the values that did not change."""
    return _shareplex(table, step, whole=False)


def whole_halves(table: str, step: Step) -> list[Unit]:
    """Write a step as SharePlex: an update in two messages of whole rows."""
    return _shareplex(table, step, whole=True)


def one_message(table: str, step: Step) -> list[Unit]:
    """Write a step as SharePlex: an update in one message, with the old row and with the values that changed."""
    before, after = step.before, step.after
    if before is None or after is None:
        return _shareplex(table, step, whole=True)
    changed = {name: value for name, value in after.items() if name == "id" or value != before[name]}
    return [Unit(step, json.dumps({"meta": _meta(table, step, "upd"), "data": changed, "key": before}).encode())]


def _shareplex(table: str, step: Step, *, whole: bool) -> list[Unit]:
    before, after = step.before, step.after
    if before is None or after is None:
        op, row = ("ins", after) if before is None else ("del", before)
        return [Unit(step, json.dumps({"meta": _meta(table, step, op), "data": row}).encode())]
    new_image = after if whole else {name: row for name, row in after.items() if name == "id" or row != before[name]}
    pairs = (("UPDATE BEFORE", before), ("UPDATE AFTER", new_image))
    return [Unit(step, json.dumps({"meta": _meta(table, step, op), "data": row}).encode()) for op, row in pairs]


def _meta(table: str, step: Step, op: str) -> Values:
    meta = {"op": op, "table": f"shop.{table}", "scn": str(step.place), "seq": 1}
    return {**meta, "time": step.at.strftime("%Y-%m-%dT%H:%M:%S")}


def canal(table: str, step: Step) -> list[Unit]:
    """Write a step as a FlatMessage of Canal: it does not carry its place in the log."""
    before, after, kind = step.before, step.after, step.operation.name
    old = None
    if before is not None and after is not None:
        old = [{name: value for name, value in before.items() if value != after[name]}]
    types = {"id": "int", "name": "varchar(9)", "note": "varchar(9)"}
    flat = {"type": kind, "database": "shop", "table": table, "isDdl": False, "mysqlType": types, "pkNames": ["id"]}
    flat |= {"data": [after or before], "old": old, "es": int(step.at.timestamp() * 1000)}
    return [Unit(step, json.dumps(flat).encode())]


def datahub(table: str, step: Step) -> list[Unit]:
    """Write a step as DataHub's Blob topics have it, an update in two messages of whole rows."""
    described = [{"name": "id", "type": "LONG"}, {"name": "name", "type": "STRING"}, {"name": "note", "type": "STRING"}]
    schema = {"dataColumn": described, "primaryKey": ["id"]}
    schema |= {"source": {"dbType": "MySQL", "dbName": "shop", "tableName": table}}
    times = {"eventTime": int(step.at.timestamp() * 1000), "systemTime": int(step.at.timestamp() * 1000)}
    images = {"before": step.before, "after": step.after}
    codes = {Operation.INSERT: ["INSERT"], Operation.UPDATE: ["UPDATE_BEFOR", "UPDATE_AFTER"]}
    units = []
    for code in codes.get(step.operation, ["DELETE"]):
        side = "after" if code in {"INSERT", "UPDATE_AFTER"} else "before"
        payload = {"op": code, "sequenceId": str(10**18 + step.place), "timestamp": times}
        payload[side] = {"dataColumn": images[side]}
        units.append(Unit(step, json.dumps({"schema": schema, "payload": payload, "version": "0.0.1"}).encode()))
    return units


def lacking(history: Iterable[Step], came: Collection[Step], new: Iterable[Step]) -> set[int]:
    """Return the keys of new steps before which a step of the same row has not come."""
    late = [step for step in history if step not in came]
    return {
        key for step in new for key in step.keys for other in late if other.place < step.place and key in other.keys
    }
