"""What stands beside the rows of a source's cuts: properties of their table, each with the source's name behind it."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.exceptions import CommitFailedException

from tidemark.lake.lake import Lake
from tidemark.lake.retries import retried
from tidemark.ledger import storage
from tidemark.ledger.rows import CutRow

_LEFT = "tidemark.left_number."

_RESTORED = "tidemark.restored_cut."
"""It is there while a restore is under way, or was cut short."""


class CutMarks:
    """The marks of one source."""

    def __init__(self, lake: Lake, source: str) -> None:
        self._lake = lake
        self._source = source

    def left_number(self) -> int:
        """Return the number up to which no further cut is numbered, whatever cuts there are; 0 at first."""
        return int(self._marks().get(_LEFT + self._source, 0))

    def leave_number(self, number: int) -> None:
        """Let no cut have a number up to this one from now on."""
        self._change({_LEFT: number})

    def restored_cut(self) -> int | None:
        """Return the cut to which a restore puts the tables back that has not ended; None without such a restore."""
        cut = self._marks().get(_RESTORED + self._source)
        return None if cut is None else int(cut)

    def begin_restore(self, cut: int, left_number: int) -> None:
        """Write down that the tables go back to a cut, and that no further cut has a number up to ``left_number``."""
        self._change({_RESTORED: cut, _LEFT: left_number})

    def end_restore(self) -> None:
        """Write down that all tables went back."""
        self._change({}, _RESTORED)

    def _marks(self) -> Mapping[str, str]:
        table = storage.find(self._lake, CutRow.TABLE)
        return {} if table is None else table.properties

    @retried(CommitFailedException)
    def _change(self, marks: Mapping[str, int], *gone: str) -> None:
        table = storage.table_of(self._lake, CutRow.TABLE)
        with table.transaction() as transaction:
            if marks:
                transaction.set_properties({mark + self._source: str(number) for mark, number in marks.items()})
            if gone:
                transaction.remove_properties(*(mark + self._source for mark in gone))
