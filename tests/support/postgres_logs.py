"""A log of PostgreSQL as a connector reads it: transactions side by side, restarts, a clock that is set back.

The changes of a transaction lie where they were written, and are sent when it commits. Each carries the end of the last
commit that the connector has read (``source.sequence``). Nothing here shares code with what reads the messages.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SECOND = 1_000_000


class Written(NamedTuple):
    """A change as the server wrote it."""

    lsn: int
    table: str
    key: int
    value: str


class Committed(NamedTuple):
    """A transaction, as it was committed."""

    changes: tuple[Written, ...]
    end: int
    """Where the entry of its commit ends."""
    at: int
    """Epoch µs, by the clock of the server."""


class Sent(NamedTuple):
    """A message of the connector."""

    change: Written
    at: int
    last: int | None
    """The end of the last commit that the connector has read."""
    server: str = "shop"
    snapshot: str = "false"
    has_sequence: bool = True

    def message(self) -> bytes:
        """As Debezium writes it."""
        last = None if self.last is None else str(self.last)
        source = {"connector": "postgresql", "name": self.server, "db": "d", "schema": "s", "table": self.change.table}
        source |= {"lsn": self.change.lsn, "snapshot": self.snapshot, "ts_us": self.at}
        source |= {"sequence": json.dumps([last, str(self.change.lsn)])} if self.has_sequence else {}
        row = {"id": self.change.key, "value": self.change.value}
        op = "c" if self.snapshot == "false" else "r"
        return json.dumps({"op": op, "before": None, "after": row, "source": source}).encode()


def transactions(
    dice: random.Random,
    count: int,
    *,
    start: int,
    at: int,
    mark: str,
    tables: Sequence[str] = ("t", "u"),
    back: int = 9,
) -> list[Committed]:
    """Return transactions in the order of their commits; up to four are under way at once, some of them for long.

    A row that a transaction changed is locked until its commit. Now and then two commits have one time, and the clock
    is set back by up to ``back`` seconds.
    """
    under_way: list[list[Written]] = []
    done: list[Committed] = []
    lsn = start
    while len(done) < count:
        if len(under_way) < 4 and dice.random() < 0.4:
            under_way.append([])
        if not under_way:
            continue
        chosen = under_way[min(int(dice.expovariate(1)), len(under_way) - 1)]
        lsn += dice.randint(1, 9) * 8
        if len(chosen) < 6 and dice.random() < 0.7:
            table, key = dice.choice(tables), dice.randint(1, 9)
            locked = {(each.table, each.key) for other in under_way if other is not chosen for each in other}
            if (table, key) not in locked:
                chosen.append(Written(lsn, table, key, f"{mark}{lsn}"))
        elif chosen:
            under_way.remove(chosen)
            at += dice.choice([0, 0, 1, 1000, SECOND, 5 * SECOND])
            if back and dice.random() < 0.03:
                at -= dice.randint(1, back) * SECOND
            done.append(Committed(tuple(chosen), lsn + 8, at))
            lsn += 8
    return done


def sent(
    dice: random.Random,
    log: Sequence[Committed],
    *,
    last: int | None = None,
    restarts: float = 0.02,
    server: str = "shop",
) -> list[Sent]:
    """Return the messages of a connector that was killed now and then.

    It goes on behind the message that its stored offset is of, some messages back, with the last commit of then.

    Args:
        dice: decides where it was killed.
        log: what it reads.
        last: the commit of the offset that it begins with; None without an offset.
        restarts: how likely it is killed behind a message.
        server: its name.
    """
    whole: list[Sent] = []
    for transaction in log:
        whole += [Sent(change, transaction.at, last, server) for change in transaction.changes]
        last = transaction.end
    found: list[Sent] = []
    place = 0
    while place < len(whole):
        found.append(whole[place])
        place += 1
        if dice.random() < restarts:
            place = max(0, place - dice.randint(0, 12))
    return found


def loaded(at: int, lsn: int, tables: Sequence[str], last: int | None = None) -> list[Sent]:
    """Return the rows of a complete load at a place of the log."""
    keys = range(1, 10)
    return [Sent(Written(lsn, table, key, "loaded"), at, last, "shop", "true") for table in tables for key in keys]


def in_runs(
    dice: random.Random, messages: Sequence[Sent], runs: int, partitions: int
) -> Iterator[list[tuple[int, int, Sent]]]:
    """Yield for each run the messages with partition and offset, each partition in its order and as far as it is read.

    All changes of a key are in one partition.
    """
    queues: list[list[Sent]] = [[] for _ in range(partitions)]
    for each in messages:
        queues[each.change.key % partitions].append(each)
    read = [0] * partitions
    for run in range(runs):
        taken = []
        for number, queue in enumerate(queues):
            left = len(queue) - read[number]
            take = left if run == runs - 1 else min(left, dice.randint(0, 2 * len(queue) // runs + 1))
            taken.append([(number, offset, queue[offset]) for offset in range(read[number], read[number] + take)])
            read[number] += take
        yield [each for part in taken for each in part]
