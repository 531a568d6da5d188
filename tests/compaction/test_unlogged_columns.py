"""Deleted rows of PostgreSQL whose key alone is logged: what Debezium writes in place of the rest is no value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.histories import UNAVAILABLE
from support.rounds import PROVING, how_many
from support.running import assert_ledger_closes, run_all
from tidemark.lake.lake import Lake
from tidemark.sources.model import Source

pytestmark = [pytest.mark.spark, pytest.mark.more]

_FIELDS = (("id", "int32", {}), ("n", "int32", {}), ("kind", "string", {"default": "plain"}), ("body", "string", {}))
"""Columns that are NOT NULL."""
_TABLES = how_many(usually=("soft",), proving=("hard", "soft"))


def test_no_value_of_a_deleted_row_is_taken_from_what_the_log_does_not_have(
    source: Callable[..., Source], lake: Lake, tmp_path: Path
) -> None:
    """A moved row keeps its large value, a softly deleted one shows its last values; no contradiction is reported."""
    made = source(
        "debezium_json", tables={"app.public.soft": {"deletes": "soft"}}, invariants={"before_images": "warn"}
    )
    loaded = [_record(table, 1, "c", None, _row(key)) for table in _TABLES for key in (1, 2, 3)]
    texts = _deliver(made, tmp_path, loaded)
    changes = [
        _record(table, *change)
        for table in _TABLES
        for change in (
            (2, "d", _unlogged(1), None),
            (2, "c", None, {**_row(101), "body": UNAVAILABLE}),
            (3, "u", None, {**_row(2), "n": 20, "body": UNAVAILABLE}),
            (4, "d", _unlogged(2), None),
        )
    ]
    texts += _deliver(made, tmp_path, changes)
    assert texts == []
    if PROVING:
        assert _rows(lake, made, "hard") == [(3, 7, "other", "long"), (101, 7, "other", "long")]
    assert _rows(lake, made, "soft") == [
        (1, 7, "other", "long"), (2, 20, "other", "long"), (3, 7, "other", "long"), (101, 7, "other", "long"),
    ]  # fmt: skip
    assert_ledger_closes(lake, made.source)


def _row(key: int) -> dict[str, Any]:
    return {"id": key, "n": 7, "kind": "other", "body": "long"}


def _unlogged(key: int) -> dict[str, Any]:
    return {"id": key, "n": 0, "kind": "plain", "body": ""}


def _record(table: str, at: int, op: str, before: Any, after: Any) -> str:
    """A record with the schemas that Kafka Connect's converter writes."""
    fields = [{"field": name, "type": kind, "optional": False, **more} for name, kind, more in _FIELDS]
    rows = [{"field": side, "type": "struct", "optional": True, "fields": fields} for side in ("before", "after")]
    origin = {"connector": "postgresql", "snapshot": "false", "db": "app", "schema": "public", "table": table}
    place = {"txId": at, "lsn": 100 * at, "ts_ms": 1_767_225_600_000 + at * 1000}
    payload = {"op": op, "before": before, "after": after, "source": {**origin, **place}}
    key = {
        "schema": {"type": "struct", "optional": False, "fields": fields[:1]},
        "payload": {"id": (after or before)["id"]},
    }
    value = {"schema": {"type": "struct", "optional": False, "fields": rows}, "payload": payload}
    topic = f"app.public.{table}"
    return json.dumps(
        {"topic": topic, "partition": 0, "offset": at, "key": json.dumps(key), "value": json.dumps(value)}
    )


def _deliver(made: Source, tmp_path: Path, records: list[str]) -> list[str]:
    """The problems and remarks of a run with these records."""
    dump = tmp_path / "landing" / f"{len(list((tmp_path / 'landing').iterdir()))}.jsonl"
    lines = [json.dumps({**json.loads(record), "offset": number}) for number, record in enumerate(records)]
    dump.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [text for report in run_all(made).values() for text in (*report.problems, *report.remarks)]


def _rows(lake: Lake, made: Source, table: str) -> list[tuple[Any, ...]]:
    names = tuple(name for name, _, _ in _FIELDS)
    rows = lake.load((made.source, table)).scan(selected_fields=names).to_arrow().to_pylist()
    return sorted(tuple(row[name] for name in names) for row in rows)
