"""What the statistics of a table's files and snapshots say of its rows, without a look at any."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table


def greatest(table: Table, column: str, snapshot: int) -> str | None:
    """Return an upper bound of a text column from the statistics of a snapshot's files; see ``upper_bound``."""
    files = (task.file for task in table.scan(snapshot_id=snapshot).plan_files())
    return upper_bound(table, files, column)


def upper_bound(table: Table, files: Iterable[DataFile], column: str) -> str | None:
    """Return an upper bound of a text column in some files of a table, from their statistics.

    No value is above it. None if the statistics of a file have no bound; empty if the files have no rows.
    """
    field = table.schema().find_field(column)
    bounds = [(file.upper_bounds or {}).get(field.field_id) for file in files if file.record_count]
    return None if None in bounds else max((bound.decode() for bound in bounds if bound is not None), default="")


def lower_bound(table: Table, files: Iterable[DataFile], column: str) -> str | None:
    """Return a lower bound of a text column in some files of a table, from their statistics.

    No value is below it. None if there are no rows, or the statistics of a file have no bound.
    """
    field = table.schema().find_field(column)
    bounds = [(file.lower_bounds or {}).get(field.field_id) for file in files if file.record_count]
    return None if None in bounds else min((bound.decode() for bound in bounds if bound is not None), default=None)


def data_files(table: Table, snapshot: int) -> set[str]:
    """Return the paths of the data files of a snapshot, as engines give them in the metadata column ``_file``."""
    return {task.file.file_path for task in table.scan(snapshot_id=snapshot).plan_files()}


def total(table: Table, name: str) -> int:
    """Return a total from the summary of the newest snapshot of ``main``; 0 if it has none.

    The names are in the Iceberg specification, *Optional Snapshot Summary Fields*.
    """
    snapshot = table.current_snapshot()
    summary = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
    return int(summary.get(name, 0))


def rows_in(table: Table) -> int:
    """Return the number of rows in the data files of ``main``, including rows that delete files removed."""
    return total(table, "total-records")
