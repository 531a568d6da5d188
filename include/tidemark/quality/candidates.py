"""The candidate of a table, opened to be judged: what its metadata says, its files, and its rows in Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake import changed_files, pending_schema
from tidemark.lake.branches import data_files, properties_at
from tidemark.lake.changed_rows import Reading
from tidemark.lake.lake import Lake
from tidemark.lake.properties import KEY_PROPERTY
from tidemark.ledger.rows import TableRow
from tidemark.quality.beyond_bounds import KEY
from tidemark.tables import epochs
from tidemark.tables.schemas import DELETED
from tidemark.text import quoted


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A candidate, as it will be when it is published."""

    lake: Lake
    session: Callable[[], SparkSession]
    """Opens Spark, where its metadata and few rows are not enough."""
    row: TableRow
    table: Table
    snapshot: int
    """Id of the candidate's snapshot."""
    tasks: Sequence[FileScanTask]
    """Its data files with their delete files."""
    key: Sequence[str]
    fields: Mapping[str, NestedField]
    """The columns by their published names."""

    @cached_property
    def frame(self) -> DataFrame:
        """All rows, in Spark."""
        rows = self.session().read.option("versionAsOf", str(self.snapshot))
        return epochs.as_published(rows.table(self.lake.spark_name(self.row.identifier)), self.table, self.row.cut)

    @property
    def alive(self) -> DataFrame:
        """The rows that are not marked as deleted, in Spark."""
        return self.frame.where(~F.col(DELETED)) if DELETED in self.fields else self.frame

    @cached_property
    def written(self) -> Sequence[FileScanTask]:
        """The data files that the cut wrote; rows of others were judged when they were written."""
        known = data_files(self.table, self.row.snapshots.base)
        return [task for task in self.tasks if task.file.file_path not in known]

    @cached_property
    def is_parquet(self) -> bool:
        """Whether its files can be read one by one, without Spark."""
        return next(changed_files.not_parquet(self.tasks), None) is None

    @property
    def key_columns(self) -> dict[str, str]:
        """The columns of the key, by names that no count has: a column may be called ``count``."""
        return {f"{KEY}{number}": name for number, name in enumerate(self.key)}

    def rows(self, columns: Mapping[str, str], *, written: bool = False) -> DataFrame:
        """Return columns of its rows in Spark, or of those in files that the cut wrote: names as for ``reading``."""
        rows = self.frame
        if written:
            rows = rows.where(F.col("_file").isin(*(task.file.file_path for task in self.written)))
        return rows.select(*(F.col(quoted(name)).alias(own) for own, name in columns.items()))

    def reading(self, columns: Mapping[str, str]) -> Reading:
        """Return what reads columns of its files: from the name to return to the published name."""
        fields = [(self.fields[name], own) for own, name in columns.items()]
        return Reading(
            filesystem=changed_files.file_system(self.table),
            fields=[(field.field_id, pa.field(own, schema_to_pyarrow(field.field_type))) for field, own in fields],
        )


def opened(lake: Lake, session: Callable[[], SparkSession], row: TableRow) -> Candidate:
    """Return the candidate of a ledger row, with the names and the key that it will have when it is published."""
    table = lake.load(row.identifier)
    snapshot = row.snapshots.candidate
    changes = pending_schema.pending(table, row.cut)
    scan = table.scan(snapshot_id=snapshot)
    names, drops = changes.get("names", {}), changes.get("drops", ())
    return Candidate(
        lake=lake,
        session=session,
        row=row,
        table=table,
        snapshot=snapshot,
        tasks=list(scan.plan_files()),
        key=json.loads((properties_at(table, snapshot) | changes.get("properties", {}))[KEY_PROPERTY]),
        fields={
            names.get(str(field.field_id), field.name): field
            for field in scan.projection().fields
            if field.field_id not in drops
        },
    )
