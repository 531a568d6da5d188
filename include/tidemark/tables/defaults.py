"""The values that rows got in columns which were added later: one for each such column of a table."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

from tidemark.ddl.changes import Fill
from tidemark.ddl.first_additions import first_additions
from tidemark.ddl.names import ColumnNames
from tidemark.errors import IncompatibleSchemaError, UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.tables.plan import Default, Found
from tidemark.values.plain import read_value
from tidemark.values.plain_types import Value
from tidemark.values.table_columns import TableColumn


def value_of(column: TableColumn, fill: Fill) -> Value:
    """Return what rows got in a column, as plain values of its type are.

    Raises:
        UnreadableValueError: the type does not hold the value.
    """
    if column.type == "binary" and fill.octets is not None:
        return base64.b64encode(fill.octets).decode()
    if fill.text is None:
        raise UnreadableValueError(f"column '{column.name}': bytes are no {column.type}")
    return read_value(json.dumps(fill.text).encode(), Column(column.name, column.type, Encoding.TEXT))


def defaults_of(found: Found, names: ColumnNames, columns: Iterable[TableColumn]) -> dict[str, Default]:
    """Return the values that rows got, by the names that columns have today.

    Raises:
        IncompatibleSchemaError: a column is added by this cut, and its type does not hold the value.
    """
    types = {column.name: column for column in columns}
    defaults: dict[str, Default] = {}
    for today, added in first_additions(found.history.additions, names):
        name = next((known for known in types if names.same(known, today)), today)
        if added.default is None:
            continue
        if found.published_batch < added.batch and name in types:
            _check(found, types[name], added.default)
        defaults[name] = Default(added.position, added.batch, added.default)
    return defaults


def _check(found: Found, column: TableColumn, fill: Fill) -> None:
    if _holds(column, fill):
        return
    others = [kind for kind in ("string", "binary") if _holds(TableColumn(column.name, kind), fill)]
    raise IncompatibleSchemaError(
        f"{found.object}: column {column.name!r} was added with a value for the rows that were there, which no "
        f"{column.type} holds; give it another type in the source file (`columns: {{{column.name}: ...}}`): "
        f"{', '.join(others)}"
    )


def _holds(column: TableColumn, fill: Fill) -> bool:
    try:
        value_of(column, fill)
    except UnreadableValueError:
        return False
    return True
