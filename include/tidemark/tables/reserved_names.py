"""Names that no column of a source may have, because Tidemark or Iceberg uses them."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.errors import IncompatibleSchemaError
from tidemark.sources import model
from tidemark.tables.feeds import OWN_NAMES
from tidemark.tables.plan import Found
from tidemark.tables.schemas import IS_CURRENT, OWN_COLUMNS, OWN_PREFIX, VALID_FROM, VALID_TO

_HISTORY_COLUMNS = (VALID_FROM, VALID_TO, IS_CURRENT)

_RESERVED_COLUMNS = frozenset({
    "", "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number",
    "_change_type", "_change_ordinal", "_commit_snapshot_id",
})  # fmt: skip
"""Names of Iceberg's metadata columns. Engines refuse to open a table that has a column of such a name (Iceberg
specification, Reserved Field IDs)."""


def refuse_names(found: Found, columns: Iterable[str], promised: model.Table) -> None:
    """Refuse columns with reserved names.

    Args:
        found: the table.
        columns: names of its columns.
        promised: what the source file says of it; the own columns of a history and of a feed reserve their names.

    Raises:
        IncompatibleSchemaError: a column has a reserved name.
    """
    for name in columns:
        if problem := _column_problem(name, promised):
            raise IncompatibleSchemaError(
                f"{found.object}: a column is called {name!r}, {problem}; of a table that is published, "
                "`schema: ignore` leaves new columns out"
            )


def _column_problem(name: str, promised: model.Table) -> str | None:
    """Return why a column cannot have a name, as part of a sentence; None if it can."""
    if promised.history and name in _HISTORY_COLUMNS:
        return "which the history of a table keeps for itself, so leave `history` out for it"
    if name in OWN_COLUMNS or name.startswith(OWN_PREFIX):
        return "which Tidemark keeps for itself"
    if name in _RESERVED_COLUMNS:
        return "which Iceberg keeps for itself"
    if promised.feed and name in OWN_NAMES:
        return "which the feed of a table keeps for itself, so leave `feed` out for it, or `rename` the column"
    return None
