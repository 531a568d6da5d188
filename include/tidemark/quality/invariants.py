"""The invariants that hold for every table; Spark computes them, without Great Expectations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake import names as table_names
from tidemark.lake import pending_schema
from tidemark.lake.branches import data_files, head, properties_at
from tidemark.lake.lake import Lake
from tidemark.lake.properties import KEY_PROPERTY
from tidemark.ledger.event_counts import EventCounts
from tidemark.ledger.rows import TableRow
from tidemark.quality import value_bounds
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source
from tidemark.spark.session import is_small
from tidemark.tables import epochs
from tidemark.tables.schemas import IS_CURRENT, POSITION
from tidemark.text import quoted
from tidemark.values.bounds import Bounds

TOO_MANY_DELETED = "rows deleted beyond the limit"

TOO_MANY_QUARANTINED = "events quarantined beyond the limit"

APPROVABLE = frozenset({TOO_MANY_DELETED, TOO_MANY_QUARANTINED})
"""Checks whose failure a person may approve."""


class Opened(NamedTuple):
    """A candidate to be judged, as it will be when it is published."""

    row: TableRow
    snapshot: int
    """Id of the candidate's snapshot."""
    frame: DataFrame
    key: list[str]
    files: list[str]
    """Paths of the data files that the cut wrote, sorted."""
    bounds: Mapping[str, Bounds]
    """By column, what the source's type allows, where that is known and the column is of its kind."""

    @property
    def written(self) -> DataFrame:
        """The rows of the data files that the cut wrote; others were judged when they were written."""
        return self.frame.where(F.col("_file").isin(*self.files))


def opened_candidate(session: SparkSession, lake: Lake, row: TableRow, bounds: Mapping[str, Bounds]) -> Opened:
    """Return the candidate of a ledger row, opened with the names and the key that it will have when published."""
    table = lake.load(row.identifier)
    base, candidate = row.snapshots
    after = properties_at(table, candidate) | pending_schema.pending(table, row.cut).get("properties", {})
    frame = session.read.option("versionAsOf", str(candidate)).table(lake.spark_name(row.identifier))
    frame = epochs.as_published(frame, table, row.cut)
    return Opened(
        row=row,
        snapshot=candidate,
        frame=frame,
        bounds=value_bounds.fitting(bounds, table, frame) if bounds else {},
        key=json.loads(after[KEY_PROPERTY]),
        files=sorted(data_files(table, candidate) - data_files(table, base)),
    )


def key_invariants(opened: Opened, counts: Mapping[str, int]) -> dict[str, Invariant]:
    """Return the counts of ``count_keys`` as invariants: no null key, no key twice, the ledger's number of rows."""
    rows = {"rows beyond the ledger's count": Invariant(value=counts["rows"] - (opened.row.rows_after or 0))}
    if not opened.key:
        return rows
    return {
        "null keys": Invariant(value=counts["null_keys"]),
        "duplicate keys": Invariant(value=counts["duplicate_keys"]),
        **rows,
    }


def count_keys(tables: Sequence[Opened]) -> list[Counter[str]]:
    """Return the counts in ``_COUNTED`` of each table; many small tables share a query."""
    found = [Counter[str](dict.fromkeys(_COUNTED, 0)) for _ in tables]
    queries: list[DataFrame] = []
    for place, opened in enumerate(tables):
        queries += _key_counts(opened, place)
        if len(queries) >= _AT_ONCE or place + 1 == len(tables) or not is_small(opened.row.rows_after or 0):
            for row in _union(queries).collect():
                found[int(row["place"])].update({name: row[name] for name in _COUNTED})
            queries = []
    return found


_COUNTED = ("rows", "null_keys", "duplicate_keys", "beyond_bounds")

_AT_ONCE = 32
"""Queries that run as one: a Spark job of its own costs as much as counting a small table."""


def _key_counts(opened: Opened, place: int) -> Iterator[DataFrame]:
    """Yield frames with ``place`` and ``_COUNTED``; their sum is the count of the table.

    ``place`` is text, because Spark generates code of its own for each number.

    Only the keys that this cut wrote are searched for duplicates. Untouched rows were searched when they were written.
    A large table is not shuffled for that. A small one is read once: Spark's plan takes longer than its rows.
    """
    frame, none = opened.frame, F.lit(0)
    names = [f"k{number}" for number in range(len(opened.key))]  # because a column may be called `count`
    keys = [F.col(quoted(column)).alias(name) for column, name in zip(opened.key, names, strict=True)]
    null = F.greatest(*(column.isNull().cast("int") for column in [*keys, *keys[:1]])) == 1 if keys else F.lit(False)
    written = F.col("_file").isin(*opened.files) if opened.files else F.lit(False)
    beyond = F.when(written, value_bounds.in_row(opened.bounds)).otherwise(0) if opened.bounds else none
    if keys and is_small(opened.row.rows_after or 0):
        rows = F.col("rows")
        told = frame.select(*keys, null.alias("null"), written.alias("written"), beyond.alias("beyond"))
        by_key = told.groupBy(*names).agg(
            F.count("*").alias("rows"),
            F.max("null").alias("null"),
            F.max("written").alias("written"),
            F.sum("beyond").alias("beyond"),
        )
        null_keys = F.sum(F.when(F.col("null"), rows))
        twice = F.count(F.when((rows > 1) & F.col("written") & ~F.col("null"), 1))
        yield by_key.agg(F.lit(str(place)).alias("place"), *_named(F.sum(rows), null_keys, twice, F.sum("beyond")))
        return
    yield frame.agg(F.lit(str(place)).alias("place"), *_named(F.count("*"), F.count(F.when(null, 1)), none, none))
    if opened.bounds and opened.files:
        beyond = F.sum(value_bounds.in_row(opened.bounds))
        yield opened.written.agg(F.lit(str(place)).alias("place"), *_named(none, none, none, beyond))
    if keys and opened.files:
        new = opened.written.select(*keys).distinct()
        found = frame.select(*keys).join(new, names, "left_semi").groupBy(*names).count().where("count > 1")
        yield found.agg(F.lit(str(place)).alias("place"), *_named(none, none, F.count("*"), none))


