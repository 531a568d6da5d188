"""Feeds without Spark: which of its columns is which of the table's, and tables that can have none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, IntegerType, LongType, NestedField, StringType

from tidemark.errors import IncompatibleSchemaError
from tidemark.lake import pending_schema
from tidemark.lake.branches import branch_from_main, fast_forward, head
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.properties import KEY_PROPERTY
from tidemark.sources.layout import Layout
from tidemark.tables.feeds import OWN_NAMES, evolve, feed_schema, refuse_format, shown

CUT = 7


def _table(lake: Lake, name: str, columns: dict[str, IcebergType], **properties: str) -> Table:
    fields = (NestedField(number, column, kind) for number, (column, kind) in enumerate(columns.items(), start=1))
    position = NestedField(90, "_cdc_position", StringType())
    key = {KEY_PROPERTY: json.dumps(["id"]), **properties}
    return lake.ensure(Identifier("feeds", name), Schema(*fields, position), key)


def _followed(lake: Lake, name: str, table: Table, cut: int = CUT) -> dict[str, str]:
    """The feed of a table after a cut: its columns, with types."""
    identifier = Identifier("feeds", f"{name}__feed")
    wanted = shown(table, head(table), cut, lake.find(identifier))
    evolve(lake.ensure(identifier, feed_schema(wanted.columns), {}), wanted.columns, cut)
    made = branch_from_main(lake.load(identifier), "candidate")
    fast_forward(made, "candidate", changes=pending_schema.changes(made, cut))
    fields = lake.load(identifier).schema().fields
    return {field.name: str(field.field_type) for field in fields if field.name not in OWN_NAMES}


def test_a_feed_follows_names_and_types_of_its_table(lake: Lake) -> None:
    """A renamed and widened column stays the same one, by field id; one that goes is gone when the cut is published."""
    table = _table(lake, "followed", {"id": IntegerType(), "a": StringType(), "b": StringType()})
    assert _followed(lake, "followed", table, 1) == {
        "id": "int", "a": "string", "b": "string", "_cdc_position": "string",
    }  # fmt: skip
    ids = {field.name: field.field_id for field in lake.load(("feeds", "followed__feed")).schema().fields}
    with table.update_schema() as update:
        update.update_column(("id",), field_type=LongType())
        update.add_column(("n",), StringType())
    table = pending_schema.plan_pending(table, CUT, {"a": "b", "b": None}, {})
    assert _followed(lake, "followed", table) == {
        "id": "long", "b": "string", "_cdc_position": "string", "n": "string",
    }  # fmt: skip
    now = {field.name: field.field_id for field in lake.load(("feeds", "followed__feed")).schema().fields}
    assert (now["id"], now["b"]) == (ids["id"], ids["a"])


def test_another_type_makes_another_column_of_the_name(lake: Lake) -> None:
    """Earlier rows keep their values under the old column, which goes."""
    table = _table(lake, "typed", {"id": IntegerType(), "a": StringType()})
    _followed(lake, "typed", table, 1)
    before = lake.load(("feeds", "typed__feed")).schema().find_field("a").field_id
    with table.update_schema() as update:
        update.delete_column(("a",))
    with table.update_schema() as update:
        update.add_column(("a",), IntegerType())
    assert _followed(lake, "typed", table) == {"id": "int", "_cdc_position": "string", "a": "int"}
    assert lake.load(("feeds", "typed__feed")).schema().find_field("a").field_id != before


def test_rows_are_paired_by_key_unless_the_key_is_new(lake: Lake) -> None:
    """A table without a key, or with another one than before, pairs them by position."""
    for name, key, wanted in (("keyed", ["id"], [1]), ("bag", [], [90])):
        table = _table(lake, name, {"id": IntegerType()}, **{KEY_PROPERTY: json.dumps(key)})
        ids = {field.name: field.field_id for field in table.schema().fields}
        found = shown(table, head(table), CUT, None).pairs
        assert list(found) == [ids["id"] if wanted == [1] else ids["_cdc_position"]]
    rekeyed = pending_schema.plan_pending(table, CUT, {"id": "number"}, {KEY_PROPERTY: json.dumps(["number"])})
    assert list(shown(rekeyed, head(rekeyed), CUT, None).pairs) == [ids["_cdc_position"]]


@pytest.mark.parametrize(
    ("of_table", "layout"),
    [({"write.format.default": "avro"}, None), ({}, {"properties": {"write.delete.format.default": "orc"}})],
)
def test_a_table_of_other_files_has_no_feed(of_table: dict[str, str], layout: Any, lake: Lake) -> None:
    """The reason names the property, whether the source file or the owner set it."""
    table = _table(lake, f"files_{len(of_table)}", {"id": IntegerType()}, **of_table)
    with pytest.raises(IncompatibleSchemaError, match=r"write\..*format\.default"):
        refuse_format("shop.orders", table, None if layout is None else Layout.model_validate(layout))
    refuse_format("shop.orders", None, None)
