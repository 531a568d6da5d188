"""Answers of ``status_of``, made by hand."""

from __future__ import annotations

from typing import Any

from tidemark.ledger.event_counts import NO_EVENTS


def table_status(**fields: Any) -> dict[str, Any]:
    """A table in an answer of ``status_of``."""
    counts = dict.fromkeys(("rows", *NO_EVENTS.by_name()), 0)
    states = {"verdict": "passed", "state": "published", "reason": None, "closes": True, "lag_seconds": 1_000_000}
    states |= {"log": None, "reconciled": None, "verified_through": None}
    return {**counts, **states, **fields}


def source_status(name: str, tables: dict[str, Any], state: str = "published") -> dict[str, Any]:
    """An answer of ``status_of``."""
    return {
        "source": name,
        "cut": {"number": 4, "state": state},
        "published_cut": 4,
        "published_at": "2026-01-04T00:00:00+00:00",
        "closes": True,
        "log": None,
        "messages": {"landed": 3, "decoded": 2, "control": 1, "quarantined": 0},
        "tables": tables,
        "refused": {},
        "disorders": {},
        "rename_signs": {},
        "ddl_not_followed": {},
        "transactions": {"open": [], "not_awaited": {}},
    }
