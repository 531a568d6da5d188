"""Layouts that fit no column, layouts that change, and what owners did by hand; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform

from support.plans import found, published, renamed, shape, source
from tidemark.compaction import laid_out_beside
from tidemark.errors import IncompatibleSchemaError
from tidemark.lake import copies, names
from tidemark.lake.branches import head
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.sources.layout import Layout, overlap, sharing
from tidemark.tables import layouts
from tidemark.tables.plan import Plan
from tidemark.tables.planner import plan

COLUMNS = {"id": "long", "at": "timestamp", "total": "decimal(9, 2)", "share": "double", "name": "string"}


def _plan(layout: dict[str, Any], **known: Any) -> Plan:
    return plan(source({"layout": layout}), found(shape(**COLUMNS), **known), known.get("table"))


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ({"partition": ["id", "month(id)"]}, r"layout.partition\[1\]: month\(\) needs a date or timestamp; id is long"),
        ({"partition": ["bucket(8, share)"]}, r"needs a column that is no boolean, float or double; share is double"),
        ({"partition": ["truncate(8, at)"]}, r"truncate\(\) needs whole or decimal numbers, text or bytes; at is time"),
        ({"sort": ["id", "nam desc"]}, r"layout.sort\[1\]: no column 'nam'. Did you mean 'name'\?"),
    ],
)
def test_a_layout_that_does_not_fit_stops_the_table(layout: dict[str, Any], reason: str) -> None:
    """The reason names the field of the source file, and what it needs."""
    with pytest.raises(IncompatibleSchemaError, match=reason):
        _plan(layout)


def test_every_function_takes_the_types_that_iceberg_takes() -> None:
    """Partitions of times, of exact numbers and of texts; anything may be sorted by."""
    parts = ["hour(at)", "year(at)", "day(at)", "bucket(3, total)", "truncate(10, total)", "truncate(2, name)", "share"]
    assert _plan({"partition": parts, "sort": ["share desc", "bucket(3, id)"]}).columns


def _told(lake: Lake, name: tuple[str, ...]) -> tuple[list[str], list[str], dict[str, str]]:
    table = lake.load(name)  # type: ignore[arg-type]
    own = {name: value for name, value in table.properties.items() if name.startswith(("write.target", "comment"))}
    spec = [f"{field.transform}:{field.name}" for field in table.spec().fields]
    return spec, [f"{field.source_id} {field.direction.name}" for field in table.sort_order().fields], own


def test_only_what_changes_in_the_source_file_changes_in_the_table(lake: Lake) -> None:
    """What an owner sets by hand stays until the source file says otherwise about the same thing."""
    table = published(lake, COLUMNS)
    name = table.name()
    first = Layout(partition=("month(at)",), sort=("id desc",), properties={"comment": "first"})
    made = _plan({})
    layouts.follow(table, first, made)
    assert _told(lake, name) == (["month:at_month"], ["1 DESC"], {"comment": "first"})
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "by_hand")
    with table.transaction() as transaction:
        transaction.set_properties({"comment": "by hand", "write.target-file-size-bytes": "1"})
    metadata = table.metadata_location
    layouts.follow(table, first, made)
    assert table.metadata_location == metadata
    layouts.follow(table, Layout(partition=("month(at)",), sort=("name",)), made)
    by_hand = {"comment": "by hand", "write.target-file-size-bytes": "1"}
    assert _told(lake, name) == (["month:at_month", "bucket[4]:by_hand"], ["5 ASC"], by_hand)
    layouts.follow(table, Layout(partition=("bucket(2, id)", "bucket(4, id)", "name")), made)
    assert _told(lake, name) == (["bucket[4]:by_hand", "bucket[2]:id_bucket", "identity:name"], [], by_hand)
    layouts.follow(table, None, made)
    assert _told(lake, name) == ([], [], by_hand)


def test_a_column_that_lays_a_table_out_does_not_go(lake: Lake) -> None:
    """Engines could not read the table any more. Where the source file takes it out of the layout too, it may go."""
    row, entry = shape(**COLUMNS), {"exclude": ["name"]}
    by_hand = published(lake, COLUMNS, (1, None, None, None, "x"))
    with by_hand.update_spec() as update:
        update.add_identity("name")
    reason = "column 'name' goes or gets another type, and the table is partitioned or sorted by it"
    for changed in (entry, {"mask": {"name": "hash"}, "columns": {"total": "decimal(9, 2)"}}):
        again = "mask" in changed
        kept = published(lake, {**COLUMNS, "name": "long"}, (1, None, None, None, 5)) if again else by_hand
        if again:
            with kept.update_spec() as update:
                update.add_identity("name")
        with pytest.raises(IncompatibleSchemaError, match=reason):
            plan(source(changed), found(row, table=kept), kept, anew=again)
    declared = published(lake, COLUMNS, (1, None, None, None, "x"))
    layouts.follow(declared, Layout(partition=("name",)), _plan({}))
    assert plan(source(entry), found(row, table=declared), declared).today == {"name": None}
    with pytest.raises(IncompatibleSchemaError, match=r"layout.partition\[0\]: no column 'name'"):
        plan(source({**entry, "layout": {"partition": ["name"]}}), found(row, table=declared), declared)


def test_tables_of_a_pattern_have_folders_of_their_own() -> None:
    """Maintenance removes files of a folder that its table does not know."""
    layout = Layout(location="s3://lake/shop/")
    assert layout.place("shop.orders", ("erp", "orders")) == "s3://lake/shop/"
    assert layout.place("shop.*", ("erp", "orders")) == "s3://lake/shop/erp/orders"
    assert layout.place(r"shop_(\d+).orders", ("erp", "orders_1")) == "s3://lake/shop/erp/orders_1"
    assert Layout().place("shop.*", ("erp", "orders")) is None


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("s3://lake/shop", "s3://lake/shop/", True),
        ("s3://lake/shop", "s3a://lake/shop/orders", True),
        ("s3://lake/shop/orders", "s3://lake", True),
        ("file:///data/lake", "/data/lake/erp", True),
        ("s3://lake/shop", "s3://lake/shops", False),
        ("s3://lake/a", "s3://other/a", False),
    ],
)
def test_folders_overlap_where_one_lies_in_the_other(first: str, second: str, *, shared: bool) -> None:
    """Either way round, and whatever the scheme."""
    assert overlap(first, second) is shared
    assert overlap(second, first) is shared


def test_each_of_the_tables_that_share_a_folder_is_named() -> None:
    """The one around the others too; those beside it are not."""
    places = {"raw": "/lake/raw", "a": "/lake/shop", "b": "/lake/shop/", "c": "/lake/shop/c", "d": "/lake/shops"}
    assert sharing(places.items()) == {"a", "b", "c"}
    assert sharing([("a", "/lake/a"), ("b", "/lake/b")]) == set()


@pytest.mark.parametrize(
    ("promised", "beside"),
    [
        ({"history": True}, names.history),
        ({"feed": True}, names.feed),
        ({"where": "id > 0"}, names.whole),
        ({"where": "id > 0", "history": True}, lambda target: names.whole(names.history(target))),
    ],
    ids=["history", "feed", "whole_rows", "whole_versions"],
)
def test_a_column_that_lays_out_a_table_beside_does_not_go(
    lake: Lake, promised: dict[str, Any], beside: Callable[[Identifier], Identifier]
) -> None:
    """It could not be published: Iceberg refuses it. The reason names the column, and the table to take it out of."""
    table = published(lake, COLUMNS, (1, None, None, None, "x"))
    known = found(shape(**COLUMNS), table=table, target=Identifier(*table.name()))
    laid_out = beside(Identifier(*table.name()))
    kept = lake.ensure(laid_out, table.schema(), {})
    run: Any = SimpleNamespace(lake=lake)
    begins = "where" in promised
    made = plan(source({"exclude": ["name"], **promised}), known, table, anew=begins)
    laid_out_beside.refuse_loss(run, made)
    with kept.update_spec() as update:
        update.add_identity("id")
    with kept.update_sort_order() as order:
        order.asc("name", IdentityTransform(), NullOrder.NULLS_LAST)
    reason = f"shop.t: column 'name' goes or gets another type, and {laid_out} is partitioned or sorted by it"
    with pytest.raises(IncompatibleSchemaError, match=reason):
        laid_out_beside.refuse_loss(run, made)
    anew = plan(source({"columns": {"name": "binary"}, **promised}), known, table, anew=True)
    with pytest.raises(IncompatibleSchemaError, match=reason):
        laid_out_beside.refuse_loss(run, anew)
    laid_out_beside.refuse_loss(run, plan(source(promised), known, table, anew=begins))


def test_a_column_that_lays_out_a_history_may_be_renamed_in_one_that_goes_on(lake: Lake) -> None:
    """It keeps its id there. A history that begins again gets the names of today, and the old column goes."""
    table = published(lake, COLUMNS, (1, None, None, None, "x"))
    known = found(
        shape(**{**COLUMNS, "name": "string"}),
        table=table,
        target=Identifier(*table.name()),
        history=renamed(("50", "name", "called")),
        epochs=[0],
    )
    made = plan(source({"history": True}), known, table)
    assert made.today == {"name": "called"}
    kept = lake.ensure(names.history(Identifier(*table.name())), table.schema(), {})
    with kept.update_spec() as update:
        update.add_identity("name")
    run: Any = SimpleNamespace(lake=lake)
    with pytest.raises(IncompatibleSchemaError, match=f"'name' goes or gets another type, and {'.'.join(kept.name())}"):
        laid_out_beside.refuse_loss(run, made)
    kept.manage_snapshots().create_tag(head(kept), "cut_1").commit()
    laid_out_beside.refuse_loss(run, made)


def test_a_copy_that_cannot_get_its_columns_stops_its_table_alone(lake: Lake) -> None:
    """A rebuild copies a table without a column that its owner sorts it by: a reason, and no copy is left."""
    table = published(lake, COLUMNS)
    with table.update_sort_order() as order:
        order.asc("name", IdentityTransform(), NullOrder.NULLS_LAST)
    schema = Schema(*table.schema().fields[:2])
    reason = r"cannot get its new columns: .* sort field: .*Take the column out of its partitions or its sort order"
    with copies.emptied(lake) as beside:
        with pytest.raises(IncompatibleSchemaError, match=reason):
            beside.ensure(Identifier(*table.name()), schema, {})
        assert "__".join(table.name()) not in beside.tables("rebuild")
