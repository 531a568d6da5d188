"""The statements that the ledger keeps.

They are those that may change columns or rows of a table that is there already, and those that create the copy with
which a schema-change tool changes such a table.
"""

from __future__ import annotations

import re

from tidemark.ddl.migrations import is_copy
from tidemark.events import SchemaChange
from tidemark.ledger.tally import LoggedStatement
from tidemark.positions import encode_position

_CHANGING = re.compile(
    r"(?<![^\W\d])(?:alter|drop|rename|replace|truncate)\b|\b(?:flashback|sp_rename|timecapsule)\b|\brecover\s+table\b",
    re.IGNORECASE,
)
"""The number of a version may stand right before the word: ``/*!50003DROP TABLE t */``."""

_CREATING = re.compile(r"\bcreate\b[^(;]{0,200}?\btable\b([^(;]{1,400})", re.IGNORECASE)
"""A statement that creates a table, up to its columns."""

_NAMES = re.compile(r"[^\s`\".]+")

_LONGEST_STATEMENT = 65_537
"""Characters of a statement that the ledger gets: one more than are parsed, so that a longer one is recognised."""


def logged_statement(event: SchemaChange, landed_at: int) -> LoggedStatement | None:
    """Return the statement for the ledger; None if the ledger does not need it.

    It is not needed if it cannot change columns or rows of a table that is there already and creates no tool's copy of
    one, or if the message has the table's shape.
    """
    if event.shape is not None or not (_CHANGING.search(event.statement) or _creates_copy(event.statement)):
        return None
    position = encode_position(event.position)
    times = (event.committed_at, event.captured_at, landed_at)
    at = next(time for time in times if time is not None)
    text = event.statement[:_LONGEST_STATEMENT]
    return LoggedStatement(event.table, position, event.dialect, text, at, event.together, event.database, event.schema)


def _creates_copy(statement: str) -> bool:
    return any(is_copy(name) for names in _CREATING.findall(statement) for name in _NAMES.findall(names))
