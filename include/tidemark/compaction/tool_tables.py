"""Tables that schema-change tools made beside tables of the source: they are not published (``ddl.migrations``)."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.ddl.migrations import belongs_to, is_tools_own, originals
from tidemark.sources.model import Source
from tidemark.values.declared_types import entry_name_for


def unpublished(source: Source, tables: Mapping[str, str]) -> set[str]:
    """Return the tables that tools made beside others; none if the source file says that they are published.

    Args:
        source: the source file.
        tables: all tables that have events, by the source's names, each with the last part of its name.
    """
    if source.migration_tables:
        return set()
    return {name for name, last in tables.items() if belongs_to(last) and _is_beside(source, name, last, tables)}


def _is_beside(source: Source, name: str, last: str, tables: Mapping[str, str]) -> bool:
    """Return whether the source has a table that a tool made another one for.

    It has one that has events. It has one, too, of which the source file says more than of the tool's table: the rows
    of that one may come first, and would be published without its masks.
    """
    database = name.removesuffix(last)
    if is_tools_own(database, last, tables.keys()):
        return True
    entry = entry_name_for(source.tables, originals(database, last, tables)[0])
    return entry is not None and entry != entry_name_for(source.tables, name)
