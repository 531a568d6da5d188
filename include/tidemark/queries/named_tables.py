"""Tables as people name them: with or without the namespace, and with a suggestion where there is no such table."""

from __future__ import annotations

from pyiceberg.table import Table

from tidemark.errors import UnknownNameError
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.sources.fields import RESERVED_NAMES
from tidemark.text import nearest


def published_tables(lake: Lake) -> list[Identifier]:
    """Return the tables of all sources, with histories, sorted; not the tables in which stages meet."""
    namespaces = sorted(name for (name, *_) in lake.catalog.list_namespaces() if name not in RESERVED_NAMES)
    return [Identifier(namespace, table) for namespace in namespaces for table in lake.tables(namespace)]


def find(lake: Lake, name: str) -> tuple[Identifier, Table]:
    """Return the table of a name: ``source.table``, or ``table`` if only one source has such a table.

    Raises:
        UnknownNameError: there is no such table, or more than one. The error suggests a name.
    """
    identifier = Identifier.parse(name)
    table = lake.find(identifier) if identifier.name else None
    if table is not None:
        return identifier, table
    known = published_tables(lake)
    found = [each for each in known if each.name == name]
    if len(found) == 1:
        return found[0], lake.load(found[0])
    if found:
        raise UnknownNameError(f"Table '{name}' is {' and '.join(map(str, found))}; name one of them.")
    if not known:
        raise UnknownNameError(f"No table '{name}': nothing is published yet. `tidemark run SOURCE` publishes.")
    hint = nearest(name, map(str, known))
    raise UnknownNameError(f"No table '{name}'.{hint} `tidemark sql \"SHOW TABLES\"` lists all of them.")
