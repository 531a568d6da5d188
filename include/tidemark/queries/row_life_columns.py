"""What the columns of a row were called, and what they held before they were added."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.ddl.history import SchemaHistory
from tidemark.ddl.names import ColumnNames
from tidemark.errors import UnreadableValueError
from tidemark.tables.defaults import value_of
from tidemark.values.plain_types import Value
from tidemark.values.table_columns import TableColumn


def is_followed(history: SchemaHistory, columns: Mapping[str, TableColumn]) -> bool:
    """Return whether the table follows the source's names. If the source file ignores DDL, it keeps the old names."""
    given = [(renaming.position, renaming.new) for renaming in history.renamings]
    given += [(addition.position, addition.name) for addition in history.additions if not addition.retyped]
    return not any(
        renaming.old in columns and not any(at >= renaming.position and name == renaming.old for at, name in given)
        for renaming in history.renamings
    )


def defaults(
    history: SchemaHistory, names: ColumnNames, columns: Mapping[str, TableColumn]
) -> dict[str, tuple[str, Value]]:
    """Return the constants of added columns; see ``Reader.defaults``."""
    found: dict[str, tuple[str, Value]] = {}
    for addition in history.additions:
        name = names.today(addition.name, names.epoch(addition.position, after=True))
        name = next((known for known in columns if name is not None and names.same(known, name)), None)
        if addition.default is None or name is None:
            continue
        try:
            value = value_of(columns[name], addition.default)
        except UnreadableValueError:
            value = None
        found.setdefault(name, (addition.position, value))
    return found
