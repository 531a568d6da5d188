"""The candidate of a table, opened to be judged: what its metadata says, its files, and its rows in Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake import changed_files, names, pending_schema
from tidemark.lake.branches import head, properties_at
from tidemark.lake.changed_rows import ChangedFile, FileReading, read
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import KEY_PROPERTY
from tidemark.lake.statistics import data_files
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
    identifier: Identifier
    """Of the table, or of its history."""
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
        return epochs.as_published(rows.table(self.lake.spark_name(self.identifier)), self.table, self.row.cut)

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

    def reading(self, columns: Mapping[str, str]) -> FileReading:
        """Return what reads columns of its files: from the name to return to the published name."""
        fields = [(self.fields[name], own) for own, name in columns.items()]
        return FileReading(
            filesystem=changed_files.file_system(self.table),
            fields=[(field.field_id, pa.field(own, schema_to_pyarrow(field.field_type))) for field, own in fields],
        )

    def read_here(self, columns: Mapping[str, str]) -> Iterator[tuple[ChangedFile, pa.Table]]:
        """Yield columns of the rows of each file, read in this process; names as for ``reading``."""
        reading = self.reading(columns)
        for file in changed_files.whole(self.tasks):
            yield file, pa.Table.from_batches(read(reading, file), reading.schema)


def opened(lake: Lake, session: Callable[[], SparkSession], row: TableRow) -> Candidate:
    """Return the candidate of a ledger row, with the names and the key that it will have when it is published."""
    table, snapshot = lake.load(row.identifier), row.snapshots.candidate
    changed = pending_schema.pending(table, row.cut).get("properties", {})
    key = json.loads((properties_at(table, snapshot) | changed)[KEY_PROPERTY])
    return Candidate(
        lake=lake,
        session=session,
        row=row,
        identifier=row.identifier,
        table=table,
        snapshot=snapshot,
        key=key,
        **_contents(table, snapshot, row.cut),
    )


def history_of(candidate: Candidate) -> Candidate | None:
    """Return the history of a candidate, opened in the same way; None if the cut does not move it."""
    cut, identifier = candidate.row.cut, names.history(candidate.row.identifier)
    table, branch = candidate.lake.find(identifier), names.candidate_branch(cut)
    if table is None or branch not in table.refs():
        return None
    snapshot = head(table, branch)
    contents = _contents(table, snapshot, cut)
    return replace(candidate, identifier=identifier, table=table, snapshot=snapshot, **contents)


def _contents(table: Table, snapshot: int | None, cut: int) -> dict[str, Any]:
    """Return the data files of a snapshot, and its columns by the names that they will have after the cut."""
    changes, scan = pending_schema.pending(table, cut), table.scan(snapshot_id=snapshot)
    renamed, drops = changes.get("names", {}), changes.get("drops", ())
    fields = scan.projection().fields
    return {
        "tasks": list(scan.plan_files()),
        "fields": {renamed.get(str(each.field_id), each.name): each for each in fields if each.field_id not in drops},
    }
