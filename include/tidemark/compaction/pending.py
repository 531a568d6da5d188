"""Where the published tables stand, and whether anything is left for a run to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemark.compaction.run import Cut, Standing
from tidemark.ledger import cuts
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.transactions import OPEN, GivenUp
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
    behind = {name: row.batch for name, row in published.items() if row.state in {cuts.STOPPED, cuts.WAITING}}
    return Standing(batch=last.batch if last else 0, behind={**behind, **more} if last else {})


def is_up_to_date(last: CutRow | None, published: Mapping[str, TableRow], newest: int) -> bool:
    """Return whether every table holds all that it can hold; a table that waits for its columns cannot hold more."""
    stopped = [row.batch for row in published.values() if row.state == cuts.STOPPED]
    return newest <= min([last.batch if last else 0, *stopped])


def is_awaiting_approval(ledger: Ledger, batch: int) -> bool:
    """Return whether all there is waits for approval already: what a person looks at does not change meanwhile."""
    cut = ledger.last_cut()
    return cut is not None and cut.state == cuts.AWAITING_APPROVAL and cut.batch == batch


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
