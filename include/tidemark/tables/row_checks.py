"""Checks of the source file that keep single rows back: which of them a table has in effect, and whether they fit.

The published table records the rules that it was built by (``MARK``, in the summary of a snapshot). Where they change,
or a column of a rule comes, goes, or gets other values in rows of before, the table is built again from its whole
change log. So its rows are always those that today's rules make of all of its events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from pyiceberg.table import Table

from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.lake.branches import marker
from tidemark.sources import model
from tidemark.sources.check import columns_in
from tidemark.sources.choices import OnFail
from tidemark.values.table_columns import TableColumn

MARK: Final = "row_checks"
"""Marker of a table: the rules that its rows were judged by."""

_NUMBERS: Final = ("int", "long", "float", "double", "decimal")

_TIMES: Final = ("date", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """A check that each row passes or fails by itself."""

    type: str
    """The expectation."""
    arguments: Mapping[str, Any]
    keeps_last_good: bool
    """Whether a row that fails stays as it was; else it is not published."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns that it looks at."""
        return columns_in(self.arguments)

    def __str__(self) -> str:
        """Return what it is called, without values."""
        return f"{self.type} ({', '.join(self.columns)})"


def in_effect(
    table: str, promised: model.Table, columns: Sequence[TableColumn], void: Collection[str] = ()
) -> tuple[RowCheck, ...]:
    """Return the rules that can be applied to rows: all of whose columns the table has.

    Great Expectations reports the others, because their columns are missing.

    Args:
        table: as the source names it.
        promised: what the source file says of it.
        columns: of the table, by today's names.
        void: columns without a value so far, which are text for now.

    Raises:
        IncompatibleSchemaError: the type of a column does not fit the arguments.
    """
    types, found = {column.name: column.type for column in columns}, []
    for check in promised.checks:
        rule = RowCheck(
            type=check.type, arguments=check.arguments, keeps_last_good=check.on_fail is OnFail.KEEP_LAST_GOOD
        )
        if not check.keeps_back or not set(rule.columns) <= types.keys():
            continue
        if problem := _misfit(rule, [types[name] for name in rule.columns]):
            if set(rule.columns) & set(void):
                continue
            raise IncompatibleSchemaError(
                f"{table}: `on_fail` of {rule}: {problem}. Correct the check, or write `on_fail: block`"
            )
        found.append(rule)
    return tuple(found)


def refuse_parts(table: str, checks: Sequence[RowCheck], elsewhere: Callable[[str], Sequence[str]]) -> None:
    """Refuse to judge only some of the columns in which the values of one column of the source stand.

    Args:
        table: as the source names it.
        checks: the rules in effect.
        elsewhere: gives the other columns of the table with values of the same column.

    Raises:
        IncompatibleSchemaError: the rule that is written for one of them is not written for another.
    """
    judged = {(check.type, name) for check in checks for name in check.columns}
    for check in checks:
        for name in check.columns:
            if others := [each for each in elsewhere(name) if (check.type, each) not in judged]:
                raise IncompatibleSchemaError(
                    f"{table}: {check} keeps rows back, and {name!r} is called {' or '.join(map(repr, others))} in "
                    "other rows, by a rename that the table as a whole does not follow. Write the check for all of "
                    "them, or publish them as one column"
                )


def refuse_unfit(table: str, promised: model.Table, key: Sequence[str], *, whole: bool) -> None:
    """Refuse to keep rows back where an event may not have the whole row, or the table has no key.

    Args:
        table: as the source names it.
        promised: what the source file says of it.
        key: of the table.
        whole: whether each event has a whole row.

    Raises:
        IncompatibleSchemaError: the table keeps rows back, and is such a table.
    """
    if not any(check.keeps_back for check in promised.checks):
        return
    problem = None if whole else "an event of it may tell a part of a row only, or one half of an update"
    if not key:
        problem = "nothing tells its rows apart"
    if problem:
        raise IncompatibleSchemaError(
            f"{table}: `on_fail: quarantine` and `keep_last_good` judge each event by its whole row, and {problem}. "
            "Write `on_fail: block` or `warn`"
        )


def as_text(rules: Sequence[RowCheck]) -> str:
    """Return what a table records of its rules."""
    return json.dumps(
        [[rule.type, rule.arguments, rule.keeps_last_good] for rule in rules], sort_keys=True, default=str
    )


_NONE: Final = as_text(())


def recorded(table: Table | None) -> str:
    """Return what a published table records of its rules."""
    return marker(table, MARK) or _NONE


def are_recorded(table: Table | None, rules: Sequence[RowCheck]) -> bool:
    """Return whether a cut of a table is to record its rules: it has some, or had some."""
    return bool(rules) or recorded(table) != _NONE


def refuse_stale(object_name: str, table: Table, rules: Sequence[RowCheck], renewed: Container[str]) -> None:
    """Refuse to go on with a table whose rows other rules made, or the same rules by other values.

    The events of rows that are kept back are not in the table, so only a rebuild judges them again.

    Args:
        object_name: the table as the source names it.
        table: as it is published.
        rules: in effect now.
        renewed: columns in which the rows of earlier cuts get other values.

    Raises:
        RebuildNeededError: the rules were others, or one of them looks at such a column.
    """
    judged_anew = any(name in renewed for rule in rules for name in rule.columns)
    if judged_anew or recorded(table) != as_text(rules):
        raise RebuildNeededError(f"{object_name}: checks that keep rows back changed, or columns of them did")


def _misfit(rule: RowCheck, types: Sequence[str]) -> str | None:
    """Return why the types of a rule's columns do not fit; None if they do."""
    kind, given = types[0], rule.arguments
    match rule.type:
        case "expect_column_values_to_be_between":
            bounds = [given[name] for name in ("min_value", "max_value") if given.get(name) is not None]
            return None if bounds and all(_compares(kind, bound) for bound in bounds) else _unlike(kind, bounds)
        case "expect_column_values_to_be_in_set" | "expect_column_values_to_not_be_in_set":
            values = given["value_set"]
            fits = isinstance(values, list) and values and all(_is_one_of(kind, value) for value in values)
            return None if fits else _unlike(kind, values)
        case "expect_column_values_to_match_regex" | "expect_column_values_to_not_match_regex":
            return (
                None if kind == "string" and isinstance(given.get("regex"), str) else _unlike(kind, given.get("regex"))
            )
        case "expect_column_value_lengths_to_be_between" | "expect_column_value_lengths_to_equal":
            lengths = [given[name] for name in ("min_value", "max_value", "value") if given.get(name) is not None]
            fits = kind == "string" and lengths and all(type(length) is int for length in lengths)
            return None if fits else _unlike(kind, lengths)
        case "expect_column_pair_values_a_to_be_greater_than_b" | "expect_column_pair_values_to_be_equal":
            both_numbers = all(each.startswith(_NUMBERS) for each in types)
            return None if both_numbers or len(set(types)) == 1 else f"{types[0]} is not compared with {types[1]}"
    return None


def _unlike(kind: str, given: object) -> str:
    return f"a column of type {kind} is not compared with {given}"


def _compares(kind: str, bound: object) -> bool:
    """Return whether a value of a type is above or below a bound."""
    if kind.startswith(_TIMES):
        return isinstance(bound, date) or (isinstance(bound, str) and _is_iso_time(bound))
    return kind not in {"string", "boolean"} and _is_one_of(kind, bound)


def _is_one_of(kind: str, value: object) -> bool:
    """Return whether a value may be of a type, not of time."""
    if kind.startswith(_NUMBERS):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool}.get(kind, ()))


def _is_iso_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
