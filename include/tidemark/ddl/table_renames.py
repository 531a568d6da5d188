"""Renames of tables, by the tables that they concern."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from tidemark.ddl.changes import RenameTable
from tidemark.ddl.lineages import is_by_tool
from tidemark.ddl.stated_tables import KnownTables
from tidemark.ledger.rows import StatementRow


class TableRename(NamedTuple):
    """A statement that gave a table another name, or gave its name to another table."""

    position: str
    batch: int
    statement: str
    at: datetime | None = None
    together: tuple[str, ...] | None = None
    """New names of all tables that the statement renamed, where a message has a part of it."""


def renames_by_table(rows: Sequence[StatementRow], objects: Iterable[str]) -> dict[str, list[TableRename]]:
    """Return the renames of each table, also those by which it got its name; none by tools that change a schema.

    Args:
        rows: statements of the source.
        objects: the tables that have events, as the source names them; other tables are left out.
    """
    if not rows:
        return {}
    from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    known = KnownTables(objects)
    found: dict[str, list[TableRename]] = defaultdict(list)
    for row in rows:
        rename = TableRename(row.position, row.batch, row.statement, row.at, row.together)
        for change in parse(row.statement, row.dialect):
            if not isinstance(change, RenameTable) or is_by_tool(change.table, change.new):
                continue
            concerned = chain(*(known.claimants(named, row, renames=True) for named in (change.table, change.new)))
            for name in (name for name in concerned if name in known and rename not in found[name]):
                found[name].append(rename)
    return dict(found)
