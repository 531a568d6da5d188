"""How many rows a published table has where the candidate of a cut begins.

The ledger says it, where ``main`` stands on what the last published cut left. It does not where tables of a cut moved
that was then given up (another writer was faster), or where a restore was cut short: such rows are counted.
"""

from __future__ import annotations

from pyiceberg.table import Table

from tidemark.compaction.run import Run
from tidemark.lake.branches import head
from tidemark.lake.filters import equals
from tidemark.lake.names import Identifier
from tidemark.lake.properties import published
from tidemark.ledger.states import TableState


def rows_before(run: Run, name: str, target: Identifier) -> int:
    """Return how many rows ``main`` of a published table has; 0 if there is no table.

    Args:
        run: the run.
        name: the table, as the source names it.
        target: the published table.
    """
    table = run.lake.find(target)
    return run.rows_of(name) if table is None or _is_in_ledger(run, name, table) else _counted(run, target, table)


def _is_in_ledger(run: Run, name: str, table: Table) -> bool:
    """Return whether the ledger counts the rows of the snapshot that Tidemark last moved ``main`` to.

    It does not note a move to where ``main`` stands already; and an earlier version noted none.
    """
    row, stands = run.published.get(name), published(table.properties).get("snapshot")
    if stands is None or (row is not None and row.snapshot in {stands, head(table)}):
        return True
    if row is None or row.snapshot is not None:
        return False
    # The table stayed where it was in the newest cuts: an earlier one says on which snapshot.
    rows = run.ledger.tables(equals("object", name), equals("state", TableState.PUBLISHED))
    moved = max((each for each in rows if each.cut <= row.cut), key=lambda each: each.cut, default=None)
    return moved is not None and moved.snapshot in {stands, None}


def _counted(run: Run, target: Identifier, table: Table) -> int:
    """Return the number of rows from the metadata; read them only where delete files take rows from data files."""
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        return run.at(target, head(table)).count()
    return sum(task.file.record_count for task in tasks)
