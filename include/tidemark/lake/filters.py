"""Conditions on rows of small Iceberg tables, for scans without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyiceberg.expressions import BooleanExpression, EqualTo, GreaterThan, In, IsNull

_EQUAL_TO: Any = EqualTo

_GREATER_THAN: Any = GreaterThan

_IN: Any = In

_IS_NULL: Any = IsNull
# Any: PyIceberg's expressions are models whose constructors type checkers read in two ways.


def equals(column: str, value: str | int) -> BooleanExpression:
    """Rows whose column holds a value."""
    expression: BooleanExpression = _EQUAL_TO(column, value)
    return expression


def above(column: str, value: int) -> BooleanExpression:
    """Rows whose column holds a greater number."""
    expression: BooleanExpression = _GREATER_THAN(column, value)
    return expression


def among(column: str, values: Iterable[str | int]) -> BooleanExpression:
    """Rows whose column holds one of some values."""
    expression: BooleanExpression = _IN(column, set(values))
    return expression


def unset(column: str) -> BooleanExpression:
    """Rows whose column is null."""
    expression: BooleanExpression = _IS_NULL(column)
    return expression
