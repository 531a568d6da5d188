"""The invariants that hold for every table, judged without Great Expectations."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.ledger.event_counts import EventCounts
from tidemark.ledger.rows import TableRow
from tidemark.quality.key_counts import KeyCounts
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.model import Source

TOO_MANY_DELETED = "rows deleted beyond the limit"

TOO_MANY_QUARANTINED = "events quarantined beyond the limit"


def key_invariants(key: Sequence[str], counts: KeyCounts, row: TableRow) -> dict[str, Invariant]:
    """Return the counts of a table as invariants: no null key, no key twice, the ledger's number of rows.

    Args:
        key: of the table; empty for a table without a key.
        counts: of its rows and keys.
        row: of the ledger.
    """
    rows = {"rows beyond the ledger's count": Invariant(value=counts.rows - (row.rows_after or 0))}
    if not key:
        return rows
    return {
        "null keys": Invariant(value=counts.null_keys),
        "duplicate keys": Invariant(value=counts.duplicate_keys),
        **rows,
    }


def delete_invariants(source: Source, row: TableRow) -> dict[str, Invariant]:
    """Return the invariant that a cut deletes no more rows than the source allows; none if it deletes nothing."""
    if not deleted_rows(row):
        return {}
    return {TOO_MANY_DELETED: Invariant(value=max(0, deleted_rows(row) - deletable_rows(source, row)), approvable=True)}


def deletable_rows(source: Source, row: TableRow) -> int:
    """Return how many rows the cut may delete from a table without approval."""
    return source.deletable(row.object, row.rows_before or 0, rebuilt=row.rebuilt is not None)


def quarantine_invariants(source: Source, row: TableRow) -> dict[str, Invariant]:
    """Return the invariants that a cut sets aside no more events of a table than it may, nor all; none if it sets none.

    All events of a small number are a warning: the table is not what its source says, and its verdict is not *passed*.
    """
    if not row.quarantined:
        return {}
    lost = int(row.quarantined == row.events - row.held)
    warnings = {"batches without one event taken in": Invariant(value=lost, severity=Severity.WARN)}
    consequence = source.invariants.quarantined_share
    if consequence is Consequence.OFF:
        return warnings
    beyond = max(0, row.quarantined - source.quarantinable(row.events, row.object))
    return {
        TOO_MANY_QUARANTINED: Invariant(value=beyond, severity=Severity(consequence.value), approvable=True),
        **warnings,
    }


def deleted_rows(row: TableRow) -> int:
    """Return how many rows the cut deletes from a table; if they were not counted, by how many rows it shrinks."""
    return max(0, (row.rows_before or 0) - (row.rows_after or 0)) if row.deleted is None else row.deleted


def ledger_invariants(counts: EventCounts) -> dict[str, Invariant]:
    """Return the invariant that every event of the table is accounted for."""
    return {"events not accounted for": Invariant(value=counts.events - counts.accounted)}
