"""Writing the folded rows of a table with a key into its candidate, with as little of the table read as can be."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import accounting, merging
from tidemark.compaction.candidate import Prepared
from tidemark.folding import frames, key_bounds
from tidemark.folding.key_bounds import KeyBounds
from tidemark.folding.keyed import Totals
from tidemark.lake.statistics import rows_in

LARGE = 200_000
"""Rows from which on two passes over a table's keys cost less than one that shuffles them: see docs/adr/0020."""


def bounds_of(prepared: Prepared, folded: DataFrame, totals: Totals) -> KeyBounds:
    """Return what the keys of a batch fulfil; of key columns that the table is partitioned by, the values if few.

    Args:
        prepared: the table.
        folded: ``folding.keyed.fold``, kept.
        totals: of it.
    """
    plan, table = prepared.plan, prepared.table
    found = key_bounds.found(plan, totals.bounds)
    parts = {part.source_id for spec in table.specs().values() for part in spec.fields}
    names = {name for name in plan.key if table.schema().find_field(plan.stored(name)).field_id in parts}
    return key_bounds.with_values(found, folded, plan, names) if names else found


def write(prepared: Prepared, ready: DataFrame, bounds: KeyBounds, totals: Totals, *, by_cell: bool) -> int:
    """Write the rows that change into the branch; return how many were deleted and added in place of an update.

    Args:
        prepared: the table.
        ready: ``folding.keyed.fold``, or ``folding.cells.combine`` where ``by_cell``.
        bounds: of the keys of ``ready``.
        totals: of what was folded.
        by_cell: whether a late cell may be written into a row that stays where it is.
    """
    if not by_cell and _is_above(prepared, totals.oldest):
        return _exchange(prepared, ready, bounds, totals.deletes)
    merging.upsert(ready, prepared.plan, prepared.branch, bounds, by_cell=by_cell)
    return 0


def count_there(stored: DataFrame, wanted: DataFrame, most: int) -> int:
    """Return how many stored rows have one of some keys. Few keys go to the table's files: none of it is shuffled.

    Args:
        stored: rows of the table, with the columns of ``wanted``.
        wanted: ``k0 .. kn``, a key once.
        most: there are no more of them.
    """
    keys = wanted.columns
    return stored.join(F.broadcast(wanted) if most < LARGE else wanted, keys, "left_semi").count()


def _exchange(prepared: Prepared, ready: DataFrame, bounds: KeyBounds, deletes: int) -> int:
    """Delete the rows of the batch's keys, then add the new ones; return how many were replaced.

    A MERGE that inserts has to shuffle the table. Here the batch's keys go to the table's files.
    """
    plan, keys = prepared.plan, frames.key_names(prepared.plan)
    gone = 0
    if deletes:
        stored = bounds.of(prepared.stored(), plan).select(*frames.key_columns(plan))
        gone = count_there(stored, ready.where("deleted").select(*keys), deletes)
    start = prepared.tip()
    merging.remove(ready, plan, prepared.branch, bounds)
    removed = accounting.merged(prepared.current(), start, prepared.run.cut.branch).deleted
    merging.append(ready.where(~F.col("deleted")), plan, prepared.branch)
    return removed - gone


def _is_above(prepared: Prepared, oldest: str | None) -> bool:
    """Return whether each event of the batch is newer than every row of a large table, as the table's files say.

    Then keys need no comparing of positions. A batch with one late event in it is merged row by row.
    """
    if prepared.plan.soft or rows_in(prepared.table) < LARGE:
        return False
    return prepared.is_below(oldest, prepared.tip())
