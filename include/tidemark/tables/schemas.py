"""Columns and properties of the tables that Tidemark publishes, and of those that it keeps beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import BooleanType, IcebergType, IntegerType, MapType, NestedField, StringType, TimestamptzType

from tidemark.lake.branches import cut_tags, rows_in
from tidemark.lake.properties import KEY_PROPERTY, VOID_DOC
from tidemark.tables.plan import Plan
from tidemark.values.types import iceberg_type, wider

POSITION = "_cdc_position"

COMMITTED_AT = "_cdc_committed_at"

DELETED = "_cdc_deleted"

VALID_FROM = "valid_from"

VALID_TO = "valid_to"

IS_CURRENT = "is_current"

OWN_PREFIX = "tidemark "
"""Begins names that Tidemark gives to columns of its own frames beside those of a table."""

OWN_COLUMNS = (POSITION, COMMITTED_AT, DELETED)
"""Columns that Tidemark adds to those of a published table; the last of them where deletes are soft."""


def table_schema(plan: Plan) -> Schema:
    """Schema of the published table: the source's columns in its order, then Tidemark's own."""
    return _schema(plan, [*_WRITTEN, (DELETED, BooleanType(), _DELETED_DOC)] if plan.soft else _WRITTEN)


def history_schema(plan: Plan) -> Schema:
    """Schema of the history table: the source's columns in its order, the interval of the version, its event."""
    interval = [
        (VALID_FROM, TimestamptzType(), "When the version began"),
        (VALID_TO, TimestamptzType(), "When it ended; null: it has not"),
        (IS_CURRENT, BooleanType(), "Whether the published table holds this version"),
    ]
    return _schema(plan, [*interval, *_WRITTEN])


_WRITTEN = (
    (POSITION, StringType(), "Position of the event that last wrote the row"),
    (COMMITTED_AT, TimestamptzType(), "When the source committed it"),
)

_DELETED_DOC = "Whether the row was deleted at the source"


def _schema(plan: Plan, own: Iterable[tuple[str, IcebergType, str]]) -> Schema:
    told = [(column.name, iceberg_type(column.type), _doc(plan, column.name)) for column in plan.columns]
    fields = enumerate([*told, *own], start=1)
    return Schema(*(NestedField(number, name, kind, doc=doc) for number, (name, kind, doc) in fields))


def _doc(plan: Plan, name: str) -> str | None:
    return VOID_DOC if name in plan.void else None


_VERSIONS = MapType(key_id=9001, key_type=StringType(), value_id=9002, value_type=StringType(), value_required=False)


def state_schema(plan: Plan) -> Schema:
    """Schema of the state table: ``k0 .. kn``, the key, then what is kept of it.

    ``kind``: tombstone (the key was deleted at ``position``), cells (the row that stands at ``position`` was written in
    parts: ``versions`` holds the position of each column, under the empty name that of all columns not named, empty
    where never written), truncate (everything below ``position``; no key; ``versions`` holds, under the empty name,
    when the source committed it, in epoch µs), high (the highest position seen; of tables without a key).
    """
    keys = [(f"k{place}", plan.columns[number].type) for place, number in enumerate(plan.key_numbers)]
    fields = [NestedField(number, name, iceberg_type(kind)) for number, (name, kind) in enumerate(keys, start=1)]
    own = [
        NestedField(len(fields) + 1, "kind", StringType()),
        NestedField(len(fields) + 2, "position", StringType()),
        NestedField(len(fields) + 3, "versions", _VERSIONS),
        NestedField(len(fields) + 4, "batch", IntegerType()),
    ]
    return Schema(*fields, *own)


def evolve(table: Table, plan: Plan) -> Table:
    """Add and widen columns so that the table holds the plan's; a no-op when it does.

    A column that was never published gives way where its type does not hold the plan's.
    """
    existing = dict(columns_of(table))
    if all(existing.get(plan.stored(column.name)) == column.type for column in plan.columns):
        return table
    if in_the_way := _in_the_way(table, plan, existing):
        with table.update_schema() as update:  # apart: PyIceberg moves a new column by the name, which is the old one's
            for name in in_the_way:
                update.delete_column((name,))
        existing = dict(columns_of(table))
    with table.update_schema() as update:
        before: str | None = None
        for column in plan.columns:
            name = plan.stored(column.name)
            if name not in existing:
                update.add_column((name,), iceberg_type(column.type), doc=_doc(plan, column.name))
                if before is None:
                    update.move_first((name,))
                else:
                    update.move_after((name,), (before,))
            elif existing[name] != column.type:
                update.update_column((name,), field_type=iceberg_type(column.type))
            before = name
    return table


def widen_keys(state: Table, plan: Plan) -> Table:
    """Give the key in a state table the types that it has in the published table; a no-op when it has them."""
    existing = {field.name: field.field_type for field in state.schema().fields}
    keys = state_schema(plan).fields[: len(plan.key)]
    wider_now = [field for field in keys if field.field_type != existing[field.name]]
    if wider_now:
        with state.update_schema() as update:
            for field in wider_now:
                update.update_column((field.name,), field_type=field.field_type)
    return state


def _in_the_way(table: Table, plan: Plan, existing: Mapping[str, str]) -> list[str]:
    """Columns that were never published, of types that do not hold the plan's."""
    types = {plan.stored(column.name): column.type for column in plan.columns}
    return [
        name
        for name in _unpublished(table) & types.keys() & existing.keys()
        if wider(existing[name], types[name]) != types[name]
    ]


def soften(table: Table) -> Table:
    """Add the column that marks deleted rows; a no-op when it is there."""
    if DELETED in table.schema().column_names:
        return table
    with table.update_schema() as update:
        update.add_column((DELETED,), BooleanType(), doc=_DELETED_DOC)
    return table


def was_hard(table: Table) -> bool:
    """Whether the rows on ``main`` were written before deletes became soft: their mark is null."""
    snapshot = table.current_snapshot()
    schema = table.schemas().get(snapshot.schema_id or 0) if snapshot else None
    return schema is not None and DELETED not in schema.column_names


def void_columns(table: Table | None) -> set[str]:
    """Names of the columns outside the key that no event had a value for, and whose type is still to be told."""
    if table is None:
        return set()
    return {field.name for field in table.schema().fields if field.doc == VOID_DOC}.difference(key_of(table))


def unsettled_columns(table: Table | None) -> set[str]:
    """Names of the columns outside the key whose type no published row needs: void ones, and those never published."""
    if table is None:
        return set()
    return void_columns(table) | _unpublished(table).difference(key_of(table))


def key_of(table: Table | None) -> list[str]:
    """Names of a table's key columns; none of a bag, nor where there is no table."""
    return json.loads(table.properties.get(KEY_PROPERTY, "[]")) if table is not None else []


def _unpublished(table: Table) -> set[str]:
    """Names of the columns that only candidates had."""
    snapshot, known = table.current_snapshot(), set[int]()
    if snapshot is not None and (rows_in(table) or cut_tags(table)):
        written = table.schemas()[snapshot.schema_id] if snapshot.schema_id is not None else table.schema()
        known = {field.field_id for field in written.fields}
    return {field.name for field in table.schema().fields if field.field_id not in known}


def columns_of(table: Table | None) -> list[tuple[str, str]]:
    """Names and types of a table's columns, without Tidemark's own."""
    if table is None:
        return []
    fields = [(column.name, str(column.field_type)) for column in table.schema().fields]
    return [(name, kind) for name, kind in fields if name not in OWN_COLUMNS]
