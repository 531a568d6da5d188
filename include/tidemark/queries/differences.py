"""The changes that publishing a cut would make to the rows that readers see, table by table."""

from __future__ import annotations

import json
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.lake.branches import properties_at
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.lake.pending_schema import pending
from tidemark.lake.properties import KEY_PROPERTY
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import CutState
from tidemark.spark.session import open_session
from tidemark.tables import epochs
from tidemark.tables.schemas import key_of
from tidemark.text import quoted
from tidemark.values.image_reader import field
from tidemark.values.table_columns import any_of


def differences(lake: Lake, source: str) -> dict[str, dict[str, int]]:
    """Return the rows ``added``, ``removed`` and ``changed`` from what is published to the newest cut, by table.

    Empty if no cut waits to be published. A row is changed if its key is in both and any other column differs, also
    ``_cdc_position``. In a table without a key, or with another key than before, all columns identify a row: a row that
    differs is removed and added.
    """
    ledger = Ledger(lake, source)
    cut = ledger.last_cut()
    if cut is None or cut.state == CutState.PUBLISHED:
        return {}
    session = open_session()
    rows = [row for row in cuts.tables_of(ledger, cut.cut) if cuts.is_built(row)]
    return {str(row.identifier): _difference(session, lake, row) for row in rows}


def _difference(session: SparkSession, lake: Lake, row: TableRow) -> dict[str, int]:
    table = lake.load(row.identifier)
    old, new = (_at(session, lake, row.identifier, snapshot) for snapshot in row.snapshots)
    # Both sides with the names that the columns will have: a rename alone changes no row.
    old = epochs.as_published(epochs.as_shown(old, table, row.snapshots.base), table, row.cut)
    new = epochs.as_published(new, table, row.cut)
    changes = pending(table, row.cut)
    named = {
        field.name: changes.get("names", {}).get(str(field.field_id), field.name) for field in table.schema().fields
    }
    key_before = [named[name] for name in key_of(table)]
    properties = properties_at(table, row.snapshots.candidate) | changes.get("properties", {})
    key = json.loads(properties.get(KEY_PROPERTY, "[]"))
    names = list(dict.fromkeys([*old.columns, *new.columns]))
    as_text = {name for name in names if _type(old, name) != _type(new, name)}
    old, new = (
        frame.select(*(_cell(frame, name, n, as_text=name in as_text) for n, name in enumerate(names)))
        for frame in (old, new)
    )
    if not key or key != key_before:
        return {"added": new.exceptAll(old).count(), "removed": old.exceptAll(new).count(), "changed": 0}
    return _by_key(old, new, [names.index(name) for name in key])


def _at(session: SparkSession, lake: Lake, identifier: Identifier, snapshot: int) -> DataFrame:
    return session.read.option("versionAsOf", str(snapshot)).table(lake.spark_name(identifier))


def _type(frame: DataFrame, name: str) -> str | None:
    return frame.schema[name].dataType.simpleString() if name in frame.columns else None


def _cell(frame: DataFrame, name: str, number: int, *, as_text: bool) -> Column:
    """Return a column by its number, as a name could clash with other names; null if the frame does not have it.

    ``as_text``: the types of the two sides differ.
    """
    cell = F.col(quoted(name)) if name in frame.columns else F.lit(None)
    return (cell.cast("string") if as_text else cell).alias(field(number))


def _by_key(old: DataFrame, new: DataFrame, key: list[int]) -> dict[str, int]:
    sides = [
        frame.select(*(F.col(name).alias(f"{side}{name}") for name in frame.columns), F.lit(1).alias(side))
        for side, frame in (("old", old), ("new", new))
    ]
    same_key = reduce(and_, [F.col(f"old{field(n)}").eqNullSafe(F.col(f"new{field(n)}")) for n in key])
    both = sides[0].join(sides[1], same_key, "full_outer")
    differs = any_of([~F.col(f"old{name}").eqNullSafe(F.col(f"new{name}")) for name in old.columns])
    kinds = {
        "added": F.col("old").isNull(),
        "removed": F.col("new").isNull(),
        "changed": F.col("old").isNotNull() & F.col("new").isNotNull() & differs,
    }
    found = both.agg(*(F.count(F.when(condition, 1)).alias(name) for name, condition in kinds.items())).first()
    return {name: int(value) for name, value in found.asDict().items()} if found else {}
