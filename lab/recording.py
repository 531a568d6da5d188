"""Recordings of the lab: a few tables of one setting, which a test publishes and compares again."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
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
    told = {
        **source,
        "tables": said_of,
        "truths": [dataclasses.asdict(truths[name]) for name in _TABLES if name in truths],
    }
    text = json.dumps(told, ensure_ascii=False, indent=1)
    (folder / "recording.json").write_text(f"{text}\n", encoding="utf-8")


def of_tables(records: Sequence[Record], tables: Sequence[str]) -> Iterator[Record]:
    """Yield the records of tables: rows and their tombstones, statements, and the markers of their transactions."""
    payloads = [_payload(each) for each in records]
    blocks = [payload.get("transaction") for payload in payloads if _table(payload) in tables]
    transactions = {_transaction(block["id"]) for block in blocks if block}
    for each, payload in zip(records, payloads, strict=True):
        table = _table(payload) or each.topic.rsplit(".", 1)[-1]
        if table in tables or ("status" in payload and _transaction(payload["id"]) in transactions):
            yield each


def _transaction(name: str) -> str:
    """The transaction of an id. Those of PostgreSQL have the place of the single message behind it: ``txId:lsn``."""
    placed = re.fullmatch(r"(\d+):\d+", name)
    return placed[1] if placed else name


def _payload(record: Record) -> dict[str, Any]:
    message = json.loads(record.value or "{}")
    payload: dict[str, Any] = message.get("payload", message)
    return payload


def _table(payload: Mapping[str, Any]) -> str | None:
    """The table of a row or a statement: of Debezium, flattened, or of Canal."""
    table: str | None = (payload.get("source") or payload).get("table") or payload.get("__table")
    return table
