"""What a cut does to one table: its target, columns and types, key, and how its images are read.

Decided on the driver from the shapes that the batch's events were delivered under: a handful of rows, whatever the
number of events. Types come from the source file first, then from the shapes, then from the values seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import IntegerType, MapType, NestedField, StringType, TimestamptzType

from tidemark import sources
from tidemark.errors import IncompatibleSchemaError
from tidemark.events import Column, Shape
from tidemark.images import TableColumn
from tidemark.lake import Identifier, name_problem
from tidemark.types import iceberg_type, wider

POSITION = "_cdc_position"
COMMITTED_AT = "_cdc_committed_at"
KEY_PROPERTY = "tidemark.key"
OBJECT_PROPERTY = "tidemark.object"
SOURCE_PROPERTY = "tidemark.source"

OWN_PREFIX = "tidemark "
"""Begins names that Tidemark gives to columns of its own frames beside those of a table."""

_OWN_COLUMNS = (POSITION, COMMITTED_AT)
_RESERVED_COLUMNS = frozenset({
    "", "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number",
    "_change_type", "_change_ordinal", "_commit_snapshot_id",
})  # fmt: skip
"""Iceberg's metadata columns: engines refuse to open a table that has one of them (Iceberg specification, Reserved
Field IDs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the change log's new events tell of one table."""

    object: str
    database: str | None
    schema: str | None
    name: str
    events: int
    truncates: int
    shapes: Mapping[str, Shape]
    keys: Sequence[tuple[str, ...]]
    """Keys that messages named, distinct."""
    partial: bool
    """Whether any image is partial."""
    halves: bool
    """Whether any update comes as two events, the old half and the new one."""
    inferred: Mapping[str, str] = field(default_factory=dict)
    """Types of columns that only their values tell; such columns are read by way of text, strictly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done for one table."""

    found: Found
    target: Identifier
    key: tuple[str, ...]
    columns: tuple[TableColumn, ...]

    @property
    def key_numbers(self) -> list[int]:
        """Numbers of the key's columns among ``columns``."""
        names = [column.name for column in self.columns]
        return [names.index(name) for name in self.key]

    @property
    def state(self) -> Identifier:
        """The table that keeps tombstones and the versions of partly written rows."""
        return ("state", "__".join(self.target))


def target_of(source: sources.Source, found: Found) -> Identifier:
    """Where a table is published.

    Raises:
        IncompatibleSchemaError: the names that the messages bring cannot name a table.
    """
    parts = {
        "source": source.source,
        "database": found.database or "",
        "schema": found.schema or "",
        "table": found.name,
    }
    namespace, _, name = source.target.format_map(parts).partition(".")
    for part in (namespace, name):
        if problem := name_problem(part):
            raise IncompatibleSchemaError(f"{found.object}: {part!r} {problem}; name the table with `target:`")
    return (namespace, name)


def plan(source: sources.Source, found: Found, table: Table | None, *, anew: bool = False) -> Plan:
    """Decide columns, types and key of a table.

    Args:
        source: the source file.
        found: what the change log tells.
        table: the published table, where there is one.
        anew: whether its columns, types and key are to be forgotten.

    Raises:
        IncompatibleSchemaError: the change would lose data, or the table has no key.
    """
    promised = source.table_for(found.object)
    _claim(source, found, table)
    table = None if anew else table
    columns = _columns(found, promised, table)
    key = _key(source.source, found, promised, table, [column.name for column in columns])
    return Plan(found=found, target=target_of(source, found), key=key, columns=tuple(columns))


def _claim(source: sources.Source, found: Found, table: Table | None) -> None:
    """Refuse to write one table over what another was published as."""
    if table is None:
        return
    owner = (table.properties.get(SOURCE_PROPERTY), table.properties.get(OBJECT_PROPERTY))
    if owner != (source.source, found.object):
        raise IncompatibleSchemaError(
            f"{found.object} would be published as {'.'.join(target_of(source, found))}, which holds {owner[1]} of "
            f"source {owner[0]}; tell them apart with `target:`"
        )


def untyped(found: Found, promised: sources.Table, table: Table | None) -> list[str]:
    """Columns whose type neither the source file, nor the messages, nor the table tells: the values decide."""
    known = {*promised.columns, *(name for name, _ in _existing(table))}
    told = {column.name for column in _all_columns(found.shapes.values()) if column.type is not None}
    names = dict.fromkeys(column.name for column in _all_columns(found.shapes.values()))
    return [name for name in names if name not in known and name not in told]


def _all_columns(shapes: Iterable[Shape]) -> Iterable[Column]:
    return (column for shape in shapes for column in shape.columns)


