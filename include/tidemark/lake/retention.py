"""Drops batches of a log that are past their time, and remembers which, so that nobody takes what is left for all."""

from __future__ import annotations

from pyiceberg.table import Table

from tidemark.lake import file_edits
from tidemark.lake.commits import commit_files
from tidemark.lake.filters import at_most

GONE_PROPERTY = "tidemark.gone-up-to"
"""Of a log: the last batch whose rows are past their time; written before they go."""


def gone_up_to(table: Table | None) -> int:
    """Return the last batch that a log does not hold any more; 0 for a log that holds all of them."""
    return 0 if table is None else int(table.properties.get(GONE_PROPERTY, "0"))


def drop_up_to(table: Table, batch: int) -> int:
    """Drop the batches of a log up to one, in whole files, and return how many files went.

    The files are removed with the snapshots that still have them.
    """
    if batch > gone_up_to(table):
        with table.transaction() as transaction:
            transaction.set_properties({GONE_PROPERTY: str(batch)})
        table.refresh()
    files = [task.file for task in table.scan(row_filter=at_most("batch", gone_up_to(table))).plan_files()]
    if files:
        commit_files(table, [], replaced=files, summary=file_edits.markers(table))
    return len(files)
