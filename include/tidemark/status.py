"""``tidemark status``: where the tables of a source stand, from the ledger alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tidemark import cuts
from tidemark.lake import Lake
from tidemark.ledger import Ledger, equals


def status_of(lake: Lake, source: str) -> dict[str, Any]:
    """Cut, messages and tables of one source, ready for JSON; times ISO 8601, UTC.

    Keys: ``source``, ``cut`` (number and state of the newest), ``published_cut``, ``published_at``, ``lag_seconds``
    (since then), ``messages`` (landed, decoded, control, quarantined), ``refused`` (files, with the reason), ``tables``
    (by published name, or by the source's name when it was never published).
    """
    ledger = Ledger(lake, source)
    newest, published = ledger.last_cut(), cuts.last_published(ledger)
    batches = ledger.read("batches")
    names = ("landed", "decoded", "control", "quarantined")
    rows = {**ledger.published_tables()}
    for row in cuts.tables_of(ledger, newest["cut"]) if newest else []:
        rows[row["object"]] = row
    return {
        "source": source,
        "cut": newest and {"number": newest["cut"], "state": newest["state"]},
        "published_cut": published and published["cut"],
        "published_at": published and published["at"].isoformat(),
        "lag_seconds": published and int((datetime.now(UTC) - published["at"]).total_seconds()),
        "messages": {name: sum(row[name] for row in batches) for name in names},
        "refused": {row["path"]: row["problem"] for row in ledger.read("refusals")},
        "tables": {row["target"] or name: _table(ledger, name, row) for name, row in sorted(rows.items())},
    }


def _table(ledger: Ledger, name: str, newest: dict[str, Any]) -> dict[str, Any]:
    counts = ("events", "applied", "superseded", "duplicate", "quarantined")
    rows = [row for row in ledger.read("tables", equals("object", name)) if row["state"] != cuts.STOPPED]
    # A rebuilt table counts all of its events again.
    rebuilt = max((row["cut"] for row in rows if row["rebuilt"]), default=0)
    rows = [row for row in rows if row["cut"] >= rebuilt]
    return {
        "object": name,
        "state": newest["state"],
        "reason": newest["reason"],
        "verdict": newest["verdict"],
        "rows": newest["rows_after"],
        "held": newest["held"],
        **{count: sum(row[count] or 0 for row in rows) for count in counts},
    }
