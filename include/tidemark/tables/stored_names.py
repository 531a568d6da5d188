"""What schema changes do to a published table: which of its columns gets which name, and which go.

An Iceberg schema belongs to a table, not to a branch. So compact only adds and widens, which readers of ``main`` hardly
notice, and writes the candidate under the names that the table has; renames and drops are written down in a property of
the table, by field id, and done when the candidate is published (docs/adr/0014).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.expressions import And
from pyiceberg.table import Table

from tidemark.ddl.names import ColumnNames, Renaming
from tidemark.errors import RebuildNeededError
from tidemark.lake.filters import above, not_null

NEW_PREFIX = "tidemark new "
"""Begins the name of a column whose own name another column still has until the cut is published."""


def names_today(
    object_name: str, table: Table, stored: Sequence[str], names: ColumnNames, after: int, position: str
) -> dict[str, str | None]:
    """Tell what each stored column will be called when the cut is published; None for one that goes.

    Args:
        object_name: the table as the source names it.
        table: as it stands.
        stored: names of its columns.
        names: all renames and drops known.
        after: batches above are those of the cut; the table follows those up to it.
        position: name of the column that holds the position at which a row was written.

    Raises:
        RebuildNeededError: rows were published that a rename or drop, told late, speaks of otherwise.
    """
    done = ColumnNames([told for told in names.renamings if told.batch <= after], stored)
    today: dict[str, str | None] = {name: name.removeprefix(NEW_PREFIX) for name in stored}
    moved: set[str] = set()
    for told in names.renamings:
        if told.batch <= after:
            continue
        before = done.today(told.old, done.epoch(told.position))
        column = next((name for name in stored if before is not None and names.same(name, before)), None)
        if column is None or column in moved:
            continue
        moved.add(column)
        if _has(table, column, after=(position, told.position)):
            raise _late(object_name, told, column)
        epoch = names.epoch(told.position, after=True)
        today[column] = None if told.new is None else names.today(told.new, epoch)
    return _one_each(object_name, table, today)


def _late(object_name: str, told: Renaming, column: str) -> RebuildNeededError:
    what = f"renamed to {told.new!r}" if told.new is not None else "dropped"
    return RebuildNeededError(
        f"{object_name}: column {column!r} was {what} by DDL that came after newer rows with that column had been "
        "published"
    )


def _one_each(object_name: str, table: Table, today: dict[str, str | None]) -> dict[str, str | None]:
    """Let one column have each name: of several the one that holds values."""
    for name in {name for name in today.values() if name is not None}:
        claimants = [column for column, told in today.items() if told == name]
        if len(claimants) > 1:
            full = [column for column in claimants if _has(table, column)]
            if len(full) > 1:
                raise RebuildNeededError(
                    f"{object_name}: {' and '.join(map(repr, full))} are one column, {name!r}, by DDL that came after "
                    "rows under both names had been published"
                )
            keep = (full or claimants)[0]
            today.update(dict.fromkeys((column for column in claimants if column != keep), None))
    return today


def _has(table: Table, column: str, *, after: tuple[str, str] | None = None) -> bool:
    """Whether any published row has a value in a column; ``after``: any that was written after a position."""
    where = not_null(column)
    if after is not None:
        where = And(above(*after), where)
    return bool(table.scan(row_filter=where, limit=1).to_arrow().num_rows)


def is_empty(table: Table, column: str) -> bool:
    """Whether no published row has a value in a column."""
    return not _has(table, column)
