"""Tables that tools make to change the schema of a table: gh-ost, pt-online-schema-change, Facebook's OSC, LHM.

Such a tool changes an empty copy of the table, fills it with the rows, and then gives it the table's name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from tidemark.ddl.changes import AlterCopy, CreateCopy, DropTable, OfCopies, Truncate, Unparsed
from tidemark.ddl.stated import Stated
from tidemark.values.declared_types import entry_for

T = TypeVar("T")

_TABLES = re.compile(
    r"_(?P<gh_ost>.+?)(?:_[0-9]{14})?_(?:gho|ghc|ghk|del)|_+(?P<pt>.+)_(?:new|old)|__osc_(?:new|old|chg)_(?P<osc>.+)|"
    r"[nco]!(?P<long>.{54,61})|lhm[na]_(?:[0-9_]{20,26}_)?(?P<lhm>.+)",
    re.IGNORECASE,
)
"""Names of such tables, as the tools' documents and sources have them; ``n!`` and the like are OSC's for long names."""

_SHORTENING = frozenset({"gh_ost", "lhm"})
"""Tools that cut the end of the table's part of a name that would not fit; the rest of the name stays whole."""

_LONGEST = 64
"""Characters of a name in MySQL."""

_COPIES = re.compile(r"_.+_(?:gho|new)|__osc_new_.+|n!.+|lhmn_.+", re.IGNORECASE)
"""Those of the names that copies have."""

_CREATED_ANEW = re.compile(r"__osc_new_.+|n!.+", re.IGNORECASE)
"""Copies that are created as the table is to be."""

_ALIKE = re.compile(r"lhmn_.+", re.IGNORECASE)
"""Copies that are always created as the table is; the change may be a CREATE INDEX, which is not kept."""


def belongs_to(name: str) -> str | None:
    """Return the table that a tool made this one for, by its own name; None for any other name.

    Of a name that the tool shortened, it is the beginning of the table's (``is_for``).

    >>> belongs_to("_orders_gho"), belongs_to("__orders_new"), belongs_to("orders_new")
    ('orders', 'orders', None)
    """
    found = _TABLES.fullmatch(name)
    return next(filter(None, found.groups()), None) if found else None


def is_for(own: str, table: str) -> bool:
    """Return whether a name is the one that a tool gives to a table of its own for a table.

    >>> is_for("_orders_gho", "orders"), is_for("_orders_gho", "orders_of_today")
    (True, False)
    >>> is_for(f"_{'a' * 59}_gho", "a" * 62)
    True
    """
    made_for = belongs_to(own)
    return made_for is not None and (table == made_for or (is_shortened(own) and table.startswith(made_for)))


def is_shortened(own: str) -> bool:
    """Return whether a tool's name may have lost the end of the table's: gh-ost cuts bytes, and LHM characters."""
    found = _TABLES.fullmatch(own)
    fills = _LONGEST in {len(own), len(own.encode("utf-8", "surrogatepass"))}
    return found is not None and found.lastgroup in _SHORTENING and fills


def originals(database: str, own: str, known: Iterable[str]) -> list[str]:
    """Return the tables that a tool may have made a table for, as source files name them; none for any other table.

    Args:
        database: the name of the table without its last part, and with the dot; may be empty.
        own: the last part.
        known: tables, of which one may have a longer name than the tool's table has room for.
    """
    made_for = belongs_to(own)
    if made_for is None:
        return []
    begin = f"{database}{made_for}"
    longer = (name for name in known if name.startswith(begin) and name != begin) if is_shortened(own) else ()
    return [begin, *sorted(longer)]


def reloads_of(declared: Mapping[str, Sequence[T]], table: str) -> Sequence[T]:
    """Return the moments at which a table was loaded anew; of a tool's table, those of the one that it was made for.

    Positions of the two are compared where the copy takes the table's name. A tool's table with moments under its own
    whole name has these.

    Args:
        declared: the moments, by table or pattern (``reloads``).
        table: as source files name it.
    """
    database, dot, name = table.rpartition(".")
    own = (table,) if declared.get(table) else ()
    named = (*own, *originals(database + dot, name, declared), table)
    return next(filter(None, (entry_for(declared, each) for each in named)), ())


def is_copy(name: str) -> bool:
    """Return whether a name is that of a copy, which is to take the name of its table; others are put aside.

    >>> is_copy("_orders_new"), is_copy("_orders_old")
    (True, False)
    """
    return belongs_to(name) is not None and _COPIES.fullmatch(name) is not None


def has_rows(name: str) -> bool:
    """Return whether a tool's table has rows of the table that it was made for; gh-ost keeps its progress in one.

    >>> has_rows("_orders_gho"), has_rows("_orders_ghc"), has_rows("orders")
    (True, False, False)
    """
    return belongs_to(name) is not None and not name.casefold().endswith("_ghc")


def may_be_by_hand(copy: str) -> bool:
    """Return whether people name copies of their own so, too: ``_orders_new``, and hardly ``_orders_gho``."""
    return copy.casefold().endswith("_new")


def is_tools_own(database: str, name: str, known: Collection[str]) -> bool:
    """Return whether a table is one of these, beside the table that it was made for.

    Args:
        database: the name of the table without its last part, and with the dot; may be empty.
        name: the last part.
        known: the tables of the source, as source files name them.
    """
    return any(each in known for each in originals(database, name, known))


class Copies:
    """What statements changed in tools' tables, until the table takes the name of the one that it was made for."""

    def __init__(self) -> None:
        self._changed = defaultdict[str, list[Stated]](list)

    def add(self, table: str, stated: Stated) -> None:
        """Note a change of a tool's table, also one that is not understood.

        A DROP drops what was noted of it. So does the creation of another one, which proves that there was none.
        """
        if belongs_to(table.rpartition(".")[2]) is None:
            return
        change = stated.change
        if isinstance(change, DropTable) or (isinstance(change, CreateCopy) and not change.conditional):
            self._changed.pop(table, None)
        if not isinstance(change, DropTable | Truncate):  # TRUNCATE takes rows: the columns stay as they are
            self._changed[table].append(stated)

    def renamed(self, old: str, new: str, rename: Stated) -> list[Stated]:
        """Return what the rename of a copy changes in the table whose name it takes: at the place of the rename.

        There, the statements keep the order that they had.
        """
        name = old.rpartition(".")[2]
        changed = _without_creations(name, self._changed.pop(old, []))
        if not is_for(name, new.rpartition(".")[2]):
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


def _without_creations(copy: str, noted: Sequence[Stated]) -> list[Stated]:
    """Return what was noted of a copy, where a creation with columns that may not be the table's is not understood.

    OSC creates its copy as the table is to be. Other tools create it as the table is, and alter it then.
    """
    changed = [each for each in noted if not isinstance(each.change, OfCopies)]
    altered = bool(changed) or any(isinstance(each.change, AlterCopy) for each in noted)
    if _CREATED_ANEW.fullmatch(copy) is None and (altered or _ALIKE.fullmatch(copy) is not None):
        return changed
    declared = [each for each in noted if isinstance(each.change, CreateCopy) and each.change.declares]
    return [*(each._replace(change=Unparsed(None, _NOT_COMPARED)) for each in declared), *changed]


_NOT_COMPARED = (
    "a tool's copy was created with columns of its own, which are not compared with those of the table: rows from "
    "before keep null in a column that is new, and a column that is gone stays, until an initial load"
)
