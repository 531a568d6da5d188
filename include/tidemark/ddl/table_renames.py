"""Renames of tables, by the tables that they concern."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from tidemark.ddl.changes import RenameTable
from tidemark.ddl.migrations import may_be_by_hand
from tidemark.ddl.stated_tables import KnownTables
from tidemark.ddl.swaps import Swaps
from tidemark.events import TableId
from tidemark.ledger.order_rows import SpanRow
from tidemark.ledger.rows import StatementRow


class TableRename(NamedTuple):
    """A statement that gave a table another name, or gave its name to another table."""

    position: str
    batch: int
    statement: str
    at: datetime | None = None
    together: tuple[str, ...] | None = None
    """New names of all tables that the statement renamed, where a message has a part of it."""
    copy: str | None = None
    """The copy that took the table's name in a swap (``unfilled_swaps``); None for a rename that is no tool's."""
    unplaced: bool = False
    """Whether the copy's name had events, of which it is not known whether they are of this copy."""


class MessagePlace(NamedTuple):
    """Where a message stands."""

    position: str
    table: str
    """The message's, as source files name it."""

    @classmethod
    def of(cls, row: StatementRow) -> MessagePlace:
        """Return the place of a statement."""
        return cls(row.position, str(TableId(row.database, row.schema, row.name or "")))


Comparable = Callable[[MessagePlace, MessagePlace], bool]
"""Whether positions of two messages, of two tables mostly, say which was first."""


def always(one: MessagePlace, other: MessagePlace) -> bool:  # noqa: ARG001
    """Return that places can be compared."""
    return True


@dataclass(frozen=True)
class TableRenames:
    """What statements of a source gave other names."""

    rows: Sequence[StatementRow]
    objects: Collection[str]
    """The tables that have events, as the source names them; other tables are left out."""

    def by_table(self) -> dict[str, list[TableRename]]:
        """Return the renames of each table, also those by which it got its name; none by tools that change a schema."""
        if not self.rows:
            return {}
        from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

        known, found = self._known, defaultdict[str, list[TableRename]](list)
        for row in self.rows:
            rename = TableRename(row.position, row.batch, row.statement, row.at, row.together)
            for change in parse(row.statement, row.dialect):
                if not isinstance(change, RenameTable) or self._swaps.has(row, change):
                    continue
                concerned = chain(*(known.claimants(named, row, renames=True) for named in (change.table, change.new)))
                for name in (name for name in concerned if name in known and rename not in found[name]):
                    found[name].append(rename)
        return dict(found)

    def unfilled_swaps(
        self, spans: Iterable[SpanRow] = (), comparable: Comparable = always
    ) -> dict[str, list[TableRename]]:
        """Return by table the swaps with a copy that had no event, where a person may have named it so, too.

        Such a copy may have been empty: ``CREATE TABLE _orders_new LIKE orders``, and a swap, empty a table at once.
        The events of an earlier copy, which a statement dropped or gave another name, say nothing of this one. Where
        their positions cannot be compared with that statement and the swap, it is not known of which copy they are.

        Args:
            spans: of the events of the tables; of a copy without any, nothing is excluded.
            comparable: whether two places can be compared.
        """
        newest = dict[str, str]()
        for span in spans:
            newest[span.object] = max(span.newest, newest.get(span.object, ""))
        found = defaultdict[str, list[TableRename]](list)
        for row in self.rows:
            for copy, taken in self._swaps.copies_of(row):
                if not may_be_by_hand(copy.rpartition(".")[2]):
                    continue
                events = [MessagePlace(newest.get(name, ""), name) for name in self._known.alike(copy)]
                places = [MessagePlace.of(each) for each in self._swaps.ends_of(copy) if each.position != row.position]
                others = [*places, *(each for each in events if each.position)] if places and events else []
                unplaced = not all(comparable(each, MessagePlace.of(row)) for each in others)
                begins = max((each.position for each in places if each.position < row.position), default="")
                if not unplaced and any((each.position or begins) >= begins for each in events):
                    continue
                rename = TableRename(row.position, row.batch, row.statement, row.at, copy=copy, unplaced=unplaced)
                for name in self._known.alike(taken):
                    found[name].append(rename)
        return dict(found)

    @cached_property
    def _known(self) -> KnownTables:
        return KnownTables(self.objects)

    @cached_property
    def _swaps(self) -> Swaps:
        return Swaps(self.rows, self._known)
