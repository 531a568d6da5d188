"""Cases that share tables: each has rows and places in the log of its own there, and does not see the others'.

Spark's plans take the time of small tables, not their rows. In ``make prove`` each case has a table of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from support.debezium_log import Log, Message
from support.histories import beside
from support.reference import Change, Row
from support.rounds import PROVING
from tidemark.events import Operation

Delivery = Sequence[Sequence[Change]]
Beside = Callable[[Change, int, int], Change]

_ROOM = 10
"""Keys of a case: the column ``id`` from 0."""


class Seat(NamedTuple):
    """Where the rows of a case are: in which table, and as which of so many cases there."""

    table: str
    number: int = 0
    count: int = 1

    def place(self, place: int) -> int:
        """The place in the shared log of a place in the case's own log."""
        return place * self.count + self.number

    def seated(self, runs: Delivery, move: Beside = beside) -> list[list[Change]]:
        """The case's changes, run by run, as changes of the table that it shares."""
        if self.count == 1:
            return [[change._replace(table=self.table) for change in run] for run in runs]
        return [[move(change._replace(table=self.table), self.number, self.count) for change in run] for run in runs]

    def own(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of the case, of all rows of its table."""
        return [row for row in rows if self.count == 1 or row["id"] // _ROOM == self.number]

    def own_key(self, key: int) -> int:
        """The key as the case calls it."""
        return key - _ROOM * self.number

    def log(self) -> Log:
        """The log of the case, with columns of its own too."""
        return Log(self.table) if self.count == 1 else _Beside(self)

    def column(self, name: str) -> str:
        """What a column of ``log()`` is called in the table: one letter names other columns in other cases."""
        return name if self.count == 1 or len(name) > 1 else f"{name}_{self.number}"


class _Beside(Log):
    """The log of a case, with rows, columns, transactions and places that no other case of its table has."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat.table)
        self.seat = seat

    def put(self, at: int, before: Any = None, /, **row: Any) -> Message:
        return super().put(at, before and self._own(before), **self._own(row))

    def delete(self, at: int, **row: Any) -> Message:
        return super().delete(at, **self._own(row))

    def statement(self, at: int, text: str) -> Message:
        return super().statement(at, re.sub(r"\b[a-z]\b(?!')", lambda found: self.seat.column(found[0]), text))

    def _own(self, row: Mapping[str, Any]) -> dict[str, Any]:
        moved = {"id": row["id"] + _ROOM * self.seat.number} if "id" in row else {}
        return {self.seat.column(name): value for name, value in {**row, **moved}.items()}

    def _id(self, transaction: int | str) -> str:
        return super()._id(f"{self.seat.number}-{transaction}")

    def _message(self, at: int, **members: Any) -> Message:
        return super()._message(self.seat.place(at), **members)


def told_seats(tables: Mapping[str, str]) -> dict[str, Seat]:
    """Seat each case, by its name, in the table that ``tables`` gives it; in ``make prove`` each in one of its own."""
    names: dict[str, list[str]] = {}
    for name, table in tables.items():
        names.setdefault(name if PROVING else table, []).append(name)
    return {
        name: Seat(table, number, len(those)) for table, those in names.items() for number, name in enumerate(those)
    }


def seats(cases: Mapping[str, Delivery], kind: Callable[[str], str] = lambda _: "any") -> dict[str, Seat]:
    """Seat each case, by its name.

    Cases share a table if they are of one kind, and all of them or none have partial images. Cases that empty their
    table or bring a complete load sit alone.

    Args:
        cases: changes of a table, run by run.
        kind: what else the table of a case depends on, by the name of the case.
    """
    tables: dict[str, list[str]] = {}
    for name, runs in cases.items():
        changes = [change for run in runs for change in run]
        alone = PROVING or any(change.operation is Operation.TRUNCATE or change.load for change in changes)
        images = "partial" if any(change.partial for change in changes) else "whole"
        tables.setdefault(name if alone else f"shared_{kind(name)}_{images}", []).append(name)
    return {
        name: Seat(table, number, len(names)) for table, names in tables.items() for number, name in enumerate(names)
    }
