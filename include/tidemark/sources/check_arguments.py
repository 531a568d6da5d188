"""What is wrong with the arguments of an expectation: those that are missing or unknown, and values that judge nothing.

What Great Expectations would refuse is found here as far as it is known, because it is imported only where a cut is
judged. There, a refused argument is a failed check of its table (``quality.suites``).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from datetime import date
from typing import Any, Final

from pydantic_core import InitErrorDetails

from tidemark.sources.expectation_names import BOUNDED, EXPECTATIONS, REQUIRED
from tidemark.sources.fields import error_at
from tidemark.text import suggestion

SET: Final = "value_set"
"""The argument with the values that a column may have, or may not have."""

_BOUNDS: Final = ("min_value", "max_value")

_LISTS: Final = (SET, "value_pairs_set", "regex_list", "type_list", "column_list", "column_set")

_COUNTS: Final = (
    "expect_column_unique_value_count_to_be_between",
    "expect_column_value_lengths_to_be_between",
    "expect_table_column_count_to_be_between",
    "expect_table_row_count_to_be_between",
)
"""Expectations whose bounds are whole numbers."""

_READS_FRACTIONS: Final = "expect_table_column_count_to_be_between"
"""The one of them in which Great Expectations takes a text such as ``9.0`` for a number."""

_FIGURES: Final = (
    "expect_column_proportion_of_non_null_values_to_be_between",
    "expect_column_proportion_of_unique_values_to_be_between",
    "expect_column_stdev_to_be_between",
)
"""Expectations whose bounds are numbers, whatever the column holds."""


def wrong_arguments(given: Mapping[Any, Any], *, own: Container[object]) -> Iterator[InitErrorDetails]:
    """Yield what is wrong with the arguments of an expectation; nothing if the expectation is not known.

    Args:
        given: the check, as the file gives it.
        own: the keys of a check that are no arguments.
    """
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in EXPECTATIONS:
        return
    arguments, allowed = {name: value for name, value in given.items() if name not in own}, EXPECTATIONS[kind]
    for name in arguments:
        if name not in allowed:
            yield error_at((name,), f"unknown key.{suggestion(str(name), allowed)}", "unknown_key")
    for name in sorted(REQUIRED[kind]):
        if arguments.get(name) is None:
            yield error_at((name,), f"missing: {kind} needs it.", "missing_key")
    if kind in BOUNDED and all(arguments.get(name) is None for name in _BOUNDS):
        text = f"missing: {kind} needs min_value, max_value or both. Without them nothing could fail."
        yield error_at((_BOUNDS[0],), text, "missing_key")
    elif kind in BOUNDED and kind not in _COUNTS:
        yield from _endless(arguments)
    for name, value in arguments.items():
        if value is not None and name in allowed and (problem := _problem(kind, name, value)):
            yield error_at((name,), problem)


def _problem(kind: str, name: str, value: object) -> str | None:
    """Return what is wrong with the value of an argument; None if nothing is."""
    if name in _LISTS:
        return _no_list(kind, name, value)
    if name in _BOUNDS:
        return _no_bound(kind, value)
    if name == "mostly" and not ((share := _number(value)) is not None and 0 <= share <= 1):
        return f"'{value}' is no share: write a number from 0 to 1, as 0.95 for 95 %."
    if name == "row_condition" and isinstance(value, str):
        return _no_condition(value)
    return None


def _no_list(kind: str, name: str, value: object) -> str | None:
    """Return why something is no list that rows can be judged by."""
    if not isinstance(value, list) or not value:
        return f"'{value}' is no list with values: write [a, b]."
    if name == SET and kind == "expect_column_values_to_not_be_in_set" and None in value:
        return "a null passes anyway: leave it out of the list, and use expect_column_values_to_not_be_null."
    if name == SET and kind == "expect_column_values_to_be_in_set" and all(each is None for each in value):
        return "a null passes anyway, and the list has no other value: use expect_column_values_to_be_null."
    return None


def _endless(arguments: Mapping[Any, Any]) -> Iterator[InitErrorDetails]:
    """Yield the infinite bounds of a check that has no other bound."""
    given = {name: arguments[name] for name in _BOUNDS if arguments.get(name) is not None}
    endless = [name for name, value in given.items() if (number := _number(value)) is not None and math.isinf(number)]
    if len(endless) == len(given):
        for name in endless:
            yield error_at((name,), f"'{given[name]}' is no bound by itself: give another one that values lie beyond.")


def _no_bound(kind: str, value: object) -> str | None:
    """Return why something is no bound of what an expectation judges; None if it is one."""
    number = _number(value)
    if kind in _COUNTS:
        is_whole = number is not None and number.is_integer() and (kind == _READS_FRACTIONS or _is_plain(value))
        return None if is_whole else f"'{value}' is no whole number, and a count is judged."
    if number is not None or (kind not in _FIGURES and _is_time_of_gx(value)):
        return None
    return f"'{value}' is no number{'' if kind in _FIGURES else ', date or time'}."


def _number(value: object) -> float | None:
    """Return a number, also if it is written in quotes; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _is_plain(value: object) -> bool:
    """Return whether a whole number, if it is a text, has neither a fraction nor an exponent."""
    if not isinstance(value, str):
        return True
    try:
        int(value)
    except ValueError:
        return False
    return True


def _is_time_of_gx(value: object) -> bool:
    """Return whether Great Expectations reads a value as a date or a time, by the functions that it does so with."""
    if not isinstance(value, str):
        return isinstance(value, date)
    from pydantic.v1.datetime_parse import parse_date, parse_datetime  # noqa: PLC0415  few source files pay for it

    for parse in (parse_date, parse_datetime):
        try:
            parse(value)
        except (ValueError, TypeError, OverflowError):
            continue
        return True
    return False


def _no_condition(text: str) -> str | None:
    """Return why a text is no condition of Spark's SQL; None if it is one."""
    import sqlglot  # noqa: PLC0415  a source file without a condition does not pay for it
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    try:
        parsed = sqlglot.parse(text, read="spark")
    except SqlglotError:
        parsed = []
    if len(parsed) != 1 or parsed[0] is None:
        return "is no condition of Spark's SQL, as `state = 'paid'` is one."
    if parsed[0].find(exp.Query) is not None:
        return "asks for other rows: a condition is about the row itself."
    return None
