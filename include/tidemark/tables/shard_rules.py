"""What the shards of one table have in common, and what is refused of them (docs/adr/0047)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyiceberg.table import Table

from tidemark.ddl.history import Addition, SchemaHistory
from tidemark.ddl.names import ColumnNames
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError, UnreadableValueError
from tidemark.events import Column, Encoding
from tidemark.lake.properties import FOLDED_PROPERTY, OBJECT_PROPERTY, SHARDS_EVER_PROPERTY, SHARDS_PROPERTY
from tidemark.sources.model import Table as Promised
from tidemark.sources.routes import is_folded
from tidemark.tables.plan import Found
from tidemark.tables.shards import added_columns
from tidemark.values.plain import read_value


def table_history(found: Found) -> SchemaHistory:
    """Return the schema changes of all shards that the table as a whole follows, with the names that columns have."""
    additions: list[Addition] = []
    emptyings, notes = [], []
    spelled = [column.name for shape in found.shapes.values() for column in shape.columns]
    for shard in found.shards:
        history = shard.history
        names = ColumnNames(history.renamings, [*spelled, *(each.name for each in history.additions)])
        for each in history.additions:
            name = names.today(each.name, names.behind(each))
            additions += [each._replace(name=name, default=None)] if name is not None else []
        emptyings += [each._replace(shard=shard.object) for each in history.emptyings]
        notes += [note._replace(text=f"{shard.object}: {note.text}") for note in history.notes]
    return SchemaHistory((), tuple(additions), tuple(emptyings), tuple(dict.fromkeys(notes)))


def recorded(table: Table | None) -> dict[str, dict[str, str]]:
    """Return the shards that a table was built from, each with the columns that were added to it; empty for none."""
    if table is None or not is_folded(
        table.properties.get(FOLDED_PROPERTY) or table.properties.get(OBJECT_PROPERTY, "")
    ):
        return {}
    shards: dict[str, dict[str, str]] = json.loads(table.properties.get(SHARDS_PROPERTY, "{}"))
    return shards


def ever_folded(table: Table) -> set[str] | None:
    """Return the tables that were ever folded into a table; None if it has no list of them, as of earlier versions."""
    known = table.properties.get(SHARDS_EVER_PROPERTY)
    return None if known is None else set(json.loads(known))


def refuse_onward(found: Found, table: Table) -> None:
    """Refuse to go on from rows that the shards' changes reach back to.

    Raises:
        RebuildNeededError: other tables belong to it than it was built from, or a shard renamed or dropped a column,
            or added one with a constant: rows of the others keep theirs.
    """
    known = recorded(table)
    joined = [
        shard.object for shard in found.shards if shard.since <= found.published_batch and shard.object not in known
    ]
    left = sorted(known.keys() - {shard.object for shard in found.shards})
    for shard in found.shards:
        if known.get(shard.object, shard.added) != shard.added:
            raise RebuildNeededError(f"{shard.object}: other columns, or other values, are added to it than before")
    if joined or left:
        names = ", ".join([*joined, *left])
        raise RebuildNeededError(f"{found.object}: other tables are folded into it than before: {names}")
    for shard in found.shards:
        for renaming in shard.history.renamings:
            if renaming.batch > found.published_batch:
                raise RebuildNeededError(
                    f"{shard.object}: column {renaming.old!r} was renamed or dropped in this shard"
                )
        for addition in shard.history.additions:
            if addition.batch > found.published_batch and addition.default is not None:
                raise RebuildNeededError(
                    f"{shard.object}: column {addition.name!r} was added to this shard with a value"
                )


def refuse_unfit(found: Found, promised: Promised) -> None:
    """Refuse added columns that the source has too, and values that their types do not hold.

    Raises:
        IncompatibleSchemaError: a column has to be called otherwise, or given another type.
    """
    own = {column.name for column in added_columns(found.shards)}
    source_columns = {column.name.casefold() for shape in found.shapes.values() for column in shape.columns[len(own) :]}
    for name in own:
        if name.casefold() in source_columns:
            raise IncompatibleSchemaError(
                f"{found.object}: `add` gives a column {name!r}, and the source has a column of that name: "
                "choose another"
            )
    for shard in found.shards:
        for name, value in shard.added.items():
            kind = promised.columns.get(name, "string")
            try:
                read_value(json.dumps(value).encode(), Column(name, kind, Encoding.TEXT))
            except UnreadableValueError as error:
                raise IncompatibleSchemaError(f"{shard.object}: `add` gives it {name} = {value!r}: {error}") from error


def tells_apart(found: Found, key: Iterable[str]) -> bool:
    """Return whether the added columns of a key have other values in each shard: no two shards can share a key."""
    wanted = list(key)
    combinations = {tuple(shard.added.get(name) for name in wanted) for shard in found.shards}
    return len(combinations) == len(found.shards)
