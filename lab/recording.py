"""Recordings of the lab: a few tables of one setting, which a test publishes and compares again."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from producers import Record

from support.comparing import Truth

_TABLES: Final = ("numbers", "texts", "byte_keys", "key_moves", "bag", "emptied", "grown")


def record(folder: Path, source: Mapping[str, Any], records: Sequence[Record], truths: Mapping[str, Truth]) -> None:
    """Write the records of some tables, with their transactions and statements, and the rows that the database had.

    Args:
        folder: of the recording.
        source: format, options and tables of the source file.
        records: of all tables, in order.
        truths: all tables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{each.line()}\n" for each in of_tables(records, _TABLES))
    (folder / "dump.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    said_of = {name: said for name, said in source["tables"].items() if name.rsplit(".", 1)[-1] in _TABLES}
    recording = {
        **source,
        "tables": said_of,
        "truths": [dataclasses.asdict(truths[name]) for name in _TABLES if name in truths],
    }
    text = json.dumps(recording, ensure_ascii=False, indent=1)
    (folder / "recording.json").write_text(f"{text}\n", encoding="utf-8")


def of_tables(records: Sequence[Record], tables: Sequence[str]) -> Iterator[Record]:
    """Yield the records of tables, and what concerns no table, as heartbeats.

    Of a table there are rows and their tombstones, statements, and all else of its transactions.
    """
    topics, payloads = {_topic(name) for name in tables}, [_payload(each) for each in records]
    of_these = [_is_of(each, payload, tables, topics) for each, payload in zip(records, payloads, strict=True)]
    transactions = {_transaction(payload) for payload, is_one in zip(payloads, of_these, strict=True) if is_one}
    for each, payload, is_one in zip(records, payloads, of_these, strict=True):
        of_transaction = _transaction(payload)
        if is_one or (of_transaction and of_transaction in transactions and not _table(payload)):
            yield each


def _is_of(record: Record, payload: Mapping[str, Any], tables: Sequence[str], topics: Collection[str]) -> bool:
    """Return whether a record is of these tables, or of no table and no transaction.

    Some statements name several tables.
    """
    if not payload:  # a tombstone, with a schema or without, names its table in the topic alone
        return _topic(record.topic.rsplit(".", 1)[-1]) in topics
    if named := _table(payload):
        return any(name in tables for name in (named, *named.split(",")))
    return _transaction(payload) is None


def _topic(name: str) -> str:
    """Return what the name of a topic makes of the name of a table."""
    return re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)


def _transaction(payload: Mapping[str, Any]) -> str | None:
    """Return the transaction of a row, a message or a marker, if it names one.

    Ids of PostgreSQL have the place of the single message behind them: ``txId:lsn``.
    """
    named = payload["id"] if "status" in payload else (payload.get("transaction") or {}).get("id")
    placed = re.fullmatch(r"(\d+):\d+", named or "")
    return placed[1] if placed else named


def _payload(record: Record) -> dict[str, Any]:
    message = json.loads(record.value or "{}")
    payload: dict[str, Any] | None = message.get("payload", message)
    return payload or {}


def _table(payload: Mapping[str, Any]) -> str | None:
    """Return the table of a row or a statement: of Debezium, flattened, or of Canal."""
    table: str | None = (payload.get("source") or payload).get("table") or payload.get("__table")
    return table
