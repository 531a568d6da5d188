"""The names of a table's columns through time: its renames and drops, each at a position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Renaming(NamedTuple):
    """A rename or a drop of a column at a position; ``new`` is None for a drop."""

    position: str
    batch: int
    old: str
    new: str | None


class ColumnNames:
    """The names of a table's columns, followed through its renames and drops."""

    def __init__(self, renamings: Sequence[Renaming], spelled: Iterable[str]) -> None:
        """Prepare the look-up of names.

        Args:
            renamings: sorted by position.
            spelled: names as the messages and the table write them; DDL may write them in another case.
        """
        self.renamings = tuple(renamings)
        spelled = dict.fromkeys(spelled)
        cases = Counter(name.casefold() for name in spelled)
        self._normal: Callable[[str], str] = str if any(count > 1 for count in cases.values()) else str.casefold
        self._spelled = {self._normal(name): name for name in spelled}

    def epoch(self, position: str, *, after: bool = False) -> int:
        """Return the number of renames and drops before a position; with ``after``, up to and including it."""
        return sum(each.position < position or (after and each.position == position) for each in self.renamings)

    def today(self, name: str, epoch: int) -> str | None:
        """Return today's name of the column that was called ``name`` in an epoch; None if it was dropped since."""
        normal, hit = self._normal(name), ""
        for renaming in self.renamings[epoch:]:
            # All clauses of one statement use the names from before it: two columns may swap their names.
            if normal == self._normal(renaming.old) and renaming.position != hit:
                if renaming.new is None:
                    return None
                normal, hit = self._normal(renaming.new), renaming.position
        return name if normal == self._normal(name) else self._spelled.get(normal) or self._as_in_ddl(normal)

    def touches(self, names: Iterable[str]) -> bool:
        """Return whether a rename or a drop concerns any of the names, so that its meaning changes with the epoch."""
        gone = {self._normal(renaming.old) for renaming in self.renamings}
        return any(self._normal(name) in gone for name in names)

    def same(self, one: str, other: str) -> bool:
        """Return whether the source takes two names for the same."""
        return self._normal(one) == self._normal(other)

    def _as_in_ddl(self, normal: str) -> str:
        """Return a name as the newest rename that introduced it writes it."""
        return next(each.new for each in reversed(self.renamings) if each.new and self._normal(each.new) == normal)
