"""The names of a table's columns through time: renames and drops, each at its position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Renaming(NamedTuple):
    """A column lost its name at a position: to another name, or for good."""

    position: str
    batch: int
    old: str
    new: str | None


class ColumnNames:
    """Follows names of columns through the renames and drops of a table."""

    def __init__(self, renamings: Sequence[Renaming], spelled: Iterable[str]) -> None:
        """Begin.

        Args:
            renamings: by position.
            spelled: names as messages and the table write them; DDL may write them in another case.
        """
        self.renamings = tuple(renamings)
        spelled = dict.fromkeys(spelled)
        cases = Counter(name.casefold() for name in spelled)
        self._normal: Callable[[str], str] = str if any(count > 1 for count in cases.values()) else str.casefold
        self._spelled = {self._normal(name): name for name in spelled}

    def epoch(self, position: str, *, after: bool = False) -> int:
        """Number of renames and drops before a position; ``after``: with those at it."""
        return sum(told.position < position or (after and told.position == position) for told in self.renamings)

    def today(self, name: str, epoch: int) -> str | None:
        """The name of today of the column that was called ``name`` in an epoch; None when it was dropped since."""
        normal, hit = self._normal(name), ""
        for told in self.renamings[epoch:]:
            # The clauses of one statement speak of the names before it: two columns may swap theirs.
            if normal == self._normal(told.old) and told.position != hit:
                if told.new is None:
                    return None
                normal, hit = self._normal(told.new), told.position
        return name if normal == self._normal(name) else self._spelled.get(normal) or self._as_told(normal)

    def touches(self, names: Iterable[str]) -> bool:
        """Whether any of the names stood for another column, or for none of today, in any epoch."""
        gone = {self._normal(told.old) for told in self.renamings}
        return any(self._normal(name) in gone for name in names)

    def same(self, one: str, other: str) -> bool:
        """Whether two names are one to the source."""
        return self._normal(one) == self._normal(other)

    def _as_told(self, normal: str) -> str:
        return next(told.new for told in reversed(self.renamings) if told.new and self._normal(told.new) == normal)
