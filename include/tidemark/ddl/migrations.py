"""Tables that tools make to change the schema of a table: gh-ost, pt-online-schema-change, Facebook's OSC, LHM.

Such a tool changes an empty copy of the table, fills it with the rows, and then gives it the table's name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container

import msgspec

from tidemark.ddl.changes import AddColumn, ChangeType, DropColumn, RenameColumn
from tidemark.ddl.stated import Stated

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
        self._changed = defaultdict[str, list[Stated]](list)

    def add(self, table: str, stated: Stated) -> None:
        """Note a change of a tool's table; any change but of its columns drops what was noted of it."""
        if belongs_to(table.rpartition(".")[2]) is None:
            return
        if isinstance(stated.change, _COLUMNS):
            self._changed[table].append(stated)
        else:
            self._changed.pop(table, None)

    def renamed(self, old: str, new: str, rename: Stated) -> list[Stated]:
        """Return what the rename of a copy changes in the table whose name it takes: at the place of the rename.

        There, the statements keep the order that they had.
        """
        changed = self._changed.pop(old, [])
        if belongs_to(old.rpartition(".")[2]) != new.rpartition(".")[2]:
            return []
        row, places = rename.row, sorted({(each.row.position, each.order) for each in changed})
        order = {place: (*rename.order, number) for number, place in enumerate(places)}
        return [
            Stated(
                msgspec.structs.replace(each.row, position=row.position, batch=max(each.row.batch, row.batch)),
                each.change,
                order[each.row.position, each.order],
            )
            for each in changed
        ]
