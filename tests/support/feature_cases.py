"""Cases in which features of compact meet: what is delivered of one table, run by run, and what it must lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from support.debezium_log import Log, Message
from support.reference import Row
from support.rounds import how_many
from support.seats import Seat, told_seats

KEYED = how_many(usually=("both",), proving=("hist", "both"))
"""Kinds of the cases with a key: a history and soft deletes in one, and in ``make prove`` a history alone as well."""
EMPTIED_LATE = how_many(usually=("hist",), proving=("hist", "soft", "both"))
NOT_THERE_BEFORE = how_many(usually=("bag",), proving=("bag", "keyed"))
"""Kinds of some cases. ``make test`` has each of these cases at least once."""
NAMED = how_many(usually=(), proving=("hist", "both", "keyed", "bag"))
EMPTIED = how_many(usually=(), proving=("hist", "soft", "both"))
NOT_THERE_WHEN = how_many(usually=(), proving=("bag", "keyed"))
IN_PARTS = how_many(usually=(), proving=("hist", "both"))
TRUNCATED_BAGS = how_many(usually=(), proving=("bag",))
"""Kinds of cases of ``make prove``: each takes a table of its own. ``make test`` has names that differ in case in
``test_convergence.py``, partial images over DDL in ``test_schema_changes.py``, and a TRUNCATE in other cases here."""


class Case(NamedTuple):
    """What is delivered of one table, run by run, and the columns and living rows that it must lead to."""

    name: str
    seat: Seat
    runs: list[list[Message]]
    columns: list[str]
    """As its table calls them, which has more where cases share it."""
    rows: list[tuple[Any, ...]]

    def own(self, rows: Iterable[Row]) -> list[Row]:
        """The rows of the case, of all rows of its table: in each row of a bag a column of its case has a value."""
        if "id" in self.columns:
            return self.seat.own(rows)
        return [row for row in rows if self.seat.count == 1 or any(row[name] is not None for name in self.columns)]

    def values(self, row: Row) -> tuple[Any, ...]:
        """The values of its columns in one of its rows, with the key as the case calls it."""
        return tuple(self.seat.own_key(row[name]) if name == "id" else row[name] for name in self.columns)


class _Told(NamedTuple):
    """A case that has no seat yet."""

    name: str
    table: str
    columns: str
    rows: list[tuple[Any, ...]]
    runs: Sequence[Callable[[Log], list[Message]]]


def _cases(
    kinds: Iterable[str],
    name: str,
    columns: str,
    rows: list[tuple[Any, ...]],
    *runs: Callable[[Log], list[Message]],
    shares: bool = False,
) -> list[_Told]:
    """A case for tables of each kind, each in a table of its own, or in one with all cases of the kind that share.

    Those do not that empty a table, have partial images, or give rows of a bag a value that their messages lack.
    """
    tables = {kind: f"{kind}_{'shared' if shares else name}" for kind in kinds}
    return [_Told(f"{kind}_{name}", table, columns, rows, runs) for kind, table in tables.items()]


_TOLD = [
    *_cases(
        ["bag"], "renamed", "b n", [("z", 2), ("y", 1)],
        lambda t: [t.put(1, a="x", n=1), t.put(2, a="x", n=1)],
        lambda t: [
            t.ddl(10, "RENAME COLUMN a TO b"), t.delete(11, b="x", n=1), t.put(12, b="y", n=1),
        ],
        lambda t: [t.delete(3, a="x", n=1), t.put(4, a="z", n=2)],
        shares=True,
    ),
    *_cases(
        ["bag"], "default", "a n", [("x", 5), ("x", 5), ("x", None), ("w", 7), ("h", 5), ("h", 4)],
        lambda t: [t.put(1, a="x"), t.put(2, a="x"), t.put(3, a="w"), *t.within(8, t.put(7, a="h"))],
        lambda t: [
            t.put(4, a="x"),
            t.ddl(10, "ADD COLUMN n int DEFAULT 5"),
            t.delete(11, a="x", n=5),
            t.put(12, a="x", n=None),
            t.put(13, {"a": "w", "n": 5}, a="w", n=7),
            *t.within(8, t.put(14, a="h", n=4), first=2),
        ],
        lambda t: [t.put(5, a="x"), t.delete(6, a="x"), t.end(8, 2)],
    ),
    *_cases(
        ["bag"], "dropped", "b", [(1,), (2,)],
        lambda t: [t.put(1, a=1, b=1), t.put(2, a=2, b=1), t.put(3, a=1, b=2)],
        lambda t: [t.ddl(10, "DROP COLUMN a"), t.delete(11, b=1)],
        lambda t: [t.put(4, a=9, b=2), t.delete(5, a=1, b=2)],
        shares=True,
    ),
    *_cases(
        ["bag"], "held_over_a_rename", "b", [("y",)],
        lambda t: [t.put(1, a="x"), t.put(2, a="x"), *t.within(7, t.delete(3, a="x"), t.put(4, a="y"))],
        lambda t: [t.ddl(10, "RENAME COLUMN a TO b"), t.delete(11, b="x")],
        lambda t: [t.end(7, 2)],
        shares=True,
    ),
    *_cases(
        TRUNCATED_BAGS, "late_truncate_over_a_rename", "b", [("x",)],
        lambda t: [t.put(1, a="x"), t.put(6, a="x"), t.delete(8, a="x")],
        lambda t: [t.ddl(10, "RENAME COLUMN a TO b"), t.put(11, b="x")],
        lambda t: [t.truncate(5), t.put(2, a="x")],
    ),
    *_cases(
        TRUNCATED_BAGS, "truncated_and_a_default", "a n", [("x", 5), ("y", 5)],
        lambda t: [t.put(1, a="x"), t.put(2, a="x")],
        lambda t: [t.truncate(5), t.put(7, a="y"), t.ddl(10, "ADD COLUMN n int DEFAULT 5"), t.put(12, a="x", n=5)],
        lambda t: [t.put(3, a="x")],
    ),
    *_cases(
        KEYED, "renamed", "id b", [(1, "z"), (3, "l")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y"), t.delete(3, id=2, a="y")],
        lambda t: [t.ddl(10, "RENAME COLUMN a TO b"), t.put(11, {"id": 1, "b": "m"}, id=1, b="z")],
        lambda t: [t.put(4, id=3, a="l"), t.put(5, {"id": 1, "a": "x"}, id=1, a="m")],
        shares=True,
    ),
    *_cases(
        KEYED, "default", "id a n", [(1, "x", 7), (5, "v", 5), (6, "u", 5)],
        lambda t: [
            t.put(1, id=1, a="x"), t.put(2, id=2, a="y"), t.delete(3, id=2, a="y"), t.put(4, id=6, a="u"),
        ],
        lambda t: [
            t.put(5, id=4, a="w"),
            t.ddl(10, "ADD COLUMN n int DEFAULT 5"),
            t.put(12, {"id": 1, "a": "late", "n": 5}, id=1, a="x", n=7),
            t.delete(13, id=4, a="w", n=5),
        ],
        lambda t: [t.put(6, id=5, a="v"), t.put(7, {"id": 1, "a": "x"}, id=1, a="late")],
        shares=True,
    ),
    *_cases(
        KEYED, "dropped", "id b", [(1, "late"), (4, "w")],
        lambda t: [t.put(1, id=1, a="x", b="x"), t.put(2, id=2, a="y", b="y"), t.delete(3, id=2, a="y", b="y")],
        lambda t: [
            t.put(4, {"id": 1, "a": "x", "b": "x"}, id=1, a="z", b="z"),
            t.ddl(10, "DROP COLUMN a"),
            t.put(11, id=3, b="v"),
            t.put(12, id=4, b="w"),
        ],
        lambda t: [t.put(5, {"id": 1, "a": "z", "b": "z"}, id=1, a="late", b="late"), t.delete(13, id=3, b="v")],
        shares=True,
    ),
    *_cases(
        KEYED, "truncated_and_a_default", "id a n", [(1, "y", 5), (4, "w", None)],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="x")],
        lambda t: [
            t.truncate(5), t.put(6, id=1, a="y"),
            t.ddl(10, "ADD COLUMN n int DEFAULT 5"), t.put(11, id=4, a="w", n=None),
        ],
        lambda t: [t.put(3, id=3, a="late"), t.put(4, {"id": 1, "a": "x"}, id=1, a="late")],
    ),
    *_cases(
        KEYED, "held_over_a_rename", "id b", [(1, "z"), (9, "h")],
        lambda t: [
            t.put(1, id=1, a="x"), *t.within(7, t.put(3, {"id": 1, "a": "x"}, id=1, a="h"), t.put(4, id=9, a="h")),
        ],
        lambda t: [t.ddl(10, "RENAME COLUMN a TO b"), t.put(11, {"id": 1, "b": "h"}, id=1, b="z")],
        lambda t: [t.end(7, 2)],
        shares=True,
    ),
    *_cases(
        NOT_THERE_BEFORE, "not_there_before_a_truncate", "id b n", [(2, "y", 5), (3, "z", 5)],
        lambda t: [*t.within(7, t.put(3, id=1, a="x"), t.put(4, id=2, a="x"))],
        lambda t: [
            t.ddl(5, "RENAME COLUMN a TO b, ADD COLUMN n int DEFAULT 5"), t.empty(10), t.put(11, id=2, b="y", n=5),
        ],
        lambda t: [t.end(7, 2), t.put(12, id=3, b="z", n=5)],
    ),
    *_cases(
        NOT_THERE_WHEN, "not_there_when_truncated", "id b", [(2, "y"), (3, "z")],
        lambda t: [
            *t.within(7, t.put(3, id=1, a="x"), t.put(4, id=2, a="x")), t.ddl(5, "RENAME COLUMN a TO b"), t.empty(10),
        ],
        lambda t: [t.put(11, id=2, b="y")],
        lambda t: [t.end(7, 2), t.put(12, id=3, b="z")],
    ),
    *_cases(
        KEYED, "open_at_the_end", "id a n", [(1, "x", 5)],
        lambda t: [t.put(1, id=1, a="x"), *t.within(7, t.delete(3, id=1, a="x"), t.put(4, id=9, a="h"))],
        lambda t: [t.ddl(10, "ADD COLUMN n int DEFAULT 5"), *t.within(7, t.put(11, id=3, a="y", n=1), first=3)],
        shares=True,
    ),
    *_cases(
        IN_PARTS, "partial_and_a_late_default", "id a c n", [(1, "x", "z", 5), (2, "x", "y", 5), (3, "q", "q", 1)],
        lambda t: [
            t.put(1, id=1, a="x", c="y"), t.put(2, id=2, a="x", c="y"), t.put(12, {"id": 1}, id=1, a=..., c="z"),
        ],
        lambda t: [t.ddl(10, "ADD COLUMN n int DEFAULT 5"), t.put(13, id=3, a="q", c="q", n=1)],
    ),
    *_cases(
        IN_PARTS, "partial_and_a_default", "id a c n", [(1, "x", "z", 5), (2, "x", "q", 5), (8, None, "q", 5)],
        lambda t: [t.put(1, id=1, a="x", c="y"), t.put(2, id=2, a="x", c="y")],
        lambda t: [
            t.put(3, {"id": 1}, id=1, a=..., c="z"),
            t.put(4, {"id": 8}, id=8, a=..., c="q"),
            t.ddl(10, "ADD COLUMN n int DEFAULT 5"),
            t.put(11, {"id": 2}, id=2, a=..., c="q", n=5),
        ],
    ),
    *_cases(
        KEYED, "key_moved_over_a_rename", "id b", [(1, "w"), (3, "z")],
        lambda t: [t.put(1, id=1, a="x"), t.put(2, id=2, a="y")],
        lambda t: [
            t.put(3, {"id": 2, "a": "y"}, id=3, a="y"),
            t.ddl(10, "RENAME COLUMN a TO b"),
            t.put(11, {"id": 3, "b": "y"}, id=3, b="z"),
            t.put(12, {"id": 1, "b": "x"}, id=4, b="x"),
        ],
        lambda t: [t.put(13, {"id": 4, "b": "x"}, id=1, b="w"), t.put(4, {"id": 2, "a": "y"}, id=2, a="y"),
                   t.delete(5, id=2, a="y")],
        shares=True,
    ),
    *_cases(
        NAMED, "names_that_differ_in_case", "id Id a A", [(1, 3, None, "y")],
        lambda t: [t.put(1, id=1, Id=2, a="x")],
        lambda t: [t.put(2, {"id": 1, "Id": 2, "a": "x", "A": None}, id=1, Id=3, A="y")],
    ),
    *_cases(
        EMPTIED, "emptied_by_a_statement", "id a", [(2, "y"), (3, "z")],
        lambda t: [t.put(1, id=1, a="x")],
        lambda t: [t.empty(10), t.put(11, id=2, a="y")],
        lambda t: [t.put(12, id=3, a="z"), t.put(5, id=4, a="late")],
    ),
    *_cases(
        EMPTIED_LATE, "emptied_by_a_late_statement", "id a", [(2, "y")],
        lambda t: [t.put(1, id=1, a="x"), t.put(11, id=2, a="y")],
        lambda t: [t.empty(10)],
    ),
]  # fmt: skip
_SEATS = told_seats({case.name: case.table for case in _TOLD})
CASES = [
    Case(
        case.name,
        seat := _SEATS[case.name],
        [run(seat.log()) for run in case.runs],
        [*map(seat.column, case.columns.split())],
        case.rows,
    )
    for case in _TOLD
]
