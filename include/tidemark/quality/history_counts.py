"""Compares the history of a candidate with its rows: the current versions must be the rows, by key and position.

Small ones are read in this process, so that no Spark is opened for them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.quality.beyond_bounds import PLACE
from tidemark.quality.candidates import Candidate, history_of
from tidemark.quality.key_counts import first_keys, first_of, is_read_here
from tidemark.quality.verdicts import Invariant
from tidemark.tables.schemas import DELETED, IS_CURRENT, POSITION
from tidemark.text import harmless, quoted


def judged(candidate: Candidate, changelog: Table | None) -> tuple[dict[str, Invariant], list[str]]:
    """Return the invariants of a table's history, and a sentence that names wrong keys.

    There are none if the cut does not move the history.

    Args:
        candidate: of the table.
        changelog: of the source: it has the places of messages.
    """
    history = history_of(candidate)
    if history is None:
        return {}, []
    here = is_read_here(candidate) and is_read_here(history)
    rows, events = _read_here(candidate, history) if here else _counted(_both(candidate, history))
    invariants = {
        "rows beyond the current versions": Invariant(value=rows),
        "rows unlike their current version": Invariant(value=events),
    }
    return invariants, [_uneven_keys(candidate, _both(candidate, history), changelog)] if rows or events else []


def _read_here(candidate: Candidate, history: Candidate) -> tuple[int, int]:
    """Return by how many the rows are more than the current versions, and 1 if they are not the same; else 0."""
    kept = {"gone": DELETED} if DELETED in candidate.fields else {}
    rows, current = _read(candidate, kept), _read(history, {"current": IS_CURRENT})
    if kept:
        rows = rows.filter(pc.invert(rows["gone"]))
    current = current.filter(current["current"])
    columns = [*candidate.key_columns, PLACE]
    sides = [
        table.select(columns).append_column("row", pa.array(np.full(table.num_rows, side)))
        for table, side in ((rows, 1), (current, -1))
    ]
    by_event = pa.concat_tables(sides, promote_options="permissive").group_by(columns).aggregate([("row", "sum")])
    uneven = pc.any(pc.not_equal(by_event["row_sum"], 0)).as_py()
    return rows.num_rows - current.num_rows, int(bool(uneven))


def _read(candidate: Candidate, more: Mapping[str, str]) -> pa.Table:
    """Return keys and positions of a small table or history, and other columns of it."""
    columns = {**candidate.key_columns, PLACE: POSITION, **more}
    parts = [part for _, part in candidate.read_here(columns)]
    return pa.concat_tables([candidate.reading(columns).schema.empty_table(), *parts])


def _counted(both: DataFrame) -> tuple[int, int]:
    """Return what ``_read_here`` returns, counted by Spark."""
    keys = [name for name in both.columns if name not in {PLACE, "row"}]
    event = F.xxhash64(*keys, PLACE).cast("decimal(20)")
    found = both.agg(F.sum("row").alias("rows"), F.sum(event * F.col("row")).alias("events")).first()
    totals = found.asDict() if found else {}
    return int(totals.get("rows") or 0), int(bool(totals.get("events")))


def _both(candidate: Candidate, history: Candidate) -> DataFrame:
    """Return keys and positions of the rows, and again of the current versions, where ``row`` is -1."""
    columns = [F.col(quoted(name)).alias(own) for own, name in {**candidate.key_columns, PLACE: POSITION}.items()]
    rows = candidate.alive.select(*columns, F.lit(1).alias("row"))
    return rows.unionAll(history.frame.where(IS_CURRENT).select(*columns, F.lit(-1).alias("row")))


def _uneven_keys(candidate: Candidate, both: DataFrame, changelog: Table | None) -> str:
    """Return the keys that have a row without its version or a version without its row, and where the first is from."""
    columns = candidate.key_columns
    uneven = both.groupBy(*columns, PLACE).agg(F.sum("row").alias("row")).where("row <> 0")
    keys, first = first_keys(uneven.select(*columns).distinct(), columns), first_of(uneven, changelog)
    return harmless(
        f"{candidate.row.target}: rows and current versions that are not the same: {keys}. The first is at {first}"
    )
