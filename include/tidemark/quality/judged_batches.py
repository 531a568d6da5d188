"""The batches whose messages a cut is judged by: those that no published cut has shown as they are read now.

They landed since the last published cut, or their events were derived again since that cut was built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyiceberg.expressions import And, BooleanExpression, Or

from tidemark.lake.filters import above, among, at_most
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.member_rows import UnknownMemberRow
from tidemark.ledger.rows import BatchRow, CutRow


class JudgedBatches(NamedTuple):
    """Batches of a source."""

    published: int
    """The last batch of the last published cut. Later ones are new."""
    newest: int
    """The last batch of the cut."""
    reprocessed: int = 0
    """The newest reprocessing that the last published cut shows."""
    again: frozenset[int] = frozenset()
    """Published batches that a later one derived again."""

    @classmethod
    def of(cls, ledger: Ledger, last: CutRow | None, cut: CutRow) -> JudgedBatches:
        """Return the batches that a cut is judged by; ``last`` is the last published cut."""
        found = cls(last.batch if last else 0, cut.batch, (last.reprocessed if last else 0) or 0)
        rows = ledger.batches(at_most("batch", found.published))
        return found._replace(again=frozenset(row.batch for row in rows if found.shows(row)))

    def shows(self, row: BatchRow | UnknownMemberRow) -> bool:
        """Return whether no published cut has shown what a row was found by."""
        return row.batch > self.published or (row.reprocessed or 0) > self.reprocessed

    def holds(self, batch: int) -> bool:
        """Return whether a batch is one of these."""
        return self.published < batch <= self.newest or batch in self.again

    def parts(self) -> Iterator[JudgedBatches]:
        """Yield the new batches, and those that were derived again, where there are some."""
        yield self._replace(again=frozenset())
        if self.again:
            yield self._replace(published=self.newest)

    def begun(self, cut: CutRow) -> int:
        """Return the batch behind which all count as new: 0 after a reprocess that no published cut has shown."""
        return 0 if (cut.reprocessed or 0) > self.reprocessed else self.published

    def condition(self) -> BooleanExpression:
        """Return the condition that a row of the quarantine or of the change log is of these batches."""
        new = And(above("batch", self.published), at_most("batch", self.newest))
        return Or(new, among("batch", self.again)) if self.again else new
