"""The blocking checks that a cut failed before it was to be published, in words."""

from __future__ import annotations

from tidemark.lake.filters import equals
from tidemark.ledger.check_rows import CHECK, CheckRow
from tidemark.ledger.ledger import Ledger

_SHOWN = 5


def failed_checks(ledger: Ledger, cut: int) -> str:
    """Return what the blocking checks of a cut found, the first five of them; empty if none failed."""
    rows = sorted(ledger.checks(equals("cut", cut), equals("stage", CHECK)), key=lambda row: (row.target, row.place))
    failed = [_words(row) for row in rows if not row.success and row.severity == "block"]
    more = [f"{len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
    return "; ".join([*failed[:_SHOWN], *more])


def _words(row: CheckRow) -> str:
    where = ", ".join(row.columns) or "table"
    return f"{row.target}: {row.name} ({where}): {row.observed}; expected {row.expected}"
