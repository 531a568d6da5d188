"""The history as Lindorm's change data has it ("Debezium Format V2.0").

Field list by https://www.alibabacloud.com/help/en/lindorm/ ("Data format" of data subscription): images hold existing
cells only, so a null is a column that is missing; there is no sequence but ``source.ts_ms``, no initial load, no
schema, no DDL and no TRUNCATE: what statements did is told by rows. Lindorm's own tables have a key, which no message
names; so one without a key looks no different. Numbers keep all their digits, times are text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal

import msgspec

from tidemark.demo.renderers import connect
from tidemark.demo.renderers.binlog import Change, Logged, log
from tidemark.demo.renderers.debezium_json import files, millis
from tidemark.demo.renderers.dump import VALUE_LINES_GZ, DumpFile, Entry, Kind
from tidemark.demo.renderers.rows_only import rows_only
from tidemark.demo.story.model import History, Row

_OPERATIONS = {"r": "c"}
"""Lindorm tells the rows of an initial load as inserts."""


def dump(history: History) -> list[DumpFile]:
    """Render the history: rows only, each at a millisecond of its own."""
    entries = [entry for logged in log(rows_only(history)) for entry in _entries(logged)]
    return files(entries, [VALUE_LINES_GZ] * 4, random.Random("lindorm"))  # noqa: S311 - the mixing of a demo


def _entries(logged: Logged) -> Iterator[Entry]:
    transaction = logged.transaction
    for number, change in enumerate(logged.changes):
        message = _message(change, millis(transaction) + number)
        again = bool(change.schema.key)
        yield Entry(kind=Kind.ROWS, day=change.day, late=transaction.late, rows=1, value=message, repeatable=again)


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
