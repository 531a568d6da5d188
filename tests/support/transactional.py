"""Transactions as plain values, and as the messages of the formats that mark where they end.

A transaction changes rows of tables whose columns are ``id`` and ``name``; its changes are numbered over the whole log.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from support import dts_records, replicate_messages
from support.reference import Change, Row
from tidemark.events import Operation

TABLES = ("one", "two", "three")
_CODES = {Operation.INSERT: "c", Operation.UPDATE: "u", Operation.DELETE: "d"}
_MILLIS = 1_767_225_600_000


class Step(NamedTuple):
    """One message: a change of a transaction, or a marker of it (no change)."""

    transaction: int
    number: int
    """From 1; of the marker at the end the count."""
    size: int
    change: Change | None
    mark: str = ""
    """BEGIN, END, ROLLBACK."""


def _millis(step: Step) -> int:
    """Commit time, epoch ms: a transaction each half day."""
    return _MILLIS + step.transaction * 43_200_000


def change(table: str, place: int, operation: Operation, id_: int, name: str) -> Change:
    """A change of the row ``id_`` at a place of the log."""
    row: Row = {"id": id_, "name": name}
    before = row if operation is not Operation.INSERT else None
    after = row if operation is not Operation.DELETE else None
    return Change(table, operation, (place,), ("id",), before, after)


def transaction(id_: int, *changes: Change, end: str = "END") -> list[Step]:
    """The steps of a transaction in order: BEGIN, its changes, its end."""
    steps = [Step(id_, number, len(changes), each) for number, each in enumerate(changes, 1)]
    marks = [Step(id_, 0, len(changes), None, "BEGIN"), Step(id_, len(changes), len(changes), None, end)]
    return [marks[0], *steps, marks[1]]


def generated(seed: int, count: int) -> list[list[Step]]:
    """Make up transactions over three tables: the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311  a test's own mixing
    place = 0
    made = []
    for id_ in range(1, count + 1):
        changes = []
        for _ in range(dice.randint(1, 5)):
            place += 1
            operation = dice.choice((Operation.INSERT, Operation.UPDATE, Operation.UPDATE, Operation.DELETE))
            changes.append(change(dice.choice(TABLES), place, operation, dice.randint(1, 5), f"v{place}"))
        made.append(transaction(id_, *changes))
    return made


def debezium(step: Step) -> bytes | None:
    """As Debezium for MySQL writes it with ``provide.transaction.metadata``."""
    id_ = f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{step.transaction}"
    at = _millis(step) + 1000 * step.number  # MySQL's log has the time of each statement
    if step.change is None:
        if step.mark == "ROLLBACK":
            return None
        marker: dict[str, Any] = {"status": step.mark, "id": id_, "ts_ms": at}
        return json.dumps(marker | ({"event_count": step.number} if step.mark == "END" else {})).encode()
    origin = {"connector": "mysql", "snapshot": "false", "db": "shop", "table": step.change.table}
    return json.dumps({
        "op": _CODES[step.change.operation],
        "before": step.change.before,
        "after": step.change.after,
        "source": {**origin, "ts_ms": at, "file": "mysql-bin.000003", "pos": step.change.position[0], "row": 0},
        "transaction": {"id": id_, "total_order": step.number, "data_collection_order": 1},
    }).encode()  # fmt: skip


