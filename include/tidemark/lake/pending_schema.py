"""Renames and drops that a table's property holds until its cut is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyiceberg.table import Table
from pyiceberg.types import NestedField

from tidemark.lake.branches import put_schema

PENDING_PROPERTY = "tidemark.pending"
"""JSON: ``cut``, at whose publishing the rest is done; ``names``, field id to new name; ``drops``, field ids;
``properties``, to be set with it."""


def pending(table: Table, cut: int) -> dict[str, Any]:
    """What is to be done to a table's schema when a cut is published; empty for nothing."""
    told: dict[str, Any] = json.loads(table.properties.get(PENDING_PROPERTY, "{}"))
    return told if told.get("cut") == cut else {}


def plan_pending(table: Table, cut: int, today: Mapping[str, str | None], properties: Mapping[str, str]) -> Table:
    """Write down what publishing a cut does to the schema, or that it does nothing.

    Args:
        table: with all columns of the candidate.
        cut: number of the cut.
        today: stored name to the name after publishing, None for a column that goes; others stay.
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
    told = json.dumps({"cut": cut, "names": names, "drops": drops, "properties": dict(properties)})
    with table.transaction() as transaction:
        transaction.set_properties({PENDING_PROPERTY: told})
    return table


def follow(table: Table, cut: int) -> None:
    """Do what ``plan_pending`` wrote down: one commit; nothing when it is done already."""
    told = pending(table, cut)
    if not told:
        return
    schema = table.schema()
    fields = [
        NestedField(
            field_id=field.field_id,
            name=told["names"].get(str(field.field_id), field.name),
            field_type=field.field_type,
            required=field.required,
            doc=field.doc,
        )
        for field in schema.fields
        if field.field_id not in told["drops"]
    ]
    put_schema(table, fields, told["properties"], [PENDING_PROPERTY])
