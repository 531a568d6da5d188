"""Which columns an event's image captured: conditions on its shape, and on the names that its message says are absent.

What the shapes of a table have is gathered once for all of its columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.events import Operation
from tidemark.tables.plan import Default, Plan
from tidemark.values.images import by_table_name
from tidemark.values.table_columns import any_of


class Captured:
    """The columns that events captured."""

    def __init__(self, plan: Plan, event: str = "") -> None:
        """Gather what the shapes of a table have.

        Args:
            plan: the table's plan.
            event: a prefix for the columns ``partial``, ``deleted``, ``shape`` and ``absent`` of the action.
        """
        self._plan, self._event = plan, event
        self._holders = _holders(plan)
        self._conditions: dict[tuple[str, ...], Expression] = {}

    def has_column(self, name: str) -> Expression:
        """Return whether an event's shape has a column of the table."""
        return F.coalesce(self._is_of(self._holders.get(name, {})), F.lit(False))

    def is_from_before(self, name: str, default: Default) -> Expression:
        """Return whether an event is from before a column was added with a default, and does not have it."""
        return (F.col("position") < default.position) & ~self.has_column(name)

    def writes(self, number: int) -> Expression:
        """Return whether an action writes a column."""
        name = self._plan.columns[number].name
        captured = any_of([F.lit(False), *(self._captured(own, ids) for own, ids in self._by_own_name(name))])
        if (default := self._plan.defaults.get(name)) is not None:
            # An event from before the column was added cannot have captured it: its row got the default at the source.
            captured |= self.is_from_before(name, default)
        return ~F.col(f"{self._event}partial") | F.col(f"{self._event}deleted") | captured

    def is_in_part(self) -> Expression:
        """Return whether an event writes a part of its row: an INSERT that has all columns of the table writes all."""
        names = {column.name for column in self._plan.columns}
        whole = [id_ for id_ in self._plan.found.shapes if all(id_ in self._holders.get(name, {}) for name in names)]
        is_whole = (F.col("operation") == Operation.INSERT) & (F.coalesce(F.size("absent"), F.lit(0)) <= 0)
        return F.col("partial") & ~F.coalesce(is_whole & self._is_of(dict.fromkeys(whole)), F.lit(False))

    def lacks(self, number: int) -> Expression:
        """Return whether the event's image has a column, and says that its value was not captured."""
        name = self._plan.columns[number].name
        named = [self._is_of(ids) & self._is_absent(own) for own, ids in self._by_own_name(name)]
        return F.coalesce(any_of([F.lit(False), *named]), F.lit(False))

    def _by_own_name(self, name: str) -> Iterable[tuple[str, list[str]]]:
        """Return the names that shapes have for a column, with the shapes."""
        found: dict[str, list[str]] = defaultdict(list)
        for shape_id, own in self._holders.get(name, {}).items():
            found[own].append(shape_id)
        return sorted(found.items())

    def _captured(self, own: str, ids: Iterable[str]) -> Expression:
        """Return whether the event's image holds a column that its shape calls ``own``."""
        return F.coalesce(self._is_of(ids), F.lit(False)) & ~F.coalesce(self._is_absent(own), F.lit(False))

    def _is_absent(self, own: str) -> Expression:
        return F.array_contains(f"{self._event}absent", F.lit(own))

    def _is_of(self, ids: Iterable[str]) -> Expression:
        """Return whether an event's shape is one of these; made once for all columns that came or went together."""
        key = tuple(ids)
        if key not in self._conditions:
            self._conditions[key] = F.col(f"{self._event}shape").isin(*key)
        return self._conditions[key]


def _holders(plan: Plan) -> Mapping[str, Mapping[str, str]]:
    """Return by column of the table the shapes that have it, each with its own name of the column."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for shape_id, shape in plan.found.shapes.items():
        for name, column in by_table_name(shape_id, shape, plan.found.names):
            found[name][shape_id] = column.name
    return found
