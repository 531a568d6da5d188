"""The history as Lindorm writes its change data ("Debezium Format V2.0").

The fields are from https://www.alibabacloud.com/help/en/lindorm/ ("Data format" of data subscription). Images have
existing cells only, so a null is a missing column. The only sequence is ``source.ts_ms``. There is no initial load, no
schema, no DDL and no TRUNCATE: changes of rows show the effect of statements. Lindorm's own tables have a key, but no
message names it, so a table without a key looks the same. Numbers keep all their digits, and times are text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal

import msgspec

from tidemark.demo.renderers import connect
from tidemark.demo.renderers.binlog import Change, Logged, log
from tidemark.demo.renderers.debezium_json import millis, unknown_operation
from tidemark.demo.renderers.dump import VALUE_LINES_GZ, DumpFile, Entry, MessageKind, files
from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.story.model import Row, ShopHistory

_OPERATIONS = {"r": "c"}
"""Rows of an initial load are inserts in Lindorm."""


def dump(history: ShopHistory) -> list[DumpFile]:
    """Return the dump files: rows only, each row of a transaction with another millisecond."""
    entries = [entry for logged in log(rows_only(history)) for entry in _entries(logged)]
    return files(entries, [VALUE_LINES_GZ] * 4, random.Random("lindorm"), unknown_operation)  # noqa: S311 - the mixing of a demo


def _entries(logged: Logged) -> Iterator[Entry]:
    transaction = logged.transaction
    for number, change in enumerate(logged.changes):
        message = _message(change, millis(transaction) + number)
        again = bool(change.schema.key)
        yield Entry(
            kind=MessageKind.ROWS, day=change.day, late=transaction.late, rows=1, value=message, repeatable=again
        )


def _message(change: Change, ts_ms: int) -> bytes:
    source = {
        "version": "v2.0",
        "db": "ld-shop",
        "namespace": "shop",
        "table": change.schema.table,
        "ts_ms": ts_ms,
    }
    payload = {
        "op": _OPERATIONS.get(change.op, change.op),
        "ts_ms": ts_ms + 8,
        "before": _cells(change.before),
        "after": _cells(change.after),
        "source": source,
    }
    return msgspec.json.encode({"schema": {}, "payload": payload})


def _cells(row: Row | None) -> connect.Json | None:
    if row is None:
        return None
    texts = connect.as_text(row) or {}
    numbers = {
        name: msgspec.Raw(format(value, "f").encode()) for name, value in row.items() if isinstance(value, Decimal)
    }
    return {name: numbers.get(name, text) for name, text in texts.items() if text is not None}
