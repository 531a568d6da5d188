"""Rows that fail checks which keep them back: each expectation's predicate, as Great Expectations has it in Spark.

Pure functions on columns. A null passes, but where the check is about null. ``tests/folding/test_row_checks.py``
compares the predicates with the verdicts of Great Expectations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.tables.row_checks import RowCheck

Cell = Callable[[str], Expression]
"""Returns the value of a column, by its name."""


def fails(rule: RowCheck, cell: Cell) -> Expression:
    """Return whether a row fails a rule; never null."""
    passes = _PASSES[rule.type](rule.arguments, *map(cell, rule.columns))
    return F.coalesce(~passes, F.lit(False))


def failed(rules: Sequence[RowCheck], cell: Cell) -> Expression:
    """Return the name of the first rule that a row fails; null if it passes all."""
    return F.coalesce(*(F.when(fails(rule, cell), F.lit(str(rule))) for rule in rules))


def stays(rules: Sequence[RowCheck], cell: Cell) -> Expression:
    """Return whether a row that fails stays as it was: no rule that it fails takes it out."""
    taken_out = [fails(rule, cell) for rule in rules if not rule.keeps_last_good]
    return ~reduce(or_, taken_out, F.lit(False))


def _between(given: Mapping[str, Any], value: Expression) -> Expression:
    passes = F.lit(True)
    if given.get("min_value") is not None:
        low = _bound(given["min_value"])
        passes &= value > low if given.get("strict_min") else value >= low
    if given.get("max_value") is not None:
        high = _bound(given["max_value"])
        passes &= value < high if given.get("strict_max") else value <= high
    return passes


def _bound(given: object) -> Expression:
    """Return a bound as Great Expectations has it: a number is a float, also where floats cannot hold it exactly."""
    return F.lit(float(given) if isinstance(given, int) else given)


def _is_greater(given: Mapping[str, Any], a: Expression, b: Expression) -> Expression:
    return a >= b if given.get("or_equal") else a > b


_PASSES: Mapping[str, Callable[..., Expression]] = {
    "expect_column_pair_values_a_to_be_greater_than_b": _is_greater,
    "expect_column_pair_values_to_be_equal": lambda _, a, b: a.eqNullSafe(b),
    "expect_column_value_lengths_to_be_between": lambda given, value: _between(given, F.length(value)),
    "expect_column_value_lengths_to_equal": lambda given, value: F.length(value) == given["value"],
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": lambda given, value: value.isin(given["value_set"]),
    "expect_column_values_to_be_null": lambda _, value: value.isNull(),
    "expect_column_values_to_match_regex": lambda given, value: value.rlike(given["regex"]),
    "expect_column_values_to_not_be_in_set": lambda given, value: ~value.isin(given["value_set"]),
    "expect_column_values_to_not_be_null": lambda _, value: value.isNotNull(),
    "expect_column_values_to_not_match_regex": lambda given, value: ~value.rlike(given["regex"]),
}
"""Expectation -> whether a row passes, by its arguments and the values of its columns."""
