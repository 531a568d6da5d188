"""Columns of a published table that a cut adds, drops, renames or gives another type, found in Iceberg's schemas.

Nothing of the data is read. The first cut of a table changes nothing: all of its columns are new.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tidemark.lake.branches import brought_schema
from tidemark.lake.lake import Lake
from tidemark.lake.pending_schema import pending
from tidemark.ledger.rows import TableRow
from tidemark.quality.verdicts import Invariant
from tidemark.sources.choices import Consequence, Severity
from tidemark.tables.schemas import COMMITTED_AT, DELETED, POSITION

SCHEMA_DRIFT = "columns that changed"
"""Name of the invariant."""

_OWN = frozenset({POSITION, COMMITTED_AT, DELETED})


def invariants_of(
    lake: Lake, rows: Iterable[TableRow], published: Container[str], consequence: Consequence
) -> dict[str, dict[str, Invariant]]:
    """Return by object the invariant about the columns that a cut changes; none for the first cut of a table.

    Args:
        lake: the lake.
        rows: tables of the cut that were built.
        published: objects that an earlier cut published.
        consequence: what the source file says.
    """
    if consequence is Consequence.OFF:
        return {}
    found = {}
    for row in rows:
        if row.object in published:
            columns = tuple(changes(lake.load(row.identifier), row))
            invariant = Invariant(
                value=len(columns), severity=Severity(consequence.value), columns=columns, approvable=True
            )
            found[row.object] = {SCHEMA_DRIFT: invariant}
    return found


def changes(table: Table, row: TableRow) -> Iterator[str]:
    """Yield what a cut changes of the columns of a table, a few words for each column.

    Compact has added and widened columns already; what publishing renames and drops stands in a property of the table.
    Columns are the same by their ids, so a rename that an earlier cut made is not reported again.
    A table that was built anew has its columns with the candidate.
    """
    base = table.snapshot_by_id(row.snapshots.base)
    schema = table.schemas().get(base.schema_id) if base is not None and base.schema_id is not None else None
    if schema is None:
        return
    if (anew := brought_schema(table, row.snapshots.candidate)) is not None:
        yield from _built_anew(table, schema, anew)
        return
    planned = pending(table, row.cut)
    names, drops = planned.get("names", {}), set(planned.get("drops", ()))
    before = {field.field_id: field for field in schema.fields}
    fields = [field for field in table.schema().fields if field.name not in _OWN]
    gone = {field.name for field in fields if field.field_id in drops and field.field_id in before}
    added = {
        names.get(str(field.field_id), field.name): field
        for field in fields
        if field.field_id not in before and field.field_id not in drops
    }
    for name, field in added.items():
        yield f"{name} {'is now' if name in gone else 'added as'} {field.field_type}"
    for field in fields:
        old = before.get(field.field_id)
        if old is None:
            continue
        if field.field_id in drops:
            if field.name not in added:
                yield f"{field.name} dropped"
            continue
        if (new := names.get(str(field.field_id), field.name)) != field.name:
            yield f"{field.name} renamed to {new}"
        if field.field_type != old.field_type:
            yield f"{new} widened from {old.field_type} to {field.field_type}"


def _built_anew(table: Table, written: Schema, anew: Schema) -> Iterator[str]:
    """Yield what changes where a whole table is exchanged: columns are the same by their names, also with a new id.

    Args:
        table: the table, whose schema has the names that readers see.
        written: the schema that the newest rows were written with, which has the types that readers see.
        anew: the schema of the candidate.
    """
    types = {field.field_id: field.field_type for field in written.fields}
    seen = [field for field in table.schema().fields if field.field_id in types and field.name not in _OWN]
    before, after = {field.name: field for field in seen}, {field.name: field for field in anew.fields}
    for name, field in after.items():
        old = before.get(name)
        if old is None:
            if name not in _OWN:
                yield f"{name} added as {field.field_type}"
        elif old.field_id != field.field_id:
            yield f"{name} is now {field.field_type}"
        elif types[old.field_id] != field.field_type:
            yield f"{name} widened from {types[old.field_id]} to {field.field_type}"
    yield from (f"{name} dropped" for name in before if name not in after)
