"""The target of a table: where it is published, and which names are allowed there."""

from __future__ import annotations

import re

from pyiceberg.table import Table

from tidemark.errors import IncompatibleSchemaError
from tidemark.events import TableId
from tidemark.lake.names import Identifier
from tidemark.lake.properties import OBJECT_PROPERTY, SOURCE_PROPERTY
from tidemark.sources import model
from tidemark.tables.plan import Found


def target_of(source: model.Source, found: Found) -> Identifier:
    """Return where a table is published.

    Raises:
        IncompatibleSchemaError: the names in the messages cannot be names of a table in the catalog.
    """
    target = named(source, TableId(found.database, found.schema, found.name))
    for part in target:
        if problem := name_problem(part):
            raise IncompatibleSchemaError(f"{found.object}: {part!r} {problem}; name the table with `target:`")
    return target


def named(source: model.Source, table: TableId) -> Identifier:
    """Return the name that the source file's ``target`` gives a table, whether it may be one or not."""
    parts = {
        "source": source.source,
        "database": table.database or "",
        "schema": table.schema or "",
        "table": table.name,
    }
    return Identifier.parse(source.target.format_map(parts))


def claim(source: model.Source, found: Found, table: Table | None) -> None:
    """Refuse to publish a table over the published table of another one."""
    if table is None:
        return
    owner = (table.properties.get(SOURCE_PROPERTY), table.properties.get(OBJECT_PROPERTY))
    if owner != (source.source, found.object):
        raise IncompatibleSchemaError(
            f"{found.object} would be published as {target_of(source, found)}, which holds {owner[1]} of "
            f"source {owner[0]}; tell them apart with `target:`"
        )


_SAFE_NAME = re.compile(r"[^\W\d][\w $-]{0,126}")

_RESERVED = re.compile(r"(branch|tag|at_timestamp|snapshot_id)_.*|.*__(changes|history|state|feed)", re.IGNORECASE)

_METADATA_TABLE = re.compile(
    "history|snapshots|files|manifests|entries|partitions|refs|metadata_log_entries|position_deletes|data_files"
    "|delete_files|changes|all_(data_files|delete_files|files|manifests|entries)",
    re.IGNORECASE,
)


def name_problem(name: str) -> str | None:
    """Return why a name from a message cannot name a table, as part of a sentence; None if it can.

    Catalogs turn names into paths, and engines read some names as metadata tables or branches. So a name must be plain:
    a letter or underscore, then letters, digits, underscores, ``$``, blanks and hyphens.
    """
    if not _SAFE_NAME.fullmatch(name):
        return "is not a plain name (a letter or underscore, then letters, digits, _ $ - or blanks; 127 at most)"
    if _METADATA_TABLE.fullmatch(name) or _RESERVED.fullmatch(name):
        return "is a name that Iceberg or Tidemark uses for something else"
    return None
