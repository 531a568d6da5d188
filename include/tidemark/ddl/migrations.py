"""Tables that tools make to change the schema of a table: gh-ost, pt-online-schema-change, Facebook's OSC, LHM.

Such a tool changes an empty copy of the table, fills it with the rows, and then gives it the table's name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container

import msgspec

from tidemark.ddl.changes import AddColumn, Change, ChangeType, DropColumn, RenameColumn
from tidemark.ledger.rows import StatementRow

_TABLES = re.compile(
    r"_(?P<gh_ost>.+?)(?:_[0-9]{14})?_(?:gho|ghc|del)|_+(?P<pt>.+)_(?:new|old)|__osc_(?:new|old|chg)_(?P<osc>.+)|"
    r"lhm[na]_(?:[0-9_]{20,26}_)?(?P<lhm>.+)",
    re.IGNORECASE,
)
"""Names of such tables, as the tools' documents have them."""

_COPIES = re.compile(r"_.+_(?:gho|new)|__osc_new_.+|lhmn_.+", re.IGNORECASE)
"""Those of the names that copies have."""

_COLUMNS = (AddColumn, DropColumn, RenameColumn, ChangeType)


def belongs_to(name: str) -> str | None:
    """Return the table that a tool made this one for, by its own name; None for any other name.

    >>> belongs_to("_orders_gho"), belongs_to("__orders_new"), belongs_to("orders_new")
    ('orders', 'orders', None)
    """
    found = _TABLES.fullmatch(name)
    return next(filter(None, found.groups()), None) if found else None


def is_copy(name: str) -> bool:
    """Return whether a name is that of a copy, which is to take the name of its table; others are put aside.

    >>> is_copy("_orders_new"), is_copy("_orders_old")
    (True, False)
    """
    return belongs_to(name) is not None and _COPIES.fullmatch(name) is not None


def may_be_by_hand(copy: str) -> bool:
    """Return whether people name copies of their own so, too: ``_orders_new``, and hardly ``_orders_gho``."""
    return copy.casefold().endswith("_new")


def is_tools_own(database: str, name: str, known: Container[str]) -> bool:
    """Return whether a table is one of these, beside the table that it was made for.

    Args:
        database: the name of the table without its last part, and with the dot; may be empty.
        name: the last part.
        known: the tables of the source, as source files name them.
    """
    made_for = belongs_to(name)
    return made_for is not None and f"{database}{made_for}" in known


class Copies:
    """What statements changed in tools' tables, until the table takes the name of the one that it was made for."""

    def __init__(self) -> None:
        self._changed = defaultdict[str, list[tuple[StatementRow, Change]]](list)

    def add(self, table: str, row: StatementRow, change: Change) -> None:
        """Note a change of a tool's table; any change but of its columns drops what was noted of it."""
        if belongs_to(table.rpartition(".")[2]) is None:
            return
        if isinstance(change, _COLUMNS):
            self._changed[table].append((row, change))
        else:
            self._changed.pop(table, None)

    def renamed(self, old: str, new: str, row: StatementRow) -> list[tuple[StatementRow, Change]]:
        """Return what the rename of a copy changes in the table whose name it takes: at the place of the rename."""
        changed = self._changed.pop(old, [])
        if belongs_to(old.rpartition(".")[2]) != new.rpartition(".")[2]:
            return []
        return [
            (msgspec.structs.replace(each, position=row.position, batch=max(each.batch, row.batch)), change)
            for each, change in changed
        ]
