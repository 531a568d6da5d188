"""Puts the renames of one statement in order that came as a message each, all at one place of the log.

Debezium sends ``RENAME TABLE a TO c, b TO a, c TO b`` so. The messages have no order but the order of delivery, which
proves nothing. They need none. Each message lists the new names of all, and shows whether a table has the message's own
new name behind the statement. So it is known when all messages are there, and which of two renames with a name in
common was the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tidemark.events import TableId
from tidemark.ledger.rows import StatementRow


class RenamePair(NamedTuple):
    """One rename: the names in small letters, and the new table."""

    old: str
    new: str
    table: TableId
    conditional: bool = False
    """Whether nothing is renamed if there is no such table."""


class Part(NamedTuple):
    """A message with one of the renames of a statement."""

    row: StatementRow
    pair: RenamePair

    @property
    def stays(self) -> bool:
        """Whether a table has the new name behind the whole statement: then the message describes that table."""
        return (self.row.name or "").casefold() == self.pair.table.name.casefold()


def is_part(row: StatementRow, pairs: Iterable[RenamePair]) -> bool:
    """Return whether a message has fewer renames than its statement."""
    return not {name.casefold() for name in row.together or ()} <= {pair.table.name.casefold() for pair in pairs}


def in_order(parts: Sequence[Part]) -> list[list[RenamePair]]:
    """Return the renames of one statement in its order, those that have a name in common together.

    There are none if a part is missing, if the messages contradict each other, or if a name is given or taken twice.
    """
    leaving, taking = {part.pair.old: part for part in parts}, {part.pair.new: part for part in parts}
    named = {name.casefold() for part in parts for name in part.row.together or ()}
    if len(leaving) != len(parts) or len(taking) != len(parts) or named != {_last(part) for part in parts}:
        return []
    order: TopologicalSorter[RenamePair] = TopologicalSorter({part.pair: () for part in parts})
    for name, part in taking.items():
        left = leaving.get(name)
        if left is None and not part.stays:
            return []
        if left is not None:
            # A table that is gone from its new name came first and moved on; else the name was left before it came.
            order.add(*((part.pair, left.pair) if part.stays else (left.pair, part.pair)))
    try:
        return _apart(order.static_order())
    except CycleError:
        return []


def _last(part: Part) -> str:
    return part.pair.table.name.casefold()


def _apart(pairs: Iterable[RenamePair]) -> list[list[RenamePair]]:
    """Return renames as lists that have no name in common."""
    found: list[list[RenamePair]] = []
    for pair in pairs:
        joined = [chain for chain in found if any({*pair[:2]} & {*other[:2]} for other in chain)]
        found = [chain for chain in found if chain not in joined]
        found.append([*(other for chain in joined for other in chain), pair])
    return found
