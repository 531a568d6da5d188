"""Where the published tables stand, and whether anything is left for a run to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from tidemark.compaction.run import Cut, Standing
from tidemark.ledger import cuts
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import BY_HAND, Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import LEFT_BEHIND, CutState, TableState
from tidemark.ledger.transactions import OPEN, GivenUp
from tidemark.normalization.build_digest import is_built_by_another
from tidemark.sources.choices import Transactions
from tidemark.sources.model import Source
from tidemark.tables import schema_policies


def standing_of(last: CutRow | None, published: Mapping[str, TableRow], more: Mapping[str, int]) -> Standing:
    """Return where the published tables stand.

    Args:
        last: the newest published cut.
        published: ``Ledger.published_tables``. A stopped table and one that is still waiting for its columns stand
            behind the last cut.
        more: further tables that stand behind it, with their batches (``Routing.behind``).
    """
    behind = {name: row.batch for name, row in published.items() if row.state in LEFT_BEHIND}
    return Standing(batch=last.batch if last else 0, behind={**behind, **more} if last else {})


def is_up_to_date(last: CutRow | None, published: Mapping[str, TableRow], newest: int) -> bool:
    """Return whether every table holds all that it can hold; a table that waits for its columns cannot hold more."""
    stopped = [row.batch for row in published.values() if row.state == TableState.STOPPED]
    return newest <= min([last.batch if last else 0, *stopped])


def is_awaiting_approval(ledger: Ledger, batch: int, requests: Mapping[str, str], behind: Collection[str]) -> bool:
    """Return whether all there is waits for approval already: what a person looks at does not change meanwhile.

    Args:
        ledger: of the source.
        batch: the newest batch.
        requests: to build tables again. They stay until a cut that answers them is published.
        behind: tables that lack events of the last published cut.
    """
    cut = ledger.last_cut()
    if cut is None or cut.state != CutState.AWAITING_APPROVAL or cut.batch != batch:
        return False
    rows = {row.object: row for row in cuts.tables_of(ledger, cut.cut)} if requests or behind else {}
    has_answers = all(name in rows and _has_met(rows[name], request) for name, request in requests.items())
    return has_answers and rows.keys() >= set(behind)


def is_outdated(ledger: Ledger, source: Source) -> bool:
    """Return whether there is a cut that may be published, and the source file said otherwise how to build it."""
    cut = cuts.under_way(ledger)
    return cut is not None and cut.state != CutState.REPLACED and is_built_by_another(cut, source)


def _has_met(row: TableRow, request: str) -> bool:
    """Return whether a table of a cut was built for a request, or was stopped in spite of it."""
    if row.state == TableState.STOPPED:
        requested_at = datetime.fromisoformat(request.removesuffix(BY_HAND))
        return row.written_at is not None and requested_at < row.written_at
    return row.rebuilt == request


def is_released(source: Source, published: Mapping[str, TableRow]) -> bool:
    """Return whether events that were held are held no more, though nothing new has come."""
    if source.transactions == Transactions.IGNORE and any(row.held for row in published.values()):
        return True
    waiting = [name for name, row in published.items() if row.reason == schema_policies.CONSENT]
    return not all(schema_policies.lacks_consent(source, name) for name in waiting)


def given_up(ledger: Ledger, source: Source, cut: Cut) -> GivenUp:
    """Return the open transactions that hold nothing back: given up by published cuts, and now by this one."""
    known = ledger_transactions.given_up(ledger)
    if source.transactions != Transactions.IGNORE:
        return known
    opened = ledger_transactions.ids_in(ledger.transactions(), cut.batch, OPEN)
    return replace(known, cuts={**dict.fromkeys(opened, cut.number), **known.cuts})
