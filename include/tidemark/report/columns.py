"""The schema timeline of a source: statements that landed, and columns that messages began to describe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from tidemark.ledger.rows import ShapeRow, StatementRow
from tidemark.text import listed, without_values

_MOST = 200
"""Most entries of a timeline; the newest ones are kept."""

_NAMED = 12
"""Most columns that one entry names."""


def schema_changes(
    statements: Iterable[StatementRow], shapes: Iterable[ShapeRow], times: Mapping[int, datetime]
) -> list[dict[str, Any]]:
    """Return what is known to have changed in the columns of a source, the newest first.

    Args:
        statements: what the ledger keeps of DDL and initial loads.
        shapes: what the ledger keeps of the columns that messages describe.
        times: when each batch was written.

    Returns:
        Entries with ``at`` (of the statement, else of the batch), ``batch``, ``table``, ``kind`` (``statement``,
        ``load``, ``columns``) and ``text``.
    """
    found = [_statement(row) for row in statements] + list(_columns(shapes))
    for entry in found:
        at = entry["at"] or times.get(entry["batch"])
        entry["at"] = at and at.isoformat()
    found.sort(key=lambda entry: (entry["batch"], entry["at"] or "", entry["table"], entry["kind"]))
    return found[: -_MOST - 1 : -1]


def _statement(row: StatementRow) -> dict[str, Any]:
    name = ".".join(part for part in (row.database, row.schema, row.name) if part)
    text = "an initial load began" if row.is_load else without_values(row.statement)
    kind = "load" if row.is_load else "statement"
    return {"at": row.at, "batch": row.batch, "table": name, "kind": kind, "text": text}


def _columns(shapes: Iterable[ShapeRow]) -> Iterable[dict[str, Any]]:
    """Yield, for each table and batch, the columns that its messages describe for the first time, or as other types."""
    types: dict[str, dict[str, str | None]] = {}
    fresh: dict[tuple[str, int], dict[str, str]] = {}
    for row in sorted(shapes, key=lambda row: (row.batch, row.object, row.shape)):
        known = types.setdefault(row.object, {})
        for column in row.parsed().columns:
            texts = fresh.setdefault((row.object, row.batch), {})
            if column.name not in known:
                texts[column.name] = f"{column.name} {column.type or ''}".strip()
            elif column.type and known[column.name] and known[column.name] != column.type:
                texts.setdefault(column.name, f"{column.name} {known[column.name]} → {column.type}")
            known[column.name] = column.type or known.get(column.name)
    for (name, batch), texts in fresh.items():
        if texts:
            yield {
                "at": None,
                "batch": batch,
                "table": name,
                "kind": "columns",
                "text": listed(list(texts.values()), _NAMED),
            }
