"""Writes a comparison into the ledger, without the keys that differ where a row of its table is erased meanwhile.

A comparison holds no lock and may take hours. An erasure takes its key out of the comparisons once, and one that read
the row before would bring the key back.
"""

from __future__ import annotations

import msgspec
import structlog

from tidemark.erasure import compared_keys
from tidemark.lake.filters import at_most, equals
from tidemark.lake.lake import Lake
from tidemark.ledger.erasure_rows import DONE, ErasureRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import ReconciliationRow

log = structlog.get_logger(__name__)

_NONE = "[]"


def finished(ledger: Ledger, table: str) -> list[ErasureRow]:
    """Return the erasures of rows of a table that are over: what is read from now on no longer has the rows."""
    return [row for row in ledger.erasures() if row.object == table and row.state == DONE]


def write(
    lake: Lake, source: str, outcome: ReconciliationRow, before: list[ErasureRow], gone: int
) -> ReconciliationRow:
    """Write the row of a table, and return it as the ledger has it.

    Args:
        lake: the lake.
        source: the source.
        outcome: the row.
        before: the erasures that were ``finished`` before anything was read.
        gone: number of the newest comparison of the table that goes.
    """
    ledger = Ledger(lake, source)
    if _may_be_erased(ledger, outcome, before):
        outcome = _without_keys(outcome)
    ledger.replace(ReconciliationRow, [outcome], at_most("run", gone), equals("object", outcome.object))
    # An erasure that began since may have looked for its key before it was there.
    if _may_be_erased(ledger, outcome, before):
        outcome = _without_keys(outcome)
        ledger.replace(ReconciliationRow, [outcome], equals("run", outcome.run), equals("object", outcome.object))
        compared_keys.purge(lake, source)
    return outcome


def _may_be_erased(ledger: Ledger, outcome: ReconciliationRow, before: list[ErasureRow]) -> bool:
    """Return whether the row has keys, and one of them may be of a row that was not erased yet when it was read."""
    return outcome.keys != _NONE and any(row not in before for row in ledger.erasures() if row.object == outcome.object)


def _without_keys(outcome: ReconciliationRow) -> ReconciliationRow:
    log.warning("keys_left_out", table=outcome.target, reason="a row of the table was erased during the comparison")
    return msgspec.structs.replace(outcome, keys=_NONE)
