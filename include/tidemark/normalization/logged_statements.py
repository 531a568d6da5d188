"""The statements that the ledger keeps: those that may change columns or rows of a table that is there already."""

from __future__ import annotations

import re

from tidemark.events import SchemaChange
from tidemark.ledger.tally import LoggedStatement
from tidemark.positions import encode_position

_CHANGING = re.compile(
    r"(?<![^\W\d])(?:alter|drop|rename|replace|truncate)\b|\b(?:flashback|sp_rename|timecapsule)\b|\brecover\s+table\b",
    re.IGNORECASE,
)
"""The number of a version may stand right before the word: ``/*!50003DROP TABLE t */``."""

_LONGEST_STATEMENT = 65_537
"""Characters of a statement that the ledger gets: one more than are parsed, so that a longer one is recognised."""


def logged_statement(event: SchemaChange, landed_at: int) -> LoggedStatement | None:
    """Return the statement for the ledger; None if the ledger does not need it.

    It is not needed if it cannot change columns or rows of a table that is there already, or if the message has the
    table's shape.
    """
    if event.shape is not None or not _CHANGING.search(event.statement):
        return None
    position = encode_position(event.position)
    times = (event.committed_at, event.captured_at, landed_at)
    at = next(time for time in times if time is not None)
    text = event.statement[:_LONGEST_STATEMENT]
    return LoggedStatement(event.table, position, event.dialect, text, at, event.together, event.database, event.schema)