def shareplex(step: Step) -> bytes | None:
    """As SharePlex writes it: number and size, no markers."""
    if step.change is None:
        return None
    codes = {Operation.INSERT: "ins", Operation.UPDATE: "upd", Operation.DELETE: "del"}
    meta = {
        "op": codes[step.change.operation],
        "table": f"shop.{step.change.table}",
        "scn": str(1000 + step.transaction),
        "trans": f"7.1.{step.transaction}",
        "seq": step.number,
        "size": step.size,
        "time": datetime.fromtimestamp(_millis(step) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    }
    images = {"data": step.change.after or step.change.before}
    if step.change.operation is Operation.UPDATE:
        images["key"] = step.change.before
    return json.dumps({"meta": meta, **images}).encode()


_STRUCTURES = {table: f"{number:032X}" for number, table in enumerate(TABLES, 1)}
_COLUMNS = {"id": replicate_messages.column(1, "INT8", key=1), "name": replicate_messages.column(2, "STRING")}


def replicate(step: Step) -> bytes | None:
    """As Replicate writes it: a number and the last-event flag, no markers."""
    if step.change is None:
        return None
    names = {Operation.INSERT: "INSERT", Operation.UPDATE: "UPDATE", Operation.DELETE: "DELETE"}
    row = replicate_messages.row(
        names[step.change.operation],
        step.change.after or step.change.before,
        step.change.before if step.change.operation is Operation.UPDATE else None,
        seq=step.change.position[0],
        timestamp=datetime.fromtimestamp(_millis(step) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000"),
        transactionId=f"{step.transaction:032X}",
        transactionEventCounter=step.number,
        transactionLastEvent=step.number == step.size,
    )
    return replicate_messages.in_json("DT", row, _STRUCTURES[step.change.table])


def replicate_metadata() -> list[bytes]:
    """The structures of the tables."""
    return [
        replicate_messages.in_json("MD", replicate_messages.metadata(_COLUMNS, id_, table), id_)
        for table, id_ in _STRUCTURES.items()
    ]


def dts(step: Step) -> bytes:
    """As DTS writes it: BEGIN, COMMIT and ROLLBACK name the transaction; a Kafka record as a line."""
    notation: dict[str, Any] = {"txid": str(step.transaction), "seconds": _millis(step) // 1000}
    if step.change is None:
        notation |= {"operation": "COMMIT" if step.mark == "END" else step.mark, "position": f"{step.transaction}@0"}
    else:
        before, after = (
            row and [{"Integer": str(row["id"])}, {"Character": row["name"]}]
            for row in (step.change.before, step.change.after)
        )
        notation |= {
            "operation": step.change.operation.value,
            "object": f"shop.{step.change.table}",
            "position": f"{step.change.position[0]}@3",
            "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'},
            "fields": [["id", 8], ["name", 253]],
            "before": before,
            "after": after,
        }
    dts.offset += 1  # type: ignore[attr-defined]
    record = {"topic": "t", "partition": 0, "offset": dts.offset, "timestamp": _MILLIS, "key": None}  # type: ignore[attr-defined]
    return json.dumps({**record, "value": base64.b64encode(dts_records.encode(notation)).decode()}).encode()


dts.offset = 0  # type: ignore[attr-defined]


def number_of(id_: str) -> int:
    """The transaction that an id names, as any of these formats writes it."""
    return int(id_, 16) if len(id_) == 32 else int(re.split("[.:]", id_)[-1])


Write = Callable[[Step], bytes | None]
FORMATS: dict[str, Write] = {
    "debezium_json": debezium,
    "shareplex_json": shareplex,
    "replicate_json": replicate,
    "dts_avro": dts,
}
SENDS_MARKERS = frozenset({"debezium_json", "dts_avro"})


def written(format_name: str, steps: Iterable[Step]) -> list[bytes]:
    """Messages of a format; steps that it does not send are left out."""
    return [line for line in map(FORMATS[format_name], steps) if line is not None]


def whole(format_name: str, transactions: Sequence[Sequence[Step]], delivered: Iterable[Step]) -> list[Change]:
    """The reference: changes of the transactions that were delivered whole, as far as the format sends their steps."""
    there = {(step.transaction, step.number, step.mark) for step in delivered}
    found = []
    for steps in transactions:
        sent_steps = [step for step in steps if step.mark != "BEGIN" and (step.change or format_name in SENDS_MARKERS)]
        needed = {(step.transaction, step.number, step.mark) for step in sent_steps}
        if steps[-1].mark == "END" and needed <= there:
            found += [step.change for step in steps if step.change is not None]
    return found
