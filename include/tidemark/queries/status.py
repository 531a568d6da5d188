"""``tidemark status``: where the tables of a source stand, from the ledger alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from tidemark.ddl.history import RENAMED_TO, histories
from tidemark.ddl.rename_signs import RenameSign, rename_signs
from tidemark.ddl.table_renames import TableRenames
from tidemark.lake import names
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.check_rows import RENAMED
from tidemark.ledger.event_counts import NO_EVENTS, EventCounts
from tidemark.ledger.failed_checks import failed_checks, named
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import DisorderRow
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.reconciliation_rows import ReconciliationRow
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.ledger.waiting import waiting
from tidemark.queries.log_states import log_states
from tidemark.queries.status_answer import LogState, SourceTransactions, Status, TableStatus
from tidemark.values.iso8601 import EPOCH, text_of


def status_of(lake: Lake, source: str, ledger: Ledger | None = None) -> Status:
    """Return the cut, the messages and the tables of one source, ready for JSON.

    Times are ISO 8601, UTC. The counts of a table are totals over its published cuts and the newest cut; each event is
    counted in one of them. ``ledger`` is the ledger of the source, where the caller has one that was read already.
    """
    ledger = ledger or ReadOnce(lake, source)
    newest, published = ledger.last_cut(), cuts.last_published(ledger)
    batches = ledger.batches()
    landed, decoded, control, quarantined = (sum(getattr(row, name) for row in batches) for name in MESSAGES)
    rows = {**ledger.published_tables()}
    for row in cuts.tables_of(ledger, newest.cut) if newest else []:
        rows[row.object] = row
    published_at = published.written_at if published else None
    compared = ledger.last_reconciliations()
    feeds = _feeds(lake, rows.values())
    logs = log_states(ledger)
    return {
        "source": source,
        "cut": {"number": newest.cut, "state": newest.state} if newest else None,
        "published_cut": published.cut if published else None,
        "published_at": text_of(published_at),
        "lag_seconds": _lag(published_at),
        "log": logs.source,
        "messages": {"landed": landed, "decoded": decoded, "control": control, "quarantined": quarantined},
        "closes": landed == decoded + control + quarantined,
        "refused": {row.path: row.problem for row in ledger.refusals()},
        "disorders": {row.object: str(row) for row in _disorders(ledger)},
        "ddl_not_followed": _not_followed(ledger, rows),
        "rename_signs": {sign.new: str(sign) for sign in _rename_signs(ledger)},
        "transactions": _transactions(ledger),
        "tables": {
            row.target or name: _table(ledger, name, row, compared.get(name), feeds, logs.tables.get(name))
            for name, row in sorted(rows.items())
        },
    }


def _not_followed(ledger: Ledger, rows: Mapping[str, TableRow]) -> dict[str, list[str]]:
    """Return by table the statements that were not followed. A rename is left out unless a check reported it."""
    in_doubt = {row.target for row in ledger.checks(equals("name", RENAMED), equals("success", value=False))}
    found = {}
    for name, history in sorted(histories(ledger, rows).items()):
        is_reported = rows[name].target in in_doubt
        texts = [note.text for note in history.notes if is_reported or not note.text.startswith(RENAMED_TO)]
        if texts:
            found[name] = texts
    return found


def failed_by_table(lake: Lake, found: Sequence[Status]) -> dict[str, dict[str, list[str]]]:
    """Return source -> table -> the checks that failed, for each status in ``found`` whose newest cut failed."""
    failed: dict[str, dict[str, list[str]]] = {}
    for entry in found:
        if entry["cut"] and entry["cut"]["state"] == CutState.FAILED:
            of_source = failed.setdefault(entry["source"], {})
            for row in failed_checks(Ledger(lake, entry["source"]), entry["cut"]["number"]):
                of_source.setdefault(row.target, []).append(named(row))
    return failed


MESSAGES = ("landed", "decoded", "control", "quarantined")
"""Counts of messages; the first one must equal the sum of the others."""


_DISORDER_DAYS = 7
"""Days for which a disorder of files is shown."""


def _disorders(ledger: Ledger) -> list[DisorderRow]:
    """Return the disorders of files that were found lately, the newest last."""
    since = datetime.now(UTC) - timedelta(days=_DISORDER_DAYS)
    rows = [row for row in ledger.disorders() if row.written_at is not None and row.written_at >= since]
    return sorted(rows, key=lambda row: row.batch)


def _rename_signs(ledger: Ledger) -> list[RenameSign]:
    """Return the tables that may be others under a new name, as no statement says."""
    contents = ledger.contents()
    statements = ledger.ddl()
    known = TableRenames(statements, {row.object for row in contents}).by_table()
    return rename_signs(ledger.spans(), ledger.shapes(), contents, known)


def _feeds(lake: Lake, rows: Iterable[TableRow]) -> set[str]:
    """Return the names of all feeds in the namespaces of some tables."""
    namespaces = {row.identifier.namespace for row in rows if row.target}
    return {f"{each}.{name}" for each in namespaces for name in lake.tables(each) if names.is_feed(name)}


def _lag(at: datetime | None) -> int | None:
    return None if at is None else int((datetime.now(UTC) - at).total_seconds())


def _transactions(ledger: Ledger) -> SourceTransactions:
    """Return the open transactions, the oldest first, how many are not, and what none of them waits for.

    ``since`` is the time of the normalize that first saw an event of the transaction, ``committed_at`` the commit time
    of its earliest event. ``not_awaited`` has the collections that ends of transactions count, and that never landed,
    with the commit time of the newest transaction that did not wait for them.
    """
    rows, given_up = ledger.transactions(), ledger_transactions.given_up(ledger).ids
    newest = ledger_transactions.as_of(rows)
    facts = ledger_transactions.facts(newest) or ledger_transactions.Facts()
    return {
        "open": [
            {
                "id": each.id,
                "since": each.since.isoformat(),
                "committed_at": text_of(each.first),
                "events": each.events,
                "tables": dict(each.tables),
                "ended": each.ended,
                "missing": msgspec.to_builtins(each.lacks),
                "why": each.why,
            }
            for each in waiting(rows, but=given_up)
        ],
        "given_up": len(given_up),
        "rolled_back": sum(row.state == ledger_transactions.UNDONE for row in newest.values()),
        "not_awaited": {
            name: None if at is None else (EPOCH + timedelta(microseconds=at)).isoformat()
            for name, at in sorted(facts.elsewhere.items())
        },
    }


def _table(
    ledger: Ledger,
    name: str,
    newest: TableRow,
    compared: ReconciliationRow | None,
    feeds: Collection[str],
    log: LogState | None,
) -> TableStatus:
    """Return the state and the counts of one table.

    Args:
        ledger: the ledger of its source.
        name: the table as the source names it.
        newest: its row of the newest cut, or the published one.
        compared: how it last compared with the source database.
        feeds: names of all feeds.
        log: the log that it is in, after the first one.
    """
    rows = ledger.tables(equals("object", name))
    # A rebuilt table counts all of its events again.
    rebuilt = max((row.cut for row in rows if row.rebuilt and row.state != TableState.STOPPED), default=0)
    done = [row for row in rows if row.state != TableState.STOPPED and row.cut >= rebuilt]
    seen = (row.committed_at for row in done if row.state == TableState.PUBLISHED)
    committed = max((at for at in seen if at is not None), default=None)
    # Held events come again in the cut that takes them: only the newest cut says how many are held now.
    taken = sum((msgspec.structs.replace(row.counts, events=row.events - row.held, held=0) for row in done), NO_EVENTS)
    counts = taken + EventCounts(events=newest.held, held=newest.held)
    feed = str(names.feed(newest.identifier)) if newest.target else ""
    return {
        "object": name,
        "state": newest.state,
        "reason": newest.reason,
        "verdict": newest.verdict,
        "rows": newest.rows_after,
        "rows_before": newest.rows_before,
        "deleted": newest.deleted,
        "committed_at": text_of(committed),
        "lag_seconds": _lag(committed),
        "events": counts.events,
        "applied": counts.applied,
        "superseded": counts.superseded,
        "duplicate": counts.duplicate,
        "held": counts.held,
        "quarantined": counts.quarantined,
        "erased": counts.erased,
        "closes": counts.closes,
        "reconciled": compared.result if compared else None,
        "verified_through": text_of(compared.verified_through) if compared else None,
        "verified_place": compared.verified_place if compared else None,
        "feed": feed if feed in feeds else None,
        "log": log,
    }
