"""The history as SharePlex writes it in JSON: every value is text.

An update has the changed columns and the whole row before it. In one transaction of three, an update is two messages:
the row before and the row after.

Fields are from "Data formats of a Kafka cluster" of DTS. There is no initial load: its rows are inserts. There is no
schema, and no DDL except TRUNCATE: changes of rows show the effect of other statements.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

import msgspec

from tidemark.demo.renderers import connect
from tidemark.demo.renderers.dump import (
    RECORD_PARQUET,
    VALUE_LINES_BZ2,
    VALUE_LINES_GZ,
    VALUE_LINES_ZST,
    DumpFile,
    Entry,
    MessageKind,
    files,
)
from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.renderers.single import Single, singles
from tidemark.demo.story.model import Row, ShopHistory
from tidemark.events import Operation

_OPERATIONS = {
    Operation.SNAPSHOT: "ins",
    Operation.INSERT: "ins",
    Operation.UPDATE: "upd",
    Operation.DELETE: "del",
    Operation.TRUNCATE: "truncate",
}

_FIRST_SCN = 14_589_063_118_000

_PACKINGS = (VALUE_LINES_GZ, RECORD_PARQUET, VALUE_LINES_BZ2, VALUE_LINES_ZST)
"""One for each day."""


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: rows only, each with its number in the transaction."""
    entries = [entry for single in singles(rows_only(history, truncates=True)) for entry in _entries(single)]
    return files(entries, _PACKINGS, random.Random("shareplex"), _unknown_operation)  # noqa: S311 - a demo's mixing


def _entries(single: Single) -> Iterator[Entry]:
    transaction = single.transaction
    for op, images in _messages(single):
        yield Entry(
            kind=MessageKind.ROWS,
            day=single.day,
            late=transaction.late,
            rows=1,
            value=msgspec.json.encode({"meta": _meta(single, op), **images}),
            topic="shareplex",
            timestamp=int(transaction.committed_at.timestamp()) * 1000 + 700,
        )


def _meta(single: Single, op: str) -> connect.Json:
    transaction, event = single.transaction, single.event
    size = max(1, len(transaction.events))
    return {
        "time": f"{transaction.committed_at:%Y-%m-%dT%H:%M:%S}",
        "userid": 84,
        "op": op,
        "scn": str(_FIRST_SCN + 7 * transaction.id),
        "rowid": "AAATGpAAIAAItcIAAA",
        "trans": f"7.{transaction.id % 34}.{411_000 + transaction.id}",
        "seq": event.number,
        "size": size,
        "table": f"shop.{event.table}",
        "idx": f"{event.number}/{size}",
        "posttime": f"{transaction.committed_at + timedelta(seconds=9):%Y-%m-%dT%H:%M:%S}",
    }


def _messages(single: Single) -> list[tuple[str, connect.Json]]:
    """Return operation and images of each message of a row event."""
    before, after = single.event.before, single.event.after
    operation = _OPERATIONS[single.event.operation]
    if single.event.operation is Operation.TRUNCATE:
        return [(operation, {})]
    if before is None or after is None:
        return [(operation, {"data": _texts(after or before or {})})]
    if single.transaction.id % 3 == 0:
        return [("UPDATE BEFORE", {"data": _texts(before)}), ("UPDATE AFTER", {"data": _texts(after)})]
    changed = {name: value for name, value in after.items() if value != before[name]}
    return [(operation, {"data": _texts(changed), "key": _texts(before)})]


def _texts(row: Row) -> connect.Json:
    """Return a row with every value as text, and numbers with all their digits."""
    written = connect.as_text(row) or {}
    return {name: value if value is None else str(value) for name, value in written.items()}


def _unknown_operation(value: bytes) -> bytes:
    message = msgspec.json.decode(value)
    return msgspec.json.encode({**message, "meta": {**message["meta"], "op": "merge"}})
