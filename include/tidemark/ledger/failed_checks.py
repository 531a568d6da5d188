"""The blocking checks that a cut failed before it was to be published."""

from __future__ import annotations

from tidemark.lake.filters import equals
from tidemark.ledger.check_rows import CHECK, CheckRow
from tidemark.ledger.ledger import Ledger
from tidemark.text import enumerated


def failed_checks(ledger: Ledger, cut: int) -> list[CheckRow]:
    """Return the blocking checks that a cut failed, by table and in the order of each table's checks."""
    rows = sorted(ledger.checks(equals("cut", cut), equals("stage", CHECK)), key=lambda row: (row.target, row.place))
    return [row for row in rows if not row.success and row.severity == "block"]


def named(row: CheckRow) -> str:
    """Return the name of a check, with the columns that it is about."""
    return f"{row.name} ({', '.join(row.columns) or 'table'})"


def in_words(rows: list[CheckRow]) -> str:
    """Return what checks found, the first five of them; empty for none."""
    return enumerated([f"{row.target}: {named(row)}: {row.observed}; expected {row.expected}" for row in rows])
