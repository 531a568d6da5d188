"""Renames and drops that a table's property holds until its cut is published."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import (
    AddSchemaUpdate,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import NestedField

PENDING_PROPERTY = "tidemark.pending"
"""JSON: ``cut``, whose publishing makes the changes; ``names``, from field id to new name; ``drops``, the field ids of
columns to drop; ``properties``, to be set in the same commit."""


def pending(table: Table, cut: int) -> dict[str, Any]:
    """Return the changes that publishing a cut makes to a table's schema; empty if there are none."""
    planned: dict[str, Any] = json.loads(table.properties.get(PENDING_PROPERTY, "{}"))
    return planned if planned.get("cut") == cut else {}


def plan_pending(table: Table, cut: int, today: Mapping[str, str | None], properties: Mapping[str, str]) -> Table:
    """Write into the table's property which changes publishing a cut makes to the schema, and return the table.

    If there are no changes, the property is removed.

    Args:
        table: with all columns of the candidate.
        cut: number of the cut.
        today: from stored name to the name after publishing, None for a column to drop; other columns stay.
        properties: of the table, after publishing.
    """
    ids = {field.name: field.field_id for field in table.schema().fields}
    names = {str(ids[old]): new for old, new in today.items() if new is not None and new != old}
    drops = sorted(ids[old] for old, new in today.items() if new is None)
    if not (names or drops) and PENDING_PROPERTY not in table.properties:
        return table
    if not (names or drops):
        with table.transaction() as transaction:
            transaction.remove_properties(PENDING_PROPERTY)
        return table
    planned = json.dumps({"cut": cut, "names": names, "drops": drops, "properties": dict(properties)})
    with table.transaction() as transaction:
        transaction.set_properties({PENDING_PROPERTY: planned})
    return table


def changes(table: Table, cut: int) -> list[TableUpdate]:
    """Return the changes that ``plan_pending`` wrote down, for the commit that publishes the cut."""
    planned = pending(table, cut)
    if not planned:
        return []
    schema = table.schema()
    fields = [
        NestedField(
            field_id=field.field_id,
            name=planned["names"].get(str(field.field_id), field.name),
            field_type=field.field_type,
            required=field.required,
            doc=field.doc,
        )
        for field in schema.fields
        if field.field_id not in planned["drops"]
    ]
    return [
        *_schema_changes(table, fields),
        SetPropertiesUpdate(updates=planned["properties"]),
        RemovePropertiesUpdate(removals=[PENDING_PROPERTY]),
    ]


def _schema_changes(table: Table, fields: Sequence[NestedField]) -> list[TableUpdate]:
    """Return the changes that give a table these columns; columns that it has keep their ids."""
    known = table.schemas()
    schema = Schema(*fields, schema_id=max(known) + 1)
    number = next((number for number, other in known.items() if other == schema), None)
    if number is not None:
        return [SetCurrentSchemaUpdate.model_validate({"schema-id": number})]
    return [
        AddSchemaUpdate.model_validate({"schema": schema}),
        SetCurrentSchemaUpdate.model_validate({"schema-id": schema.schema_id}),
    ]
