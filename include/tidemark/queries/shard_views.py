"""A folded table seen as one of its shards: with the shard's name, its columns, and the key that its messages have."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyiceberg.table import Table

from tidemark.errors import ConfigurationError
from tidemark.lake.properties import FOLDED_PROPERTY, KEY_PROPERTY, OBJECT_PROPERTY
from tidemark.sources.routes import SHARD_COLUMN
from tidemark.tables import shard_rules
from tidemark.tables.schemas import columns_of, key_of
from tidemark.text import suggestion


def shard_of(table: Table, name: str, given: Sequence[str]) -> tuple[Table, list[str]]:
    """Return a table as the shard that a row is from, and what else was given of the row's key.

    A table of its own is returned as it is.

    Args:
        table: a published table.
        name: of the table, for errors.
        given: the row's key, as texts ``COLUMN=VALUE``; the shard may be given as well, by ``_cdc_table=``.

    Raises:
        ConfigurationError: none of the shards has these values, or several have.
    """
    known = shard_rules.recorded(table)
    if not known:
        return table, list(given)
    types = dict(columns_of(table))
    wanted = dict(text.partition("=")[::2] for text in given)
    fitting = [
        shard
        for shard, added in known.items()
        if all(
            _alike(wanted[column], value, types.get(column, "string"))
            for column, value in {**added, SHARD_COLUMN: shard}.items()
            if column in wanted
        )
    ]
    if len(fitting) != 1:
        examples = ", ".join(sorted(fitting)[:5])
        which = f"several tables have rows like this, {examples}" if fitting else "none of its tables has these values"
        hint = "" if fitting else suggestion(wanted.get(SHARD_COLUMN, ""), list(known))
        raise ConfigurationError(f"{name}: {which}; name the table as well, {SHARD_COLUMN}=TABLE.{hint}")
    own = {*known[fitting[0]], SHARD_COLUMN}
    return _view(table, fitting[0], own), [text for text in given if text.partition("=")[0] not in own]


def folded_name(table: Table) -> str:
    """Return the name that the ledger has for a table; for a view, the name of all its shards together."""
    return table.properties.get(FOLDED_PROPERTY) or table.properties[OBJECT_PROPERTY]


def is_view(table: Table) -> bool:
    """Return whether a table is seen as one of its shards."""
    return FOLDED_PROPERTY in table.properties


def names_of(table: Table) -> set[str]:
    """Return the names that the table's events may have in quarantine."""
    return {table.properties[OBJECT_PROPERTY], folded_name(table)}


def own_columns(table: Table) -> set[str]:
    """Return the columns of a view that no message has."""
    if not is_view(table):
        return set()
    return {*shard_rules.recorded(table)[table.properties[OBJECT_PROPERTY]], SHARD_COLUMN}


def _view(table: Table, shard: str, own: set[str]) -> Table:
    properties = {
        **table.properties,
        OBJECT_PROPERTY: shard,
        FOLDED_PROPERTY: table.properties[OBJECT_PROPERTY],
        KEY_PROPERTY: json.dumps([name for name in key_of(table) if name not in own]),
    }
    metadata = table.metadata.model_copy(update={"properties": properties})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def _alike(given: str, value: str, kind: str) -> bool:
    """Return whether a person means the value of an added column: 1 is 01 in a column of numbers."""
    if kind in {"int", "long"} and given.lstrip("-").isdecimal():
        return int(given) == int(value)
    return given == value
