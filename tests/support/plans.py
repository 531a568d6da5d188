"""What the plan of a table is made from, without Spark: shapes of messages, DDL, and published tables with rows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import NestedField, StringType, TimestamptzType

from tidemark.ddl.history import SchemaHistory
from tidemark.ddl.names import Renaming
from tidemark.events import Column, Encoding, Shape
from tidemark.lake.lake import Lake
from tidemark.lake.properties import KEY_PROPERTY, OBJECT_PROPERTY, SOURCE_PROPERTY, TABLE_PROPERTIES, VOID_DOC
from tidemark.sources.model import Source
from tidemark.tables.epochs import shapes_by_epoch
from tidemark.tables.evolving import names_of
from tidemark.tables.plan import Found
from tidemark.tables.schemas import COMMITTED_AT, POSITION
from tidemark.values.types import iceberg_type

SOURCE, OBJECT = "planned", "shop.t"
Told = str | tuple[str | None, Encoding] | None
"""What messages say of a column: its type, or type and encoding; None: nothing."""
_numbers = itertools.count(1)


def source(table: Mapping[str, Any] | None = None, **fields: Any) -> Source:
    """Return a source file; ``table`` is what it says of ``shop.t``."""
    tables = {} if table is None else {OBJECT: dict(table)}
    landing = {"source": SOURCE, "format": "debezium_json", "landing": "landing/*"}
    return Source.model_validate({**landing, "tables": tables, **fields})


def shape(**columns: Told) -> Shape:
    """Return the shape of messages with these columns."""
    return Shape(
        tuple(
            Column(name, *(declared if isinstance(declared, tuple) else (declared,)))
            for name, declared in columns.items()
        )
    )


def found(*shapes: Shape, table: Table | None = None, epochs: Sequence[int] | None = None, **fields: Any) -> Found:
    """Return what is known of ``shop.t`` and of its new events, which came in batch 2.

    Args:
        shapes: of the messages.
        table: the published table, which stands at batch 1.
        epochs: how many renames and drops each shape has behind it; without, all that are known.
        fields: other fields of ``Found``.
    """
    known = Found(
        object=OBJECT,
        database="shop",
        schema=None,
        name="t",
        events=1,
        truncates=0,
        shapes={each.id: each for each in shapes},
        partial=False,
        halves=False,
        published_batch=0 if table is None else 1,
        table=table,
        **{"keys": [("id",)], **fields},
    )
    renamings = known.history.renamings
    if not (renamings or known.called):
        return known
    present = [
        f"{each.id}@{epoch}" for each, epoch in zip(shapes, epochs or [len(renamings)] * len(shapes), strict=True)
    ]
    by_epoch, today = shapes_by_epoch(known.shapes, names_of(known, table), present)
    return replace(known, shapes=by_epoch, names=today)


def renamed(*renamings: tuple[str, str, str | None], batch: int = 2) -> SchemaHistory:
    """Return a history of renames and drops: position, old name, and new name or None."""
    return SchemaHistory(tuple(Renaming(at, batch, old, new) for at, old, new in renamings))


def published(
    lake: Lake, columns: Mapping[str, str], *rows: Sequence[Any], key: Sequence[str] = ("id",), void: Sequence[str] = ()
) -> Table:
    """Return a published table with these columns and rows, all written at position 10.

    Args:
        lake: where it is made, under a name of its own.
        columns: types by name.
        rows: values of the columns.
        key: its key.
        void: columns whose type is still open.
    """
    own = {POSITION: StringType(), COMMITTED_AT: TimestamptzType()}
    types = {**{name: iceberg_type(kind) for name, kind in columns.items()}, **own}
    fields = [
        NestedField(number, name, kind, doc=VOID_DOC if name in void else None)
        for number, (name, kind) in enumerate(types.items(), start=1)
    ]
    owner = {SOURCE_PROPERTY: SOURCE, OBJECT_PROPERTY: OBJECT, KEY_PROPERTY: json.dumps(list(key))}
    table = lake.ensure(("planned", f"t{next(_numbers)}"), Schema(*fields), {**TABLE_PROPERTIES, **owner})
    if rows:
        made = [dict(zip(types, (*row, "10", None), strict=True)) for row in rows]
        table.append(pa.Table.from_pylist(made, schema=table.schema().as_arrow()))
    table.manage_snapshots().create_tag(snapshot_id=_head(table), tag_name="cut_1").commit()
    return lake.load(table.name())


def _head(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id
