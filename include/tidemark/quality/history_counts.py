"""Compares the history of a candidate with its rows: the current versions must be the rows, by key and position."""

from __future__ import annotations

from pyiceberg.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake import names
from tidemark.lake.branches import head
from tidemark.quality.beyond_bounds import PLACE
from tidemark.quality.candidates import Candidate
from tidemark.quality.key_counts import first_keys, first_of
from tidemark.quality.verdicts import Invariant
from tidemark.tables import epochs
from tidemark.tables.schemas import IS_CURRENT, POSITION
from tidemark.text import harmless, quoted


def judged(candidate: Candidate, changelog: Table | None) -> tuple[dict[str, Invariant], list[str]]:
    """Return the invariants of a table's history, and a sentence that names wrong keys.

    There are none if the cut does not move the history.

    Args:
        candidate: of the table.
        changelog: of the source: it has the places of messages.
    """
    both = _both(candidate)
    if both is None:
        return {}, []
    event = F.xxhash64(*candidate.key_columns, PLACE).cast("decimal(20)")
    found = both.agg(F.sum("row").alias("rows"), F.sum(event * F.col("row")).alias("events")).first()
    totals = found.asDict() if found else {}
    rows, events = int(totals.get("rows") or 0), int(bool(totals.get("events")))
    invariants = {
        "rows beyond the current versions": Invariant(value=rows),
        "rows unlike their current version": Invariant(value=events),
    }
    return invariants, [_told(candidate, both, changelog)] if rows or events else []


def _both(candidate: Candidate) -> DataFrame | None:
    """Return keys and positions of the rows, and again of the current versions, where ``row`` is -1."""
    row, lake = candidate.row, candidate.lake
    identifier = names.history(row.identifier)
    branch = names.candidate_branch(row.cut)
    table = lake.find(identifier)
    if table is None or branch not in table.refs():
        return None
    reader = candidate.session().read.option("versionAsOf", str(head(table, branch)))
    history = epochs.as_published(reader.table(lake.spark_name(identifier)), table, row.cut)
    columns = [F.col(quoted(name)).alias(own) for own, name in {**candidate.key_columns, PLACE: POSITION}.items()]
    rows = candidate.alive.select(*columns, F.lit(1).alias("row"))
    return rows.unionAll(history.where(IS_CURRENT).select(*columns, F.lit(-1).alias("row")))


def _told(candidate: Candidate, both: DataFrame, changelog: Table | None) -> str:
    """Return the keys that have a row without its version or a version without its row, and where the first is from."""
    columns = candidate.key_columns
    uneven = both.groupBy(*columns, PLACE).agg(F.sum("row").alias("row")).where("row <> 0")
    keys, first = first_keys(uneven.select(*columns).distinct(), columns), first_of(uneven, changelog)
    return harmless(
        f"{candidate.row.target}: rows and current versions that are not the same: {keys}. The first is at {first}"
    )
