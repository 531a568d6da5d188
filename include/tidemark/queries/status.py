"""``tidemark status``: where the tables of a source stand, from the ledger alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tidemark.ddl.history import histories
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger


def status_of(lake: Lake, source: str) -> dict[str, Any]:
    """Cut, messages and tables of one source, ready for JSON; times ISO 8601, UTC; the keys are told in the docs.

    Counts of a table are totals over its published cuts and the newest one; each event is in one of them.
    """
    ledger = Ledger(lake, source)
    newest, published = ledger.last_cut(), cuts.last_published(ledger)
    batches = ledger.read("batches")
    messages = {name: sum(row[name] for row in batches) for name in ("landed", "decoded", "control", "quarantined")}
    rows = {**ledger.published_tables()}
    for row in cuts.tables_of(ledger, newest["cut"]) if newest else []:
        rows[row["object"]] = row
    return {
        "source": source,
        "cut": newest and {"number": newest["cut"], "state": newest["state"]},
        "published_cut": published and published["cut"],
        "published_at": published and published["at"].isoformat(),
        "lag_seconds": published and int((datetime.now(UTC) - published["at"]).total_seconds()),
        "messages": messages,
        "closes": _closes(messages, "landed"),
        "refused": {row["path"]: row["problem"] for row in ledger.read("refusals")},
        "ddl_not_followed": {name: told for name, told in _ddl_not_followed(ledger, rows).items() if told},
        "transactions": _transactions(ledger),
        "tables": {row["target"] or name: _table(ledger, name, row) for name, row in sorted(rows.items())},
    }


def _ddl_not_followed(ledger: Ledger, tables: Iterable[str]) -> dict[str, list[str]]:
    told = histories(ledger, tables)
    return {name: [note.text for note in history.notes] for name, history in sorted(told.items())}


def _transactions(ledger: Ledger) -> dict[str, Any]:
    """Since when: the normalize that first saw an event of it."""
    told = ledger.read("transactions")
    began: dict[str | None, datetime] = {}
    for row in told:
        began[row["id"]] = min(row["at"], began.get(row["id"], row["at"]))
    newest = [row for id_, row in ledger_transactions.as_of(told).items() if id_ is not None]
    waiting = sorted(
        (row for row in newest if row["state"] == ledger_transactions.OPEN),
        key=lambda row: (began[row["id"]], row["id"]),
    )
    return {
        "open": [
            {
                "id": row["id"],
                "since": began[row["id"]].isoformat(),
                "events": row["events"],
                "tables": {
                    name: events for name, (events, _) in sorted(ledger_transactions.seen_of(row).tables.items())
                },
            }
            for row in waiting
        ],
        "rolled_back": sum(row["state"] == ledger_transactions.UNDONE for row in newest),
    }


def _table(ledger: Ledger, name: str, newest: dict[str, Any]) -> dict[str, Any]:
    rows = ledger.read("tables", equals("object", name))
    # A rebuilt table counts all of its events again.
    rebuilt = max((row["cut"] for row in rows if row["rebuilt"] and row["state"] != cuts.STOPPED), default=0)
    done = [row for row in rows if row["state"] != cuts.STOPPED and row["cut"] >= rebuilt]
    counts = {count: sum(row[count] or 0 for row in done) for count in _TAKEN}
    seen = (row["committed_at"] for row in done if row["state"] == cuts.PUBLISHED)
    committed = max((at for at in seen if at is not None), default=None)
    # Held events come again in the cut that takes them: only the newest cut tells how many there are now.
    taken = sum(row["events"] - row["held"] for row in done)
    events = {"events": taken + newest["held"], **counts, "held": newest["held"]}
    return {
        "object": name,
        "state": newest["state"],
        "reason": newest["reason"],
        "verdict": newest["verdict"],
        "rows": newest["rows_after"],
        "rows_before": newest["rows_before"],
        "deleted": newest["deleted"],
        "committed_at": committed and committed.isoformat(),
        "lag_seconds": committed and int((datetime.now(UTC) - committed).total_seconds()),
        **events,
        "closes": _closes(events, "events"),
    }


_TAKEN = ("applied", "superseded", "duplicate", "quarantined")


def _closes(counts: Mapping[str, int], total: str) -> bool:
    return counts[total] == sum(count for name, count in counts.items() if name != total)
