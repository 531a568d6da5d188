"""The target of a table: where it is published, and which names are allowed there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from pyiceberg.table import Table

from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import TableId
from tidemark.lake.names import Identifier, is_rehearsal, joined, state
from tidemark.lake.properties import OBJECT_PROPERTY, PARTS_PROPERTY, SOURCE_PROPERTY
from tidemark.sources import model, routes
from tidemark.sources.fields import RESERVED_NAMES
from tidemark.tables.plan import Found
from tidemark.values.declared_types import entry_for


def refuse_name(name: str, target: Identifier) -> None:
    """Refuse a target that cannot be one.

    Args:
        name: the table as the source names it.
        target: where it would be published.

    Raises:
        IncompatibleSchemaError: the names in the messages cannot be names of a table in the catalog.
    """
    if target.namespace.casefold() in RESERVED_NAMES or is_rehearsal(target.namespace):
        raise IncompatibleSchemaError(
            f"{name}: the namespace {target.namespace!r} is for Tidemark's own tables; name the table with `target:`"
        )
    for part in target:
        if problem := name_problem(part):
            raise IncompatibleSchemaError(f"{name}: {part!r} {problem}; name the table with `target:`")


def named(source: model.Source, table: TableId) -> Identifier:
    """Return the name that the source file gives a table, whether it may be one or not."""
    return Identifier(*routes.route_of(source, table).target)


def named_apart(source: model.Source, table: TableId) -> Identifier:
    """Return the name of a table where another one has the name that the source file gives it: ``erp.db__orders``."""
    target = named(source, table)
    return Identifier(target.namespace, joined([*filter(None, (table.database, table.schema)), target.name]))


def targets_of(
    source: model.Source, tables: Mapping[str, TableId], published: Mapping[str, Identifier], first: Mapping[str, int]
) -> dict[str, Identifier]:
    """Return where tables are published, each under a name of its own.

    A name stays with the table that is published under it. Of the others, the table whose events came first gets the
    name that the source file gives, then the one whose name at the source sorts first. A table whose name is taken
    gets its database and schema in front of it. What an entry names by itself is never changed.

    Args:
        source: the source file.
        tables: by the source's names, those that are tables of their own.
        published: by the source's names, where tables were last published.
        first: batch in which each table's first event came.
    """
    taken = {_alike(target): name for name, target in published.items()}
    found: dict[str, Identifier] = {}

    def rank(name: str) -> tuple[bool, bool, int, str]:
        entry = entry_for(source.tables, name)
        given = entry is not None and entry.target is not None
        return (not given, name not in published, first.get(name, 0), name)

    for name in sorted(tables, key=rank):
        table, entry = tables[name], entry_for(source.tables, name)
        choices = [named(source, table)]
        if entry is None or entry.target is None:
            choices.append(named_apart(source, table))
        kept = [target for target in choices if published.get(name) == target]
        free = [target for target in choices if taken.get(_alike(target), name) == name]
        found[name] = (kept or free or choices)[0]
        taken[_alike(found[name])] = name
    return found


def _alike(target: Identifier) -> str:
    """Return what two names have in common that some catalog or engine takes for one, or whose states are one table."""
    return str(state(target)).casefold()


def claim(source: model.Source, found: Found, table: Table | None, *, anew: bool) -> None:
    """Refuse to publish a table over the published table of another one.

    Raises:
        IncompatibleSchemaError: the target holds another table.
        RebuildNeededError: the target holds what the source file folded into it before, or one of the tables alone.
    """
    if table is None:
        return
    owner, name = table.properties.get(SOURCE_PROPERTY), table.properties.get(OBJECT_PROPERTY, "")
    if (owner, name) == (source.source, found.object):
        _refuse_other_parts(found, table.properties.get(PARTS_PROPERTY))
        return
    if owner == source.source and _is_succeeded(name, found, found.objects):
        if anew:
            return
        raise RebuildNeededError(f"{found.object}: {found.target} was made of {name} so far")
    raise IncompatibleSchemaError(
        f"{found.object} would be published as {found.target}, which holds {name} of source {owner}; tell them apart "
        "with `target:`"
    )


def _refuse_other_parts(found: Found, recorded: str | None) -> None:
    """Refuse a table of the same text as the published one, whose dots are at other places."""
    new, old = found.at_source.parts, json.loads(recorded or "[]")
    if old != new and ".".join(old) == found.object:  # after a rename they are those of an earlier name
        raise IncompatibleSchemaError(
            f"{found.object} is the name of several tables at the source: {found.target} holds "
            f"{', '.join(map(repr, old))}, and new events are of {', '.join(map(repr, new))}"
        )


def _is_succeeded(name: str, found: Found, objects: Collection[str]) -> bool:
    """Return whether a table takes the place of one that the source file made otherwise before."""
    was_folded = routes.is_folded(name) and routes.target_in(name) == str(found.target)
    return was_folded or (bool(found.shards) and name in objects)


_SAFE_NAME = re.compile(r"[^\W\d][\w $-]{0,126}")

_RESERVED = re.compile(
    r"(branch|tag|at_timestamp|snapshot_id)_.*|.*__(changes|history|state|feed|whole)", re.IGNORECASE
)

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
