"""Counts the rows and the keys of a candidate: how many rows there are, how many keys are null or occur twice.

A small table is read in this process, which costs less than a plan of Spark. Of a large one, the metadata of its files
says how many rows there are and whether a key is null. If the number of rows contradicts the ledger, the rows are
counted. Only the keys that the cut wrote are searched for duplicates, among all keys: others were searched when they
were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know
from pyspark.sql.types import BinaryType, StructField

from tidemark.lake import changed_files
from tidemark.lake.changed_rows import SIDE
from tidemark.quality.beyond_bounds import PLACE
from tidemark.quality.candidates import Candidate
from tidemark.quality.places import first_place
from tidemark.spark.changed_frames import rows_of
from tidemark.spark.tuning import is_small
from tidemark.tables.schemas import POSITION
from tidemark.text import harmless, key_text, quoted

_BROADCAST = 2_000_000
"""Keys that each of Spark's workers may hold in memory, to join them with the keys of the table without a shuffle."""

_SHOWN = 5
"""Most keys that are named."""


class KeyCounts(NamedTuple):
    """What was counted."""

    rows: int
    null_keys: int = 0
    duplicate_keys: int = 0


def counted(candidate: Candidate) -> KeyCounts:
    """Return the counts of a candidate."""
    if is_read_here(candidate):
        return _read_here(candidate)
    rows, expected = _rows_by_metadata(candidate), candidate.row.rows_after or 0
    rows = rows if rows == expected else candidate.frame.count()
    if not candidate.key:
        return KeyCounts(rows)
    null_keys = 0 if _tells_no_null(candidate) else _null_keys(candidate)
    return KeyCounts(rows, null_keys, _duplicate_keys(candidate) if candidate.written else 0)


def counted_at_once(frame: DataFrame, key: Sequence[str]) -> KeyCounts:
    """Return the counts of all rows of a frame. They are read once.

    Args:
        frame: the rows, with their published columns.
        key: its columns; empty for a table without a key.
    """
    if not key:
        return KeyCounts(frame.count())
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
    return KeyCounts(found.get("rows") or 0, found.get("null") or 0, found.get("twice") or 0)


def faults(candidate: Candidate, counts: KeyCounts, changelog: Table | None) -> list[str]:
    """Return sentences about what is wrong: keys that occur twice, the first row without a key, rows of nobody's event.

    Args:
        candidate: of the table.
        counts: what was counted.
        changelog: of the source: it has the places of messages.
    """
    found, target, columns = [], candidate.row.target, candidate.key_columns
    places = {**columns, PLACE: POSITION}
    if counts.duplicate_keys:
        by_key = _with_whole_keys(candidate, places).groupBy(*columns)
        twice = by_key.agg(F.count("*").alias("count"), F.min(PLACE).alias(PLACE)).where("count > 1")
        keys, first = first_keys(twice, columns), first_of(twice, changelog)
        found.append(f"{target}: duplicate keys: {keys}. The first is at {first}")
    if counts.null_keys:
        nulls = candidate.rows(places).where(_any_null(columns))
        found.append(f"{target}: null keys: the first is at {first_of(nulls, changelog)}")
    if candidate.key and counts.rows > (candidate.row.rows_after or 0):
        keys = first_keys(candidate.rows(places).where(f"{PLACE} IS NULL"), columns)
        found += [f"{target}: rows without a position, which no event brought: {keys}"] if keys else []
    return [harmless(text) for text in found]


def first_keys(rows: DataFrame, columns: Mapping[str, str]) -> str:
    """Return the first keys of some rows as text; empty if there are no rows.

    Args:
        rows: with the columns of the key.
        columns: of the key, to their published names (``Candidate.key_columns``).
    """
    first = rows.orderBy(*columns).limit(_SHOWN)
    keys = first.select(*(_text(first, own) for own in columns)).collect()
    return "; ".join(key_text(columns.values(), row) for row in keys)


