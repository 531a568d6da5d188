"""Schemas of the tables that Tidemark publishes, and of the history and state tables beside them."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import BooleanType, IcebergType, IntegerType, MapType, NestedField, StringType, TimestamptzType

from tidemark.lake.branches import cut_tags
from tidemark.lake.properties import KEY_PROPERTY, VOID_DOC
from tidemark.lake.statistics import rows_in
from tidemark.tables.plan import Plan
from tidemark.values.types import iceberg_type, wider

POSITION = "_cdc_position"

COMMITTED_AT = "_cdc_committed_at"

DELETED = "_cdc_deleted"

VALID_FROM = "valid_from"

VALID_TO = "valid_to"

IS_CURRENT = "is_current"

OWN_PREFIX = "tidemark "
"""Begins the names of Tidemark's own columns in frames that also have the columns of a table."""

OWN_COLUMNS = (POSITION, COMMITTED_AT, DELETED)
"""Columns that Tidemark adds to a published table. It adds the last one only if deletes are soft."""


def table_schema(plan: Plan) -> Schema:
    """Return the schema of the published table: the source's columns in its order, then Tidemark's own columns."""
    return _schema(plan, [*WRITTEN, (DELETED, BooleanType(), DELETED_DOC)] if plan.soft else WRITTEN)


def history_schema(plan: Plan) -> Schema:
    """Return the schema of the history table.

    It has the source's columns in its order, the interval of the version, and the event that began it.
    """
    return _schema(plan, [*INTERVAL, *WRITTEN])


INTERVAL = (
    (VALID_FROM, TimestamptzType(), "When the version began"),
    (VALID_TO, TimestamptzType(), "When it ended; null: it has not"),
    (IS_CURRENT, BooleanType(), "Whether the published table holds this version"),
)
"""Columns of a history, behind the columns of its table."""

WRITTEN = (
    (POSITION, StringType(), "Position of the event that last wrote the row"),
    (COMMITTED_AT, TimestamptzType(), "When the source committed it"),
)
"""Columns that published tables and histories have behind the source's."""

DELETED_DOC = "Whether the row was deleted at the source"


def _schema(plan: Plan, own: Iterable[tuple[str, IcebergType, str]]) -> Schema:
    columns = [(column.name, iceberg_type(column.type), _doc(plan, column.name)) for column in plan.columns]
    fields = enumerate([*columns, *own], start=1)
    return Schema(*(NestedField(number, name, kind, doc=doc) for number, (name, kind, doc) in fields))


def _doc(plan: Plan, name: str) -> str | None:
    return VOID_DOC if name in plan.void else None


_VERSIONS = MapType(key_id=9001, key_type=StringType(), value_id=9002, value_type=StringType(), value_required=False)


