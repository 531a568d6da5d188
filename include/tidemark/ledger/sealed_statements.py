"""Statements in the ledger that are encrypted, because they may hold values (``mask_at: landing``)."""

from __future__ import annotations

import msgspec

from tidemark.ledger.rows import StatementRow
from tidemark.values.sealing import unsealed_statement


def unsealed(row: StatementRow) -> StatementRow:
    """Return a statement with its plain text; the row itself if that is not encrypted.

    Raises:
        ConfigurationError: the key is missing.
    """
    if " " not in row.dialect:
        return row
    dialect, text = unsealed_statement(row.dialect, row.statement)
    return msgspec.structs.replace(row, dialect=dialect, statement=text)
