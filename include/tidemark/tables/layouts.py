"""The layout of a published table: what the source file declares, checked against its columns and put into metadata.

The owner of a table may also change its layout by hand. So a table records what the source file declared when it was
last followed (``LAYOUT_PROPERTY``), and only what changed in the source file since then is changed in the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder
from pyiceberg.transforms import Transform, parse_transform

from tidemark.errors import IncompatibleSchemaError
from tidemark.lake.properties import LAYOUT_PROPERTY, STATE_PROPERTIES
from tidemark.sources.layout import Layout, Transformed
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import OWN_COLUMNS
from tidemark.text import suggestion
from tidemark.values.types import decimal_parts

_SPREAD: Mapping[str, str] = {"write.merge.distribution-mode": "hash"}
"""Of a partitioned table: rows go to the task of their partition, which writes one file of it, not one in each task."""

_EXACT = ("int", "long", "decimal", "string", "binary")

_DATES = ("date", "timestamp", "timestamptz")

_TAKES: Mapping[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("year", "month", "day"), (_DATES, "a date or timestamp")),
    "hour": (("timestamp", "timestamptz"), "a timestamp"),
    "bucket": ((*_EXACT, *_DATES), "a column that is no boolean, float or double"),
    "truncate": (_EXACT, "whole or decimal numbers, text or bytes"),
}
"""Function -> the types of columns that it takes, and how people say that."""


def refuse_unfit(table: str, layout: Layout, columns: Iterable[tuple[str, str]]) -> None:
    """Refuse a layout that names columns which the table does not have, or whose types do not fit.

    Raises:
        IncompatibleSchemaError: it does; the message names the field of the source file.
    """
    types = dict(columns)
    parts = [("partition", place, part) for place, part in enumerate(layout.partitions())]
    parts += [("sort", place, part.by) for place, part in enumerate(layout.order())]
    for field, place, part in parts:
        if problem := _problem(part, types):
            raise IncompatibleSchemaError(f"{table}: layout.{field}[{place}]: {problem}")


def _problem(part: Transformed, types: Mapping[str, str]) -> str | None:
    kind = types.get(part.column)
    if kind is None:
        return f"no column '{part.column}'.{suggestion(part.column, types)}"
    if part.transform is None:
        return None
    allowed, wording = _TAKES[part.transform]
    if ("decimal" if decimal_parts(kind) else kind) in allowed:
        return None
    return f"{part.transform}() needs {wording}; {part.column} is {kind}"


def fits(table: Table, layout: Layout | None) -> bool:
    """Return whether a table has the columns that a layout needs, with types that it can take."""
    types = {field.name: str(field.field_type) for field in table.schema().fields}
    parts = [*layout.partitions(), *(part.by for part in layout.order())] if layout else []
    return not any(_problem(part, types) for part in parts)


def refuse_loss(table: str, published: Table | None, kept: Mapping[str, str], layout: Layout | None) -> None:
    """Refuse a plan under which a column goes, or is another one, that the table is partitioned or sorted by.

    Args:
        table: as the source names it.
        published: the table; None if there is none.
        kept: the stored columns that stay the same column, and the types that they get.
        layout: what the source file declares; None for nothing.

    Raises:
        IncompatibleSchemaError: there is such a column.
    """
    if published is None:
        return
    for name in _used(published, layout):
        if name not in kept and name not in OWN_COLUMNS:
            raise IncompatibleSchemaError(
                f"{table}: column {name!r} goes or gets another type, and the table is partitioned or sorted by it: "
                "take it out there first (`layout` in the source file, or ALTER TABLE)"
            )


def _used(table: Table, layout: Layout | None) -> list[str]:
    """Return the columns that a table will be partitioned and sorted by, of those that it has."""
    now, before = declared(layout), recorded(table)
    changes = {part for part in ("partition", "sort") if now.get(part) != before.get(part) and fits(table, layout)}
    partitions, order = _partitioned_by(table), _sorted_by(table)
    if "partition" in changes:
        partitions = {part.column for part in (layout or Layout()).partitions()}
    if "sort" in changes:
        order = {part.by.column for part in (layout or Layout()).order()}
    return sorted(partitions | order)


def laid_out_by(table: Table) -> list[str]:
    """Return the columns that a table is partitioned and sorted by."""
    return sorted(_partitioned_by(table) | _sorted_by(table))


def _partitioned_by(table: Table) -> set[str]:
    return _names(table, (field.source_id for field in table.spec().fields))


def _sorted_by(table: Table) -> set[str]:
    return _names(table, (field.source_id for field in table.sort_order().fields))


def _names(table: Table, ids: Iterable[int]) -> set[str]:
    names = map(table.schema().find_column_name, ids)
    return {name for name in names if name is not None}


def follow(table: Table, layout: Layout | None, plan: Plan) -> None:
    """Change partitions, sort order and properties of a table where the source file declares others than it did.

    Args:
        table: has the columns of the plan, some maybe under the names that they have until the cut is published.
        layout: what the source file declares; None for nothing.
        plan: the table's plan.
    """
    before = recorded(table)
    now = declared(layout)
    if now == before:
        return
    stored = {column.name: plan.stored(column.name) for column in plan.columns}
    if now.get("partition", []) != before.get("partition", []):
        _repartition(table, (layout or Layout()).partitions(), stored)
    if now.get("sort", []) != before.get("sort", []):
        _reorder(table, layout or Layout(), stored)
    _set_properties(table, before.get("properties", {}), now)


def recorded(table: Table) -> dict[str, Any]:
    """Return what the source file declared when the table last followed it, without what it left out."""
    entries: dict[str, Any] = json.loads(table.properties.get(LAYOUT_PROPERTY, "{}"))
    return entries


def declared(layout: Layout | None) -> dict[str, Any]:
    """Return what a source file declares of a table that exists, without what it leaves out."""
    if layout is None:
        return {}
    properties = {**(_SPREAD if layout.partition else {}), **layout.properties}
    entries = {"partition": list(layout.partition), "sort": list(layout.sort), "properties": properties}
    return {name: value for name, value in entries.items() if value}


def _repartition(table: Table, parts: Iterable[Transformed], stored: Mapping[str, str]) -> None:
    schema = table.schema()
    wanted = {(schema.find_field(stored[part.column]).field_id, str(_transform(part))): part for part in parts}
    present = {(field.source_id, str(field.transform)): field.name for field in table.spec().fields}
    if wanted.keys() == present.keys():
        return
    with table.update_spec() as update:
        for key, name in present.items():
            if key not in wanted:
                update.remove_field(name)
        for key, part in wanted.items():
            if key not in present:
                update.add_field(stored[part.column], _transform(part), _field_name(table.spec(), part))


def _field_name(spec: PartitionSpec, part: Transformed) -> str:
    """Return the name of a partition field, as Iceberg's own engines name it."""
    if part.transform is None:
        return part.column
    ending = {"truncate": "trunc"}.get(part.transform, part.transform)
    name = f"{part.column}_{ending}"
    return f"{name}_{part.number}" if name in {field.name for field in spec.fields} else name


def _transform(part: Transformed) -> Transform[Any, Any]:
    text = part.transform or "identity"
    return parse_transform(text if part.number is None else f"{text}[{part.number}]")


def _reorder(table: Table, layout: Layout, stored: Mapping[str, str]) -> None:
    with table.update_sort_order() as update:
        for part in layout.order():
            nulls = NullOrder.NULLS_FIRST if part.nulls_first else NullOrder.NULLS_LAST
            (update.desc if part.descending else update.asc)(stored[part.by.column], _transform(part.by), nulls)


def _set_properties(table: Table, before: Mapping[str, str], now: Mapping[str, Any]) -> None:
    """Set what is declared, and record it; what is declared no longer goes, unless somebody else changed it since."""
    properties = now.get("properties", {})
    gone = [name for name in before if name not in properties and table.properties.get(name) == before[name]]
    changed = {name: value for name, value in properties.items() if before.get(name) != value}
    back = {name: STATE_PROPERTIES[name] for name in gone if name in STATE_PROPERTIES}
    with table.transaction() as transaction:
        transaction.set_properties({**changed, **back, LAYOUT_PROPERTY: json.dumps(now)})
        if removed := [name for name in gone if name not in back]:
            transaction.remove_properties(*removed)
