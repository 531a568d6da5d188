"""The columns of a feed: the columns of its table, as readers will see them, and columns that describe the change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.exceptions import ResolveError
from pyiceberg.schema import Schema, promote
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, IntegerType, LongType, NestedField, StringType

from tidemark.errors import IncompatibleSchemaError
from tidemark.lake import pending_schema
from tidemark.lake.branches import brought_schema, head, properties_at
from tidemark.lake.properties import KEY_PROPERTY, RULES_PROPERTY
from tidemark.sources.layout import Layout
from tidemark.tables.column_rules import labels
from tidemark.tables.schemas import OWN_PREFIX, POSITION, key_of, place_columns

CHANGE_TYPE = "_change_type"
"""What became of the row, in the words of Delta's change data feed."""

CHANGE_ORDINAL = "_change_ordinal"
"""Which addition to the feed the change came with, counted from 1. A cut makes one; numbers never go back."""

CUT = "_cut"

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"

OWN: Sequence[tuple[str, IcebergType, str]] = (
    (CHANGE_TYPE, StringType(), f"{INSERT}, {BEFORE}, {AFTER} or {DELETE}"),
    (CHANGE_ORDINAL, LongType(), "Number of the addition to the feed that the change came with"),
    (CUT, IntegerType(), "The cut that made the change"),
)
"""Columns of a feed, behind the columns of its table."""

OWN_NAMES = frozenset(name for name, _, _ in OWN)
"""Columns that a feed has beside the columns of its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedColumn:
    """A column of a published table in its feed."""

    field_id: int
    """In the table."""
    name: str
    """When the cut is published."""
    stored: str
    """In the feed, until the cut is published."""
    type: IcebergType
    was: str | None
    """In the feed, as published so far; None for a new column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A published table as a snapshot of it will be seen, beside how it is seen so far."""

    columns: Sequence[FeedColumn]
    key: Sequence[str]
    """Key columns, by the names that they will have."""
    pairs: Sequence[int]
    """Field ids of the columns that say which row before is which row after."""
    masks: dict[str, str]
    """By column, how values are masked, and with which secret."""


_FORMATS = ("write.format.default", "write.delete.format.default")


def refuse_format(name: str, table: Table | None, layout: Layout | None) -> None:
    """Refuse a feed of a table whose files are to be written in a format that the feed cannot read.

    Raises:
        IncompatibleSchemaError: they are.
    """
    properties = {**(table.properties if table is not None else {}), **(layout.properties if layout else {})}
    for each in _FORMATS:
        if (kind := str(properties.get(each, "parquet")).lower()) != "parquet":
            raise IncompatibleSchemaError(
                f"{name}: its files are written as {kind} ({each}), and a feed reads Parquet alone: set the property "
                "to parquet, or leave `feed` out"
            )


def shown(table: Table, snapshot: int, cut: int, feed: Table | None) -> Shown:
    """Return how a published table will be seen when ``main`` stands on a snapshot of the cut."""
    fields, properties = _published(table, snapshot, cut)
    key = json.loads(properties.get(KEY_PROPERTY, "[]"))
    ids = {field.name: field.field_id for field in fields}
    pairs = [ids[name] for name in key]
    stands = {field.name: field.field_id for field in table.schema().fields}
    if not key or pairs != [stands.get(name) for name in key_of(table)]:
        pairs = [ids[POSITION]]  # no key, or another one than so far
    rules = json.loads(properties.get(RULES_PROPERTY, "{}"))
    masks = {name: label for name, label in labels(rules).items() if name in ids}
    return Shown(columns=_columns(table, fields, feed), key=key, pairs=pairs, masks=masks)


def _published(table: Table, snapshot: int, cut: int) -> tuple[Sequence[NestedField], Mapping[str, str]]:
    """Return the columns and properties of a table when ``main`` stands on a snapshot of the cut."""
    properties = properties_at(table, snapshot)
    if snapshot != head(table) and (schema := brought_schema(table, snapshot)) is not None:
        return schema.fields, properties
    pending = pending_schema.pending(table, cut)
    names, drops = pending.get("names", {}), pending.get("drops", ())
    fields = [
        field.model_copy(update={"name": names.get(str(field.field_id), field.name)})
        for field in table.schema().fields
        if field.field_id not in drops
    ]
    return fields, {**properties, **pending.get("properties", {})}


def _columns(table: Table, fields: Sequence[NestedField], feed: Table | None) -> list[FeedColumn]:
    there = {field.name: field for field in feed.schema().fields} if feed is not None else {}
    stands = {field.field_id: field.name for field in table.schema().fields}
    taken, found = OWN_NAMES | there.keys(), []
    for field in fields:
        was = there.get(stands.get(field.field_id, ""))
        if was is not None and _holds(was.field_type, field.field_type):
            stored = was.name
        else:
            was, stored = None, field.name
            while stored in taken:
                stored = OWN_PREFIX + stored
        taken |= {stored}
        kind = field.field_type
        was_named = None if was is None else was.name
        found.append(FeedColumn(field_id=field.field_id, name=field.name, stored=stored, type=kind, was=was_named))
    return found


def _holds(old: IcebergType, new: IcebergType) -> bool:
    """Return whether a column of one type can become one of the other."""
    try:
        return old == new or promote(old, new) == new
    except ResolveError:
        return False


def feed_schema(columns: Sequence[FeedColumn]) -> Schema:
    """Return the schema of a new feed: the columns of the table, then its own."""
    fields = [(column.name, column.type, None) for column in columns]
    return Schema(*(NestedField(n, name, kind, doc=doc) for n, (name, kind, doc) in enumerate([*fields, *OWN], 1)))


def evolve(feed: Table, columns: Sequence[FeedColumn], cut: int) -> Table:
    """Give a feed the columns of a cut, and plan which get another name, or go, when it is published."""
    existing = {field.name: field.field_type for field in feed.schema().fields}
    fits = {column.stored for column in columns if existing.get(column.stored) == column.type}
    if len(fits) < len(columns):
        wanted = [NestedField(number, column.stored, column.type) for number, column in enumerate(columns, start=1)]
        with feed.update_schema() as update:
            place_columns(update, wanted, existing, fits)
    today: dict[str, str | None] = {column.stored: column.name for column in columns if column.stored != column.name}
    today |= dict.fromkeys(existing.keys() - OWN_NAMES - {column.stored for column in columns})
    return pending_schema.plan_pending(feed, cut, today, {})