def _existing(table: Table | None) -> list[tuple[str, str]]:
    if table is None:
        return []
    fields = [(column.name, str(column.field_type)) for column in table.schema().fields]
    return [(name, kind) for name, kind in fields if name not in _OWN_COLUMNS]


def _columns(found: Found, promised: sources.Table, table: Table | None) -> list[TableColumn]:
    types = dict(_existing(table))
    order = list(types)
    for shape in found.shapes.values():
        _merge_order(order, [column.name for column in shape.columns])
        for column in shape.columns:
            told = promised.columns.get(column.name) or column.type or found.inferred.get(column.name)
            if told is not None:
                types[column.name] = _agreed(found, column.name, types.get(column.name), told)
    for name in order:
        if problem := _column_problem(name):
            raise IncompatibleSchemaError(f"{found.object}: a column is called {name!r}, {problem}")
    # A column that was never anything but null has no type yet; text can hold whatever comes.
    return [TableColumn(name, types.get(name, "string")) for name in order]


def _column_problem(name: str) -> str | None:
    if name in _OWN_COLUMNS or name.startswith(OWN_PREFIX):
        return "which Tidemark keeps for itself"
    return "which Iceberg keeps for itself" if name in _RESERVED_COLUMNS else None


def _merge_order(order: list[str], names: Sequence[str]) -> None:
    """Put new names behind the one they follow in the message."""
    place = 0
    for name in names:
        if name in order:
            place = order.index(name) + 1
        else:
            order.insert(place, name)
            place += 1


def _agreed(found: Found, name: str, old: str | None, new: str) -> str:
    if old is None:
        return new
    agreed = wider(old, new)
    if agreed is None:
        raise IncompatibleSchemaError(
            f"{found.object}: column {name!r} changed from {old} to {new}, which would lose data. The table stays as "
            f"it is; give the type in the source file (`columns: {{{name}: ...}}`) and rebuild the table."
        )
    return agreed


def _key(
    source: str, found: Found, promised: sources.Table, table: Table | None, names: Sequence[str]
) -> tuple[str, ...]:
    stored = tuple(json.loads(table.properties.get(KEY_PROPERTY, "[]"))) if table is not None else ()
    told = {key for key in found.keys if key}
    if promised.key is not None:
        key = promised.key
    elif len(told) > 1:
        raise IncompatibleSchemaError(
            f"{found.object}: messages name different keys {sorted(told)}; give one with `key:`"
        )
    else:
        key = next(iter(told), stored)
    if not key:
        raise IncompatibleSchemaError(
            f"{found.object}: no message names a key; give one in the source file with `key:`"
        )
    if stored and key != stored:
        raise IncompatibleSchemaError(
            f"{found.object}: the key changed from {list(stored)} to {list(key)}: rebuild it "
            f"(`tidemark rebuild {source} {found.object}`)"
        )
    missing = [name for name in key if name not in names]
    if missing:
        raise IncompatibleSchemaError(f"{found.object}: no message has the key column {missing[0]!r}")
    return key


def table_schema(plan: Plan) -> Schema:
    """Schema of the published table: the source's columns in its order, then Tidemark's two."""
    fields = [
        NestedField(number, column.name, iceberg_type(column.type))
        for number, column in enumerate(plan.columns, start=1)
    ]
    own = [
        NestedField(len(fields) + 1, POSITION, StringType(), doc="Position of the event that last wrote the row"),
        NestedField(len(fields) + 2, COMMITTED_AT, TimestamptzType(), doc="When the source committed it"),
    ]
    return Schema(*fields, *own)


_VERSIONS = MapType(key_id=9001, key_type=StringType(), value_id=9002, value_type=StringType(), value_required=False)


def state_schema(plan: Plan) -> Schema:
    """Schema of the state table: ``k0 .. kn``, the key, then what is kept of it.

    ``kind``: tombstone (the key was deleted at ``position``), cells (the row that stands at ``position`` was written in
    parts: ``versions`` holds the position of each column, under the empty name that of all columns not named, empty
    where never written), truncate (everything below ``position``; no key).
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
    """Add and widen columns so that the table holds the plan's; a no-op when it does."""
    existing = dict(_existing(table))
    with table.update_schema() as update:
        before: str | None = None
        for column in plan.columns:
            if column.name not in existing:
                update.add_column((column.name,), iceberg_type(column.type))
                if before is None:
                    update.move_first((column.name,))
                else:
                    update.move_after((column.name,), (before,))
            elif existing[column.name] != column.type:
                update.update_column((column.name,), field_type=iceberg_type(column.type))
            before = column.name
    return table.refresh()


def shape_from(text: str) -> Shape:
    """A shape as the change log keeps it."""
    return Shape(msgspec.json.decode(text, type=tuple[Column, ...]))
