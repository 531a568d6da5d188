"""A change with the statement that made it."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.ddl.changes import Change
from tidemark.ledger.rows import StatementRow


class Stated(NamedTuple):
    """A change by a statement."""

    row: StatementRow
    change: Change
    order: tuple[int, ...] = (0,)
    """The place of the statement among those at one position: in a text of several, or on a copy (``migrations``)."""
