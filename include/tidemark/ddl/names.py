"""The names of a table's columns through time: its renames and drops, each at a position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol


class Renaming(NamedTuple):
    """A rename or a drop of a column at a position; ``new`` is None for a drop."""

    position: str
    batch: int
    old: str
    new: str | None
    order: tuple[int, ...] = (0,)
    """The place of its statement among those at the position."""


class Placed(Protocol):
    """A change by a statement."""

    @property
    def position(self) -> str:
        """Its place in the source's log."""

    @property
    def order(self) -> tuple[int, ...]:
        """The place of its statement among those at the position."""


class ColumnNames:
    """The names of a table's columns, followed through its renames and drops."""

    def __init__(
        self, renamings: Sequence[Renaming], spelled: Iterable[str], published: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Prepare the look-up of names.

        Args:
            renamings: sorted by position and order.
            spelled: names as the messages and the table write them; DDL may write them in another case.
            published: columns that are published under another name than the source's: name at the source, of any time,
                to published name.
        """
        self.renamings = tuple(renamings)
        spelled = dict.fromkeys(spelled)
        cases = Counter(name.casefold() for name in spelled)
        self._in_cases = {folded for folded, count in cases.items() if count > 1}
        self._spelled = {self.normal(name): name for name in spelled}
        given = {self._at_source(name, 0) or name: new for name, new in published.items()}
        self._published = {self.normal(name): new for name, new in given.items()}
        self._sources = {new: name for name, new in given.items()}

    def epoch(self, position: str, *, after: bool = False) -> int:
        """Return the number of renames and drops before a position; with ``after``, up to and including it."""
        return sum(each.position < position or (after and each.position == position) for each in self.renamings)

    def behind(self, change: Placed) -> int:
        """Return the number of renames and drops up to a statement, and including its own."""
        place = (change.position, change.order)
        return sum((each.position, each.order) <= place for each in self.renamings)

    def today(self, name: str, epoch: int) -> str | None:
        """Return today's name of the column that was called ``name`` in an epoch; None if it was dropped since.

        It is the name that the column is published under.
        """
        found = self._at_source(name, epoch)
        return None if found is None else self.published(found)

    def published(self, name: str) -> str:
        """Return the name under which a column is published that the source calls ``name`` today."""
        return self._published.get(self.normal(name), name)

    def at_source(self, published: str) -> str:
        """Return today's name at the source of a published column."""
        return self._sources.get(published, published)

    def _at_source(self, name: str, epoch: int) -> str | None:
        normal, hit = self.normal(name), None
        for renaming in self.renamings[epoch:]:
            # All clauses of one statement use the names from before it: two columns may swap their names.
            place = (renaming.position, renaming.order)
            if normal == self.normal(renaming.old) and place != hit:
                if renaming.new is None:
                    return None
                normal, hit = self.normal(renaming.new), place
        return name if normal == self.normal(name) else self._spelled.get(normal) or self._as_in_ddl(normal)

    def touches(self, names: Iterable[str]) -> bool:
        """Return whether any of the names may stand for a column that has another name in the table."""
        gone = {self.normal(renaming.old) for renaming in self.renamings} | self._published.keys()
        return any(self.normal(name) in gone for name in names)

    def same(self, one: str, other: str) -> bool:
        """Return whether the source takes two names for the same."""
        return self.normal(one) == self.normal(other)

    def normal(self, name: str) -> str:
        """Return a name as names are compared: without its case, unless it is written in several."""
        folded = name.casefold()
        return name if folded in self._in_cases else folded

    def _as_in_ddl(self, normal: str) -> str:
        """Return a name as the newest rename that introduced it writes it."""
        return next(each.new for each in reversed(self.renamings) if each.new and self.normal(each.new) == normal)


def earlier(names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return some names, and every name that pairs of an old and a new name lead back to; case does not matter.

    >>> earlier(["mail"], [("email", "e_mail"), ("E_MAIL", "mail"), ("mail", "post")])
    ['mail', 'E_MAIL', 'email']
    """
    found, pairs = list(names), list(pairs)
    for known in found:
        found += (old for old, new in pairs if new.casefold() == known.casefold() and old not in found)
    return found


def connected(names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return some names, and every name that pairs connect with one of them; the case of letters does not matter.

    >>> connected(["mail"], [("email", "e_mail"), ("E_MAIL", "mail"), ("note", "remark")])
    ['mail', 'E_MAIL', 'email', 'e_mail']
    """
    pairs = list(pairs)
    return earlier(names, [*pairs, *((new, old) for old, new in pairs)])
