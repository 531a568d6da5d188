"""The renames by which a tool puts its changed copy of a table in the place of the table (``ddl.migrations``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from tidemark.ddl.changes import DropTable, RenameTable
from tidemark.ddl.migrations import is_copy, is_for
from tidemark.ddl.stated_tables import KnownTables
from tidemark.ledger.rows import StatementRow


class _Step(NamedTuple):
    """A rename, or a drop, which has no new name."""

    position: str
    old: str
    new: str
    together: tuple[str, ...] = ()
    """Last parts of the new names in the whole statement, where a message has a part of it; in small letters."""

    @property
    def leaves(self) -> bool:
        """Whether a table takes a name by which tools put tables aside: ``orders`` to ``_orders_old``."""
        return _is_for(self.new, self.old) and not is_copy(_last(self.new))

    @property
    def takes(self) -> bool:
        """Whether a copy takes the name of the table that it was made for: ``_orders_new`` to ``orders``."""
        return _is_for(self.old, self.new) and is_copy(_last(self.old))


class Swaps:
    """The renames that are a tool's swap: a copy *takes* the name of the table that goes aside for it.

    Both renames are in one statement (gh-ost, pt-osc, LHM), or the second one is the next statement about the name
    (gh-ost's and OSC's two steps). A table that goes aside for no copy was renamed, whatever its new name is.
    """

    def __init__(self, rows: Iterable[StatementRow], known: KnownTables) -> None:
        """Find the swaps in statements; ``known``: the tables that have events."""
        self._known = known
        self._found: set[_Step] = set()
        aside: dict[str, _Step] = {}
        self._ends = defaultdict[str, list[StatementRow]](list)
        steps = [(step, row) for row in rows for step in _steps(row, known)]
        for step, row in steps:
            self._ends[step.old].append(row)
        self._steps = sorted(step for step, _ in steps)
        for _, group in groupby(self._steps, lambda step: step.position):
            self._read(list(group), aside)

    def has(self, row: StatementRow, change: RenameTable) -> bool:
        """Return whether a rename of a statement is part of a swap."""
        return _step(row, change, self._known) in self._found

    def copies_of(self, row: StatementRow) -> list[tuple[str, str]]:
        """Return the copies that a statement puts in the place of tables, each with the table."""
        return [(step.old, step.new) for step in _steps(row, self._known) if step.takes and step in self._found]

    def ends_of(self, name: str) -> list[StatementRow]:
        """Return the statements that dropped the table of a name, or gave it another one."""
        return self._ends.get(name, [])

    def names_of(self, row: StatementRow) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names that swaps of a statement take from copies, and those that they give to what goes aside."""
        steps = [step for step in _steps(row, self._known) if step in self._found]
        copies, aside = (step.old for step in steps if step.takes), (step.new for step in steps if step.leaves)
        return frozenset(map(str.casefold, copies)), frozenset(map(str.casefold, aside))

    def _read(self, steps: list[_Step], aside: dict[str, _Step]) -> None:
        """Note the swaps at one place of the log.

        Args:
            steps: the renames and drops at the place.
            aside: tables that went aside before it, and have had no other statement about their names since.
        """
        left = {step.old for step in steps if step.leaves} | {step.new for step in steps if _goes_aside(step)}
        taken, ended = {step.new for step in steps if step.takes}, {step.old for step in steps}
        self._found |= {step for step in steps if step.leaves and _is_taken(step, taken)}
        self._found |= {step for step in steps if step.takes and step.new in left}
        for step in steps:
            first = aside.get(step.new)
            if first and step.takes and step.new not in ended:
                self._found |= {first, step}
        for name in {name for step in steps for name in (step.old, step.new)}:
            aside.pop(name, None)
        aside |= {step.old: step for step in steps if step.leaves and step not in self._found}


def _is_taken(step: _Step, taken: set[str]) -> bool:
    """Return whether a copy takes the name that a table leaves, in the same statement."""
    return step.old in taken or _last(step.old).casefold() in step.together


def _goes_aside(step: _Step) -> bool:
    """Return whether another part of a rename's statement puts the table aside whose name a copy takes."""
    return any(_is_for(name, step.new) and not is_copy(name) for name in step.together)


def _is_for(own: str, table: str) -> bool:
    """Return whether a name is a tool's own for a table."""
    return is_for(_last(own).casefold(), _last(table).casefold())


def _steps(row: StatementRow, known: KnownTables) -> Iterator[_Step]:
    from tidemark.ddl.statements import parse  # noqa: PLC0415  sqlglot takes its time, and most runs see no DDL

    for change in parse(row.statement, row.dialect):
        if isinstance(change, RenameTable):
            yield _step(row, change, known)
        elif isinstance(change, DropTable):
            yield _Step(row.position, known.normal(change.table, row), "")


def _step(row: StatementRow, change: RenameTable, known: KnownTables) -> _Step:
    together = tuple(sorted(name.casefold() for name in row.together or ()))
    return _Step(row.position, known.normal(change.table, row), known.normal(change.new, row), together)


def _last(name: str) -> str:
    return name.rpartition(".")[2]
