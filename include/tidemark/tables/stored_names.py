"""Which names the stored columns of a published table get from renames and drops, and which columns go.

An Iceberg schema belongs to a table, not to a branch. So compact only adds and widens columns, which readers of
``main`` hardly notice, and it writes the candidate under the names that the table has. Renames and drops are written
into a property of the table, by field id. They are made when the candidate is published (docs/adr/0014).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyiceberg.expressions import And
from pyiceberg.table import Table

from tidemark.ddl.names import ColumnNames, Renaming
from tidemark.errors import RebuildNeededError
from tidemark.lake.filters import above, not_null
from tidemark.tables.plan import Found
from tidemark.tables.schemas import OWN_COLUMNS, POSITION

NEW_PREFIX = "tidemark new "
"""Begins the name of a new column whose own name belongs to another column until the cut is published."""


def names_then(
    found: Found, stored: Iterable[str], renamings: Iterable[Renaming], called: Mapping[str, str]
) -> ColumnNames:
    """Return the names of a table's columns through time as they were known when the table was published.

    Args:
        found: what is known of the table. It has followed the renames and drops up to the batch that it stands at.
        stored: the names that the published table has for its columns.
        renamings: all renames and drops that are known.
        called: the names that the source file gave when the table was published: name at the source to published name.
    """
    return ColumnNames([renaming for renaming in renamings if renaming.batch <= found.published_batch], stored, called)


def names_today(found: Found, table: Table, names: ColumnNames, called: Mapping[str, str]) -> dict[str, str | None]:
    """Return the name that each stored column gets when the cut is published; None for a column that goes.

    Args:
        found: what is known of the table. Renames and drops of batches after the one that it stands at belong to the
            cut.
        table: the published table.
        names: all renames and drops that are known, and the names that the source file gives now.
        called: the names that it gave when the table was published: name at the source to published name.

    Raises:
        RebuildNeededError: a rename or drop arrived late, and contradicts rows that are published already.
    """
    stored = [field.name for field in table.schema().fields if field.name not in OWN_COLUMNS]
    done = names_then(found, stored, names.renamings, called)
    today: dict[str, str | None] = {
        name: names.published(done.at_source(name.removeprefix(NEW_PREFIX))) for name in stored
    }
    moved: set[str] = set()
    for renaming in names.renamings:
        if renaming.batch <= found.published_batch:
            continue
        before = done.today(renaming.old, done.epoch(renaming.position))
        column = next((name for name in stored if before is not None and names.same(name, before)), None)
        if column is None or column in moved:
            continue
        moved.add(column)
        if has_value(found, table, column, after=renaming.position):
            raise _late(found.object, renaming, column)
        today[column] = None if renaming.new is None else names.today(renaming.new, names.behind(renaming))
    return _one_each(found, table, today)


def _late(object_name: str, renaming: Renaming, column: str) -> RebuildNeededError:
    what = f"renamed to {renaming.new!r}" if renaming.new is not None else "dropped"
    return RebuildNeededError(
        f"{object_name}: column {column!r} was {what} by DDL that came after newer rows with that column had been "
        "published"
    )


def _one_each(found: Found, table: Table, today: dict[str, str | None]) -> dict[str, str | None]:
    """Return the names with one column for each: if several columns claim a name, the one that has values gets it."""
    for name in {name for name in today.values() if name is not None}:
        claimants = [column for column, new in today.items() if new == name]
        if len(claimants) > 1:
            full = [column for column in claimants if has_value(found, table, column)]
            if len(full) > 1:
                raise RebuildNeededError(
                    f"{found.object}: {' and '.join(map(repr, full))} are one column, {name!r}, by DDL that came after "
                    "rows under both names had been published"
                )
            keep = (full or claimants)[0]
            today.update(dict.fromkeys((column for column in claimants if column != keep), None))
    return today


def has_value(found: Found, table: Table, column: str, *, after: str | None = None) -> bool:
    """Return whether a published row, or a version that a row had before, has a value in a column.

    Args:
        found: what is known of the table.
        table: the published table.
        column: the column, as it is stored.
        after: a position: rows and versions that were written up to it do not count.
    """
    where = not_null(column) if after is None else And(above(POSITION, after), not_null(column))
    holders = [table] if found.history_table is None else [table, found.history_table]
    there = (each for each in holders if column in each.schema().column_names)
    return any(each.scan(row_filter=where, limit=1).to_arrow().num_rows for each in there)
