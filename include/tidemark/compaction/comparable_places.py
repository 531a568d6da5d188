"""Whether the positions of messages of two tables say which was first: of a tool's copy, and of the table's own.

A schema-change tool alters its copy of a table, and the copy takes the table's name (``ddl.migrations``). Messages
about the copy name another table than the swap. So they may have come in another topic or partition, and ``reloads`` of
the table may have raised the positions of one alone (docs/adr/0113).
"""

from __future__ import annotations

from functools import cached_property

from tidemark.compaction.placed_statements import OFFSET, DumpOrders, order_of
from tidemark.ddl.migrations import reloads_of
from tidemark.ddl.table_renames import MessagePlace
from tidemark.formats import Placing
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import StatementRow
from tidemark.sources.model import Source

_RAISED = "`reloads` or `log_restarts` raised the position of one of them alone. `--reprocess` reads them anew"
_NO_PLACE = "one of them has no place in the order of the source"
_APART = "they came in two partitions or topics, or may have"
_TIMES = "the names of their files and their times disagree"


class ComparablePlaces:
    """The places of the messages of a source, up to a batch."""

    def __init__(self, ledger: Ledger, source: Source, batch: int) -> None:
        """Take what is read where a question needs it."""
        self._ledger, self._source, self._batch = ledger, source, batch
        self._reloads = {name: entry.reloads for name, entry in source.tables.items()}

    def comparable(self, one: MessagePlace, other: MessagePlace) -> bool:
        """Return whether the positions of two messages can be compared."""
        return self._why_not(one, other) is None

    def why_not(self, stated: StatementRow, swap: StatementRow, table: str) -> str | None:
        """Return why a statement about a copy, and the swap of the copy, cannot be compared; None if they can.

        Args:
            stated: the statement about the copy.
            swap: the statement by which a copy of its name took the table's.
            table: the table, as source files name it.
        """
        for row in (stated, swap):
            if (why := self._misplaced(row, table)) is not None:
                return why
        why = self._why_not(MessagePlace.of(stated), MessagePlace.of(swap))
        return _TIMES if why is None and self._contradict(stated, swap) else why

    def _misplaced(self, row: StatementRow, table: str) -> str | None:
        """Return why the position of a statement does not rank as those of a table at its time; None if it does."""
        reloads = [reloads_of(self._reloads, name) for name in (table, MessagePlace.of(row).table)]
        if not any(reloads):
            return None
        moments = (*self._source.log_restarts, *reloads[0])
        raised = None if row.at is None else 2 * sum(moment <= row.at for moment in moments)
        return None if _rank(row.position) // 2 * 2 == raised else _RAISED

    def _why_not(self, one: MessagePlace, other: MessagePlace) -> str | None:
        kinds = {self._source.traits.placing(each.position) for each in (one, other)}
        if None in kinds or len(kinds) > 1:
            return _NO_PLACE
        if kinds == {Placing.LOG} or _rank(one.position) != _rank(other.position) or self._dumped.is_one:
            return None
        order = order_of(one.position)
        if order != order_of(other.position):
            return _APART
        # Producers choose the topic of a message by its table, and a position has no topic.
        in_topics = order[1] == OFFSET and self._dumped.has_topics
        return _APART if in_topics and one.table.casefold() != other.table.casefold() else None

    def _contradict(self, stated: StatementRow, swap: StatementRow) -> bool:
        """Return whether files put two statements in another order than their times do."""
        kind = self._source.traits.placing(stated.position)
        if kind is not Placing.DUMP or order_of(stated.position)[1] == OFFSET or None in {stated.at, swap.at}:
            return False
        first, second = sorted((stated, swap), key=lambda row: row.position)
        return first.at is not None and second.at is not None and first.at > second.at

    @cached_property
    def _dumped(self) -> DumpOrders:
        return DumpOrders(self._ledger, self._batch)


def _rank(position: str) -> int:
    """Return the first part of a position, which moments at which logs or tables began anew raise by two each."""
    return int(position.partition(".")[0][2:])
