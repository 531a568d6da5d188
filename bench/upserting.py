"""Merges a batch by PyIceberg's ``upsert``, without Spark, as ``dlt`` and scripts do; Arrow reads the messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from generator import COLUMNS, KEY
from pyiceberg.expressions import In
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from tidemark.lake.lake import Lake
from tidemark.values.types import iceberg_type

TABLE = ("bench", "orders")

_TEXTS = ("decimal", "date", "timestamptz")
"""Types whose values are texts in the messages."""


def merge(files: Sequence[str]) -> None:
    """Make the table from an initial load, or delete and upsert the newest change of each key."""
    lake = Lake.open()
    fields = [NestedField(place, name, iceberg_type(kind)) for place, (name, kind) in enumerate(COLUMNS.items(), 1)]
    is_new = lake.find(TABLE) is None
    table = lake.ensure(TABLE, Schema(*fields), {})
    rows = _newest(pa.concat_tables(_typed(file, table.schema().as_arrow()) for file in files))
    gone = np.asarray(rows["op"]) == "d"
    kept = rows.filter(pa.array(~gone)).drop(["op"])
    if is_new:
        table.append(kept)
        return
    if gone.any():
        table.delete(In(KEY, rows.filter(pa.array(gone))[KEY].to_pylist()))
    table.upsert(kept, join_cols=[KEY])


def _typed(file: str, schema: pa.Schema) -> pa.Table:
    """Return one typed row a message, in the order of the log: the columns, and ``op``."""
    read = [pa.field(each.name, _read_as(COLUMNS[each.name], each.type)) for each in schema]
    image = pa.struct(read)
    envelope = pa.schema([("op", pa.string()), ("before", image), ("after", image)])
    options = pj.ParseOptions(explicit_schema=envelope, unexpected_field_behavior="ignore")
    found = pj.read_json(file, pj.ReadOptions(block_size=1 << 24), options).combine_chunks()
    before, after = (found[name].combine_chunks() for name in ("before", "after"))
    has_after = pc.is_valid(after)
    columns = {
        each.name: pc.if_else(has_after, after.field(place), before.field(place)).cast(each.type)
        for place, each in enumerate(schema)
    }
    return pa.table({**columns, "op": found["op"]}).cast(schema.append(pa.field("op", pa.string())))


def _read_as(kind: str, own: pa.DataType) -> pa.DataType:
    return pa.string() if kind.startswith(_TEXTS) else own


def _newest(rows: pa.Table) -> pa.Table:
    """Return the last row of each key."""
    numbered = rows.select([KEY]).append_column("number", pa.array(np.arange(len(rows))))
    return rows.take(numbered.group_by(KEY).aggregate([("number", "max")])["number_max"].combine_chunks())
