"""What compaction must get right, case by case: changes of one table, and the rows that they must lead to."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from support.histories import Table
from support.reference import Change


class Case(NamedTuple):
    """Changes of one table, run by run, and the rows that they must lead to."""

    name: str
    runs: list[list[Change]]
    rows: list[tuple[Any, ...]]
    """In the order of the table's columns, sorted."""


def _case(name: str, build: Callable[[Table], tuple[list[list[Change]], list[tuple[Any, ...]]]]) -> Case:
    return Case(name, *build(Table(name)))


CASES = [
    _case(
        "hot_key",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), *(t.update(n, 1, f"v{n}", "b") for n in range(2, 5002))]],
            [(1, "v5001", "b")],
        ),
    ),
    _case("insert_then_delete", lambda t: ([[t.insert(1, 1, "a", "b"), t.delete(2, 1)]], [])),
    _case(
        "delete_then_insert",
        lambda t: ([[t.insert(1, 1, "a", "b")], [t.delete(2, 1), t.insert(3, 1, "c", "d")]], [(1, "c", "d")]),
    ),
    _case(
        "insert_delete_insert",
        lambda t: ([[t.insert(1, 1, "a", "b"), t.delete(2, 1), t.insert(3, 1, "c", "d")]], [(1, "c", "d")]),
    ),
    _case(
        "key_changed_in_one_run",
        lambda t: ([[t.insert(1, 1, "a", "b"), t.update(2, 2, "a", "c", was=(1,))]], [(2, "a", "c")]),
    ),
    _case(
        "key_changed_over_runs",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.update(2, 2, "a", "c", was=(1,))], [t.update(3, 3, "a", "d", was=(2,))]],
            [(3, "a", "d")],
        ),
    ),
    _case(
        "keys_swapped_by_way_of_a_third",
        lambda t: (
            [
                [t.insert(1, 1, "a", "x"), t.insert(2, 2, "b", "y")],
                [
                    t.update(3, 9, "a", "x", was=(1,)),
                    t.update(4, 1, "b", "y", was=(2,)),
                    t.update(5, 2, "a", "x", was=(9,)),
                ],
            ],
            [(1, "b", "y"), (2, "a", "x")],
        ),
    ),
    _case(
        "key_change_arrives_late",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.insert(5, 1, "new", "n")], [t.update(3, 2, "a", "c", was=(1,))]],
            [(1, "new", "n"), (2, "a", "c")],
        ),
    ),
    _case(
        "late_key_change_under_a_partial_row",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.update(5, 1, "new", ...)], [t.update(3, 2, "a", "c", was=(1,))]],
            [(1, "new", None), (2, "a", "c")],
        ),
    ),
    _case(
        "key_changed_without_its_other_columns",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.update(2, 2, "c", ..., was=(1,)), t.insert(3, 5, "z", "z")]],
            [(1, "a", "b"), (5, "z", "z")],
        ),
    ),
    _case(
        "partial_after_whole",
        lambda t: ([[t.insert(1, 1, "a", "b"), t.update(2, 1, "c", ...)]], [(1, "c", "b")]),
    ),
    _case(
        "partial_over_a_row_of_an_earlier_run",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.update(2, 1, "c", ...)], [t.update(3, 1, ..., "d")]],
            [(1, "c", "d")],
        ),
    ),
    _case(
        "partial_before_what_it_patches",
        lambda t: (
            [[t.update(3, 1, "c", ...)], [t.update(2, 1, ..., "d")], [t.insert(1, 1, "a", "b")]],
            [(1, "c", "d")],
        ),
    ),
    _case(
        "partial_then_whole",
        lambda t: ([[t.insert(1, 1, "a", "b"), t.update(2, 1, "c", ...)], [t.update(3, 1, "e", "f")]], [(1, "e", "f")]),
    ),
    _case(
        "whole_between_two_partials_comes_last",
        lambda t: ([[t.update(1, 1, "a", ...), t.update(5, 1, ..., "z")], [t.update(3, 1, "c", "d")]], [(1, "c", "z")]),
    ),
    _case(
        "partial_after_delete_revives_no_old_value",
        lambda t: ([[t.insert(1, 1, "a", "b"), t.delete(2, 1, "a", "b"), t.update(3, 1, "c", ...)]], [(1, "c", None)]),
    ),
    _case(
        "late_delete_under_a_partial_row",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [t.update(5, 1, "c", ...)], [t.delete(3, 1, "a", "b")]],
            [(1, "c", None)],
        ),
    ),
    _case(
        "late_truncate_under_a_partial_row",
        lambda t: (
            [
                [t.insert(1, 1, "a", "b"), t.insert(2, 2, "x", "y")],
                [t.update(5, 1, "c", ...)],
                [t.truncate(3), t.insert(6, 7, "n", "n")],
            ],
            [(1, "c", None), (7, "n", "n")],
        ),
    ),
    _case(
        "late_update_before_the_published_row",
        lambda t: (
            [[t.insert(1, 1, "a", "b"), t.update(3, 1, "c", "d")], [t.update(2, 1, "late", "late")]],
            [(1, "c", "d")],
        ),
    ),
    _case(
        "late_update_after_a_delete",
        lambda t: ([[t.insert(1, 1, "a", "b")], [t.delete(3, 1)], [t.update(2, 1, "late", "late")]], []),
    ),
    _case(
        "late_delete",
        lambda t: ([[t.insert(3, 1, "a", "b")], [t.delete(2, 1)]], [(1, "a", "b")]),
    ),
    _case(
        "delete_before_its_insert",
        lambda t: ([[t.delete(2, 1)], [t.insert(1, 1, "a", "b")]], []),
    ),
    _case(
        "duplicates",
        lambda t: (
            [
                [t.insert(1, 1, "a", "b"), t.insert(1, 1, "a", "b"), t.update(2, 1, "c", "d")],
                [t.insert(1, 1, "a", "b"), t.update(2, 1, "c", "d")],
                [t.insert(1, 1, "a", "b"), t.delete(3, 1), t.delete(3, 1)],
            ],
            [],
        ),
    ),
    _case("update_of_a_row_never_seen", lambda t: ([[t.update(1, 1, "a", "b")]], [(1, "a", "b")])),
    _case("delete_of_a_row_never_seen", lambda t: ([[t.delete(1, 1), t.insert(2, 2, "a", "b")]], [(2, "a", "b")])),
    _case(
        "truncate_with_rows_around_it",
        lambda t: (
            [
                [t.insert(1, 1, "a", "b"), t.insert(2, 2, "a", "b")],
                [t.truncate(5), t.insert(4, 3, "a", "b"), t.insert(6, 4, "a", "b")],
                [t.insert(3, 5, "late", "late"), t.insert(7, 1, "c", "d")],
            ],
            [(1, "c", "d"), (4, "a", "b")],
        ),
    ),
    _case(
        "truncate_alone_in_its_run",
        lambda t: ([[t.insert(1, 1, "a", "b")], [t.truncate(2)]], []),
    ),
    _case(
        "initial_load_over_changes",
        lambda t: (
            [[t.update(9, 1, "new", "new")], [t.loaded(5, 1, "old", "old"), t.loaded(5, 2, "old", "old")]],
            [(1, "new", "new"), (2, "old", "old")],
        ),
    ),
    _case(
        "column_added",
        lambda t: (
            [[t.insert(1, 1, "a", "b")], [Table(t.name, t.key, (*t.columns, "amount")).insert(2, 2, "c", "d", "1.50")]],
            [(1, "a", "b", None), (2, "c", "d", Decimal("1.50"))],
        ),
    ),
    _case(
        "column_first_seen_in_a_late_event",
        lambda t: (
            [[t.update(5, 1, "c", ...)], [Table(t.name, t.key, (*t.columns, "amount")).insert(1, 1, "a", "b", "1.50")]],
            [(1, "c", "b", Decimal("1.50"))],
        ),
    ),
]