def _named(*counts: Expression) -> list[Expression]:
    zero = F.lit(0).cast("bigint")  # the sum of no rows is null
    return [F.coalesce(count.cast("bigint"), zero).alias(name) for name, count in zip(_COUNTED, counts, strict=True)]


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return all rows of the frames. The plan is a balanced tree: Spark Connect refuses more than 100 levels."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).unionAll(_union(frames[half:]))


def delete_invariants(source: Source, row: TableRow) -> dict[str, Invariant]:
    """Return the invariant that a cut deletes no more rows than the source allows; none if it deletes nothing."""
    if not deleted_rows(row):
        return {}
    return {TOO_MANY_DELETED: Invariant(value=max(0, deleted_rows(row) - deletable_rows(source, row)))}


def deletable_rows(source: Source, row: TableRow) -> int:
    """Return how many rows the cut may delete from a table without approval."""
    return source.deletable(row.object, row.rows_before or 0, rebuilt=row.rebuilt is not None)


def quarantine_invariants(source: Source, row: TableRow) -> dict[str, Invariant]:
    """Return the invariants that a cut sets aside no more events of a table than it may, nor all; none if it sets none.

    All events of a small number are a warning: the table is not what its source says, and its verdict is not *passed*.
    """
    if not row.quarantined:
        return {}
    beyond = max(0, row.quarantined - source.quarantinable(row.events, row.object))
    lost = int(row.quarantined == row.events - row.held)
    return {
        TOO_MANY_QUARANTINED: Invariant(value=beyond),
        "batches without one event taken in": Invariant(value=lost, severity=Severity.WARN),
    }


def deleted_rows(row: TableRow) -> int:
    """Return how many rows the cut deletes from a table; if they were not counted, by how many rows it shrinks."""
    return max(0, (row.rows_before or 0) - (row.rows_after or 0)) if row.deleted is None else row.deleted


def history_invariants(
    session: SparkSession, lake: Lake, row: TableRow, key: list[str], alive: DataFrame
) -> dict[str, Invariant]:
    """Return the invariants of a table's history; none if the cut does not move the history.

    The current versions must be the rows of the table, by key and position.
    """
    identifier = table_names.history(row.identifier)
    branch = table_names.candidate_branch(row.cut)
    table = lake.find(identifier)
    if table is None or branch not in table.refs():
        return {}
    history = session.read.option("versionAsOf", str(head(table, branch))).table(lake.spark_name(identifier))
    history = epochs.as_published(history, table, row.cut)
    event = F.xxhash64(*(F.col(quoted(column)) for column in [*key, POSITION])).cast("decimal(20)").alias("event")
    rows = alive.select(event, F.lit(1).alias("row"))
    both = rows.unionAll(history.where(IS_CURRENT).select(event, F.lit(-1).alias("row")))
    found = both.agg(F.sum("row").alias("rows"), F.sum(F.col("event") * F.col("row")).alias("events")).first()
    totals = found.asDict() if found else {}
    return {
        "rows beyond the current versions": Invariant(value=int(totals.get("rows") or 0)),
        "rows unlike their current version": Invariant(value=int(bool(totals.get("events")))),
    }


def ledger_invariants(counts: EventCounts) -> dict[str, Invariant]:
    """Return the invariant that every event of the table is accounted for."""
    return {"events not accounted for": Invariant(value=counts.events - counts.accounted)}


def published_invariants(frame: DataFrame, key: list[str], row: TableRow) -> dict[str, Invariant]:
    """Return the invariants of a table as a cut published it."""
    if not key:  # a bag of rows
        return {"rows beyond the ledger's count": Invariant(value=frame.count() - (row.rows_after or 0))}
    columns = [F.col(quoted(name)) for name in key]
    null = F.greatest(*(column.isNull().cast("int") for column in [*columns, columns[0]])) == 1
    rows = F.col("count")
    by_key = frame.groupBy(*(column.alias(f"k{place}") for place, column in enumerate(columns))).agg(
        F.count("*").alias("count"), F.max(null).alias("null")
    )
    totals = by_key.agg(
        F.sum(rows).alias("rows"),
        F.sum(F.when(F.col("null"), rows)).alias("null"),
        F.count(F.when(rows > 1, 1)).alias("twice"),
    ).first()
    found = totals.asDict() if totals else {}
    return {
        "null keys": Invariant(value=found.get("null") or 0),
        "duplicate keys": Invariant(value=found.get("twice") or 0),
        "rows beyond the ledger's count": Invariant(value=(found.get("rows") or 0) - (row.rows_after or 0)),
    }
