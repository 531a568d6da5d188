"""Spark expressions of typed expressions over one row (``values.expressions``). No value of a row makes one fail.

Under Spark's ANSI rules a cast or a sum that has no result ends the job. Here it is null, as ``try_cast`` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import and_, or_
from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.values.expressions import COLUMN, LITERAL, Term
from tidemark.values.types import spark_type

_LONGEST: Final = (1 << 31) - 1


def computed(term: Term, columns: Mapping[str, Expression]) -> Expression:
    """Return the value of a typed expression.

    Args:
        term: the result of ``expression_types.typed``.
        columns: the columns that it names.
    """
    if term.function == COLUMN:
        return columns[term.text or ""]
    if term.function == LITERAL:
        # As text: a Python value would be read in the time zone of this machine. The text is known to hold a value.
        return F.lit(term.text).cast(spark_type(term.type or "string"))
    if term.function in _WITH_NUMBERS:
        numbers = [int(each.text or 0) for each in term.arguments[1:]]
        return _WITH_NUMBERS[term.function](computed(term.arguments[0], columns), numbers).cast(spark_type(term.type))
    arguments = [computed(each, columns) for each in term.arguments]
    if term.function == "cast":
        return _cast(term.arguments[0].type, arguments[0], term.type)
    return _FUNCTIONS[term.function](arguments).cast(spark_type(term.type or "string"))


def _cast(was: str, value: Expression, kind: str) -> Expression:
    if was == "string" and kind == "date":  # a plain cast knows words such as `now`, and parts of dates
        return F.try_to_timestamp(value, F.lit("yyyy-MM-dd")).cast("date")
    return value.try_cast(spark_type(kind))


def _case(parts: Sequence[Expression]) -> Expression:
    chain = F.when(parts[0], parts[1])
    for condition, value in zip(parts[2:-1:2], parts[3:-1:2], strict=True):
        chain = chain.when(condition, value)
    return chain.otherwise(parts[-1])


def _chained(operation: Callable[[Expression, Expression], Expression], sides: Sequence[Expression]) -> Expression:
    """Return a chain of conditions as a balanced tree: Spark goes down a tree by recursion, and its stack is small."""
    while len(sides) > 1:
        pairs = zip(sides[::2], sides[1::2], strict=False)
        sides = [*(operation(*pair) for pair in pairs), *(sides[-1:] if len(sides) % 2 else ())]
    return sides[0]


_WITH_NUMBERS: Final[Mapping[str, Callable[[Expression, Sequence[int]], Expression]]] = {
    "substr": lambda value, numbers: F.substring(value, numbers[0], numbers[1] if len(numbers) > 1 else _LONGEST),
    "left": lambda value, numbers: F.substring(value, 1, numbers[0]),
    "right": lambda value, numbers: F.right(value, F.lit(numbers[0])),
    "round": lambda value, numbers: F.round(value, numbers[0] if numbers else 0),
}
"""Functions whose arguments behind the first are numbers of the expression itself."""

_FUNCTIONS: Final[Mapping[str, Callable[[Sequence[Expression]], Expression]]] = {
    "=": lambda sides: sides[0] == sides[1],
    "<>": lambda sides: sides[0] != sides[1],
    "<": lambda sides: sides[0] < sides[1],
    "<=": lambda sides: sides[0] <= sides[1],
    ">": lambda sides: sides[0] > sides[1],
    ">=": lambda sides: sides[0] >= sides[1],
    "is not distinct from": lambda sides: sides[0].eqNullSafe(sides[1]),
    "and": lambda sides: _chained(and_, sides),
    "or": lambda sides: _chained(or_, sides),
    "not": lambda sides: ~sides[0],
    "in": lambda sides: sides[0].isin(*sides[1:]),
    "like": lambda sides: F.like(sides[0], sides[1]),
    "ilike": lambda sides: F.ilike(sides[0], sides[1]),
    "+": lambda sides: F.try_add(*sides),
    "-": lambda sides: F.try_subtract(*sides),
    "*": lambda sides: F.try_multiply(*sides),
    "/": lambda sides: F.try_divide(*sides),
    "%": lambda sides: F.try_mod(*sides),
    "||": lambda sides: F.concat(*sides),
    "coalesce": lambda sides: F.coalesce(*sides),
    "nullif": lambda sides: F.nullif(*sides),
    "greatest": lambda sides: F.greatest(*sides) if len(sides) > 1 else sides[0],
    "least": lambda sides: F.least(*sides) if len(sides) > 1 else sides[0],
    "upper": lambda sides: F.upper(sides[0]),
    "lower": lambda sides: F.lower(sides[0]),
    "trim": lambda sides: F.trim(sides[0]),
    "length": lambda sides: F.length(sides[0]),
    "replace": lambda sides: F.replace(*sides),
    "year": lambda sides: F.year(sides[0]),
    "month": lambda sides: F.month(sides[0]),
    "day": lambda sides: F.dayofmonth(sides[0]),
    "hour": lambda sides: F.hour(sides[0]),
    "case": _case,
}
