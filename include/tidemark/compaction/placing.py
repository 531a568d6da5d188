"""Where the files of a new table are to be."""

from __future__ import annotations

from tidemark.compaction.run import Run
from tidemark.errors import IncompatibleSchemaError
from tidemark.lake import names
from tidemark.ledger.folders import folders
from tidemark.sources.layout import overlap
from tidemark.sources.routes import entry_of
from tidemark.tables.plan import Plan
from tidemark.values.declared_types import entry_name_for


def place(run: Run, plan: Plan) -> str | None:
    """Return the folder that the source file gives a table; None where it gives none, and the catalog decides."""
    layout, name = run.source.table_for(plan.found.object).layout, entry_of(plan.found.object)
    return layout.place(entry_name_for(run.source.tables, name) or name, plan.target) if layout else None


def refuse_shared(run: Run, plan: Plan) -> None:
    """Refuse a new table in a folder with files of others: maintenance of the one would remove those of the other.

    Raises:
        IncompatibleSchemaError: its folder is, holds or lies in that of another table.
    """
    where = place(run, plan) if plan.found.published is None else None
    if where is None:
        return
    raw = str(names.raw(run.source.source))
    for name, folder in sorted(folders(run.lake), key=lambda each: (each[0] != raw, each)):  # one's own raw says most
        if name != str(plan.target) and overlap(folder, where):
            raise IncompatibleSchemaError(
                f"{plan.found.object}: layout.location {where} shares a folder with {name}, {folder}"
            )