def first_of(rows: DataFrame, changelog: Table | None) -> str:
    """Return the lowest position of some rows, and its message (``first_place``)."""
    row = rows.agg(F.min(PLACE)).first()
    return first_place(row[0] if row else None, changelog)


def _text(rows: DataFrame, column: str) -> Expression:
    is_binary = isinstance(rows.schema[column].dataType, BinaryType)
    text = F.hex(column) if is_binary else F.col(column).cast("string")
    return F.coalesce(text, F.lit("null")).alias(column)


def _any_null(columns: Iterable[str]) -> str:
    return " OR ".join(f"{own} IS NULL" for own in columns)


def _with_whole_keys(candidate: Candidate, columns: Mapping[str, str]) -> DataFrame:
    """Return columns of all rows that have a key."""
    return candidate.rows(columns).where(f"NOT ({_any_null(candidate.key_columns)})")


def is_read_here(candidate: Candidate) -> bool:
    """Return whether a candidate has a key and so few rows that its keys are read in this process."""
    exact = not any(pa.types.is_floating(field.type) for _, field in candidate.reading(candidate.key_columns).fields)
    few = is_small(sum(task.file.record_count for task in candidate.tasks))
    return few and exact and bool(candidate.key) and candidate.is_parquet


def _read_here(candidate: Candidate) -> KeyCounts:
    """Return the counts of a small table, whose keys are read in this process."""
    columns = candidate.key_columns
    new = {task.file.file_path for task in candidate.written}
    parts = [candidate.reading(columns).schema.empty_table().append_column("written", pa.array([], pa.bool_()))]
    for file, part in candidate.read_here(columns):
        parts.append(part.append_column("written", pa.array(np.full(part.num_rows, file.location in new))))
    keys = pa.concat_tables(parts).drop_columns([SIDE])
    whole = keys.drop_null()
    by_key = whole.group_by(list(columns)).aggregate([([], "count_all"), ("written", "max")])
    twice = pc.and_(pc.greater(by_key["count_all"], 1), by_key["written_max"])
    return KeyCounts(keys.num_rows, keys.num_rows - whole.num_rows, pc.sum(twice).as_py() or 0)


def _rows_by_metadata(candidate: Candidate) -> int:
    """Return how many rows there are, if each delete file deletes rows of these files that no other one deletes."""
    deletes = {file.file_path: file.record_count for task in candidate.tasks for file in task.delete_files}
    return sum(task.file.record_count for task in candidate.tasks) - sum(deletes.values())


def _tells_no_null(candidate: Candidate) -> bool:
    ids = [candidate.fields[name].field_id for name in candidate.key]
    counts = [task.file.null_value_counts or {} for task in candidate.tasks]
    return all(count.get(number) == 0 for count in counts for number in ids)


def _null_keys(candidate: Candidate) -> int:
    return candidate.rows(candidate.key_columns).where(_any_null(candidate.key_columns)).count()


def _duplicate_keys(candidate: Candidate) -> int:
    columns = candidate.key_columns
    keys = _with_whole_keys(candidate, columns)
    few = sum(task.file.record_count for task in candidate.written) <= _BROADCAST
    if few and len(candidate.written) < len(candidate.tasks):
        keys = keys.join(F.broadcast(_written_keys(candidate, keys)), list(columns), "left_semi")
    return keys.groupBy(*columns).count().where("count > 1").count()


def _written_keys(candidate: Candidate, keys: DataFrame) -> DataFrame:
    """Return the keys in the files that the cut wrote; a key may come more than once."""
    columns = candidate.key_columns
    if not candidate.is_parquet:
        return candidate.rows(columns, written=True)
    types = [
        (candidate.fields[name].field_id, StructField(own, keys.schema[own].dataType)) for own, name in columns.items()
    ]
    files = changed_files.whole(candidate.written)
    return rows_of(candidate.session(), changed_files.file_system(candidate.table), files, types).drop(SIDE)
