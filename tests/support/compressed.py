"""Transactions that MySQL compressed, as a connector delivers them: all changes of one have the same binlog position.

The model is plain Python: the transactions one after another, each once. The delivery is a stream of Kafka records: a
connector that was restarted goes back to the first change of a transaction and sends on from there, with new offsets.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Row = dict[str, Any]


class Step(NamedTuple):
    """One change of a transaction."""

    op: str
    before: Row | None
    after: Row | None
    row: int
    """The number that the connector gives it: it starts again with each part of the transaction."""


class Transaction(NamedTuple):
    """The changes of one table that have one place in the log."""

    number: int
    steps: list[Step]

    @property
    def millis(self) -> int:
        """When it was committed."""
        return 1_760_000_000_000 + 1000 * self.number


def keyed(dice: random.Random, count: int) -> list[Transaction]:
    """Make up transactions of a table with the key ``id``, each of a few keys, which change more than once."""
    alive: dict[int, Row] = {}
    made = []
    for number in range(1, count + 1):
        steps = []
        for _ in range(dice.randint(1, 7)):
            id_ = dice.randint(1, 6)
            old, new = alive.get(id_), {"id": id_, "status": dice.choice("abc"), "number": number}
            if old is not None and dice.random() < 0.3:
                del alive[id_]
                steps.append(Step("d", old, None, dice.randint(0, 2)))
                continue
            alive[id_] = new
            steps.append(Step("u" if old else "c", old, new, dice.randint(0, 2)))
        made.append(Transaction(number, steps))
    return made


def bag(dice: random.Random, count: int) -> list[Transaction]:
    """Make up transactions of a table without a key. None begins with the same changes twice."""
    alive: list[Row] = []
    made = []
    for number in range(1, count + 1):
        steps: list[Step] = [_added(alive, {"code": f"first {number}", "quantity": 0}, 0)]
        for _ in range(dice.randint(1, 6)):
            if alive and dice.random() < 0.3:
                gone = alive.pop(dice.randrange(len(alive)))
                steps.append(Step("d", gone, None, 0))
            else:
                steps.append(_added(alive, {"code": dice.choice("AB"), "quantity": dice.randint(1, 2)}, 0))
        made.append(Transaction(number, steps))
    return made


def _added(alive: list[Row], row: Row, number: int) -> Step:
    alive.append(row)
    return Step("c", None, row, number)


def rows_by_key(transactions: Iterable[Transaction]) -> dict[int, Row]:
    """Return the rows that a keyed table ends with."""
    rows: dict[int, Row] = {}
    for step in (step for transaction in transactions for step in transaction.steps):
        image = step.after or step.before or {}
        rows.pop(image["id"], None)
        if step.after is not None:
            rows[image["id"]] = step.after
    return rows


def counted_rows(transactions: Iterable[Transaction]) -> Counter[tuple[Any, ...]]:
    """Return the rows that a table without a key ends with, and how often."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for step in (step for transaction in transactions for step in transaction.steps):
        if step.before is not None:
            rows[tuple(step.before.values())] -= 1
        if step.after is not None:
            rows[tuple(step.after.values())] += 1
    return +rows


def long_versions(transactions: Iterable[Transaction]) -> list[tuple[Any, ...]]:
    """Return the versions of a keyed table that lasted: key, status, number, from and to (epoch ms)."""
    opened: dict[int, tuple[Row, int]] = {}
    versions: list[tuple[Any, ...]] = []
    for transaction in transactions:
        for step in transaction.steps:
            image = step.after or step.before or {}
            row, since = opened.pop(image["id"], (image, transaction.millis))
            versions.append((*row.values(), since, transaction.millis))
            if step.after is not None:
                opened[image["id"]] = (step.after, transaction.millis)
    versions += [(*row.values(), since, None) for row, since in opened.values()]
    return sorted((version for version in versions if version[-2] != version[-1]), key=repr)


def sent(
    dice: random.Random,
    table: str,
    transactions: Sequence[Transaction],
    *,
    restarts: float = 0.2,
    numbered: bool = False,
) -> list[str]:
    """Return the records of a connector that was restarted now and then, in the order of their offsets.

    Args:
        dice: decides where it was restarted.
        table: the name of the table.
        transactions: what it reads.
        restarts: how likely it is killed at a change.
        numbered: whether the messages have the block ``transaction``.
    """
    changes = [
        (transaction, place, step)
        for transaction in transactions
        for place, step in enumerate(transaction.steps, start=1)
    ]
    records: list[str] = []
    at = 0
    while at < len(changes):
        transaction, place, step = changes[at]
        records.append(_record(table, len(records), transaction, place, step, numbered=numbered))
        at += 1
        # Without numbers, killed after two changes at least: one alone may as well have been made twice.
        if (numbered or place > 1) and dice.random() < restarts:
            back = max(0, transaction.number - 1 - dice.randint(0, 2))
            at = sum(len(earlier.steps) for earlier in transactions[:back])
            restarts /= 2
    return records


def _record(table: str, offset: int, transaction: Transaction, place: int, step: Step, *, numbered: bool) -> str:
    id_ = f"5e0a1c2e-aaaa-11ef-9c1b-0242ac110002:{transaction.number}"
    block = {"id": id_, "total_order": place, "data_collection_order": place} if numbered else None
    source = {
        "connector": "mysql", "snapshot": "false", "db": "shop", "table": table, "ts_ms": transaction.millis,
        "gtid": id_, "file": "binlog.000031", "pos": 100 * transaction.number, "row": step.row,
    }  # fmt: skip
    value = {
        "before": step.before, "after": step.after, "source": source, "transaction": block, "op": step.op,
        "ts_ms": transaction.millis + 50,
    }  # fmt: skip
    image = step.after or step.before or {}
    key = json.dumps({"id": image["id"]}) if "id" in image else None
    record = {"topic": f"shop.{table}", "partition": 0, "offset": offset, "timestamp": transaction.millis, "key": key}
    return json.dumps({**record, "value": json.dumps(value)})