def state_schema(plan: Plan) -> Schema:
    """Return the schema of the state table: the key as ``k0 .. kn``, then what is kept of it.

    The column ``kind`` says what a row means:

    - tombstone: the key was deleted at ``position``.
    - cells: the row that stands at ``position`` was written in parts. ``versions`` holds the position of each column's
      value, which is empty if the column was never written. Under the empty name it holds the position of all columns
      that it does not name.
    - truncate: everything below ``position`` went. The row has no key. ``versions`` holds, under the empty name, the
      commit time at the source, in epoch µs.
    - high: ``position`` is the highest that was seen. Only tables without a key have such a row.
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
    """Add and widen columns so that the table can hold the plan's columns, and return the table.

    Nothing happens if it can hold them already. A column that was never published is made again if it cannot be
    widened to the plan's type.
    """
    existing, stored = dict(columns_of(table)), [plan.stored(column.name) for column in plan.columns]
    if all(existing.get(name) == column.type for name, column in zip(stored, plan.columns, strict=True)):
        return table
    if in_the_way := _in_the_way(table, plan, existing):
        # A commit of its own, because PyIceberg moves a new column by its name, which is also the old column's name.
        with table.update_schema() as update:
            for name in in_the_way:
                update.delete_column((name,))
        existing = dict(columns_of(table))
    wanted = [
        NestedField(number, name, iceberg_type(column.type), doc=_doc(plan, column.name))
        for number, (name, column) in enumerate(zip(stored, plan.columns, strict=True), start=1)
    ]
    fits = {name for name, column in zip(stored, plan.columns, strict=True) if existing.get(name) == column.type}
    with table.update_schema() as update:
        place_columns(update, wanted, existing, fits)
    return table


def place_columns(
    update: UpdateSchema, wanted: Iterable[NestedField], existing: Container[str], fits: Container[str]
) -> None:
    """Add the columns that a table lacks, each behind the one before it, and give the others their types.

    Args:
        update: an open change of the table's schema.
        wanted: the columns in their order; their numbers do not count.
        existing: names of the columns that the table has.
        fits: names of those that have the type that is wanted.
    """
    before: str | None = None
    for field in wanted:
        if field.name not in existing:
            update.add_column((field.name,), field.field_type, doc=field.doc)
            if before is None:
                update.move_first((field.name,))
            else:
                update.move_after((field.name,), (before,))
        elif field.name not in fits:
            update.update_column((field.name,), field_type=field.field_type)
        before = field.name


def widen_keys(state: Table, plan: Plan) -> Table:
    """Widen the key columns of a state table to their types in the published table, and return the state table.

    Nothing happens if they have these types already.
    """
    existing = {field.name: field.field_type for field in state.schema().fields}
    keys = state_schema(plan).fields[: len(plan.key)]
    wider_now = [field for field in keys if field.field_type != existing[field.name]]
    if wider_now:
        with state.update_schema() as update:
            for field in wider_now:
                update.update_column((field.name,), field_type=field.field_type)
    return state


def _in_the_way(table: Table, plan: Plan, existing: Mapping[str, str]) -> list[str]:
    """Return the columns that were never published, and that cannot be widened to the plan's types."""
    types = {plan.stored(column.name): column.type for column in plan.columns}
    return [
        name
        for name in _unpublished(table) & types.keys() & existing.keys()
        if wider(existing[name], types[name]) != types[name]
    ]


def soften(table: Table) -> Table:
    """Add the column that marks deleted rows, unless the table has it, and return the table."""
    if DELETED in table.schema().column_names:
        return table
    with table.update_schema() as update:
        update.add_column((DELETED,), BooleanType(), doc=DELETED_DOC)
    return table


def was_hard(table: Table) -> bool:
    """Return whether the rows on ``main`` were written before deletes became soft. The mark of such rows is null."""
    snapshot = table.current_snapshot()
    schema = table.schemas().get(snapshot.schema_id or 0) if snapshot else None
    return schema is not None and DELETED not in schema.column_names


def void_columns(table: Table | None) -> set[str]:
    """Return the columns outside the key that have no value so far, and whose type is still open."""
    if table is None:
        return set()
    return {field.name for field in table.schema().fields if field.doc == VOID_DOC}.difference(key_of(table))


def unsettled_columns(table: Table | None) -> set[str]:
    """Return the columns outside the key whose type no published row needs: void and never published columns."""
    if table is None:
        return set()
    return void_columns(table) | _unpublished(table).difference(key_of(table))


def key_of(table: Table | None) -> list[str]:
    """Return the key columns of a table; no columns for a bag, or if there is no table."""
    return json.loads(table.properties.get(KEY_PROPERTY, "[]")) if table is not None else []


def _unpublished(table: Table) -> set[str]:
    """Return the columns that only candidates had."""
    snapshot, known = table.current_snapshot(), set[int]()
    if snapshot is not None and (rows_in(table) or cut_tags(table)):
        written = table.schemas()[snapshot.schema_id] if snapshot.schema_id is not None else table.schema()
        known = {field.field_id for field in written.fields}
    return {field.name for field in table.schema().fields if field.field_id not in known}


def columns_of(table: Table | None) -> list[tuple[str, str]]:
    """Return the names and types of a table's columns, without Tidemark's own columns; none if there is no table."""
    if table is None:
        return []
    fields = [(column.name, str(column.field_type)) for column in table.schema().fields]
    return [(name, kind) for name, kind in fields if name not in OWN_COLUMNS]
