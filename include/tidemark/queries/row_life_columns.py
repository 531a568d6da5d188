"""What the columns of a row were called, and what they held before they were added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyiceberg.table import Table

from tidemark.ddl.first_additions import first_additions
from tidemark.ddl.history import SchemaHistory
from tidemark.ddl.names import ColumnNames, Renaming
from tidemark.errors import UnreadableValueError
from tidemark.tables.column_rules import names_recorded
from tidemark.tables.defaults import value_of
from tidemark.values.plain_types import Value
from tidemark.values.table_columns import TableColumn


def followed(history: SchemaHistory, table: Table) -> SchemaHistory:
    """Return what a published table followed of its schema changes.

    A source file may say that columns are kept under their old names (``schema``): those are still there. A name that
    the source file itself gives a column says nothing of the source's name.
    """
    given = set(names_recorded(table).values())
    columns = {column.name.casefold() for column in table.schema().fields if column.name not in given}
    came = [(each.position, each.new) for each in history.renamings if each.new]
    came += [(each.position, each.name) for each in history.additions if not each.retyped]

    def is_kept(renaming: Renaming) -> bool:
        old = renaming.old.casefold()
        return old in columns and not any(at >= renaming.position and name.casefold() == old for at, name in came)

    return replace(history, renamings=tuple(each for each in history.renamings if not is_kept(each)))


def defaults(
    history: SchemaHistory, names: ColumnNames, columns: Mapping[str, TableColumn]
) -> dict[str, tuple[str, Value]]:
    """Return the constants of added columns; see ``Reader.defaults``."""
    found: dict[str, tuple[str, Value]] = {}
    for today, addition in first_additions(history.additions, names):
        name = next((known for known in columns if names.same(known, today)), None)
        if addition.default is None or name is None:
            continue
        try:
            value = value_of(columns[name], addition.default)
        except UnreadableValueError:
            value = None
        found.setdefault(name, (addition.position, value))
    return found
