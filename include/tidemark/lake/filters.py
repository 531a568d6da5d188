"""Conditions on the rows of Iceberg tables, for scans without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyiceberg.expressions import (
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotNull,
    StartsWith,
)

_EQUAL_TO: Any = EqualTo
_GREATER_THAN: Any = GreaterThan
_GREATER_THAN_OR_EQUAL: Any = GreaterThanOrEqual
_IN: Any = In
_IS_NULL: Any = IsNull
_LESS_THAN: Any = LessThan
_LESS_THAN_OR_EQUAL: Any = LessThanOrEqual
_NOT_NULL: Any = NotNull
_STARTS_WITH: Any = StartsWith
# Any: PyIceberg's expressions are models, and type checkers disagree about the parameters of their constructors.


def equals(column: str, value: str | int) -> BooleanExpression:
    """Return the condition that a column holds a value."""
    expression: BooleanExpression = _EQUAL_TO(column, value)
    return expression


def above(column: str, value: str | int) -> BooleanExpression:
    """Return the condition that a column holds a greater value."""
    expression: BooleanExpression = _GREATER_THAN(column, value)
    return expression


def below(column: str, value: str | int) -> BooleanExpression:
    """Return the condition that a column holds a smaller value."""
    expression: BooleanExpression = _LESS_THAN(column, value)
    return expression


def at_least(column: str, value: str | int) -> BooleanExpression:
    """Return the condition that a column holds a value or a greater one."""
    expression: BooleanExpression = _GREATER_THAN_OR_EQUAL(column, value)
    return expression


def at_most(column: str, value: str | int) -> BooleanExpression:
    """Return the condition that a column holds a value or a smaller one."""
    expression: BooleanExpression = _LESS_THAN_OR_EQUAL(column, value)
    return expression


def among(column: str, values: Iterable[str | int]) -> BooleanExpression:
    """Return the condition that a column holds one of some values."""
    expression: BooleanExpression = _IN(column, set(values))
    return expression


def starts_with(column: str, prefix: str) -> BooleanExpression:
    """Return the condition that a text column begins with a prefix."""
    expression: BooleanExpression = _STARTS_WITH(column, prefix)
    return expression


def unset(column: str) -> BooleanExpression:
    """Return the condition that a column is null."""
    expression: BooleanExpression = _IS_NULL(column)
    return expression


def not_null(column: str) -> BooleanExpression:
    """Return the condition that a column is not null."""
    expression: BooleanExpression = _NOT_NULL(column)
    return expression
