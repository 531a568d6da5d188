"""Which rows of a table are a subject's: rows with one of its keys, within the positions at which it had that key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysFalse, And, BooleanExpression, Or

from tidemark.lake.filters import at_least, below, equals
from tidemark.tables.schemas import POSITION


class Match(NamedTuple):
    """Rows with some values, written by events of some positions."""

    values: dict[str, Any]
    begins: str = ""
    ends: str | None = None


def condition(matches: Sequence[Match]) -> BooleanExpression:
    """Return the condition that a row is one of these."""
    return reduce(Or, map(_condition, matches)) if matches else AlwaysFalse()


def _condition(match: Match) -> BooleanExpression:
    parts = [equals(name, value) for name, value in match.values.items()]
    if match.begins:
        parts.append(at_least(POSITION, match.begins))
    if match.ends is not None:
        parts.append(below(POSITION, match.ends))
    return reduce(And, parts)


def holds(matches: Sequence[Match]) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function that marks which rows of a batch one of the matches covers."""

    def holds(rows: pa.RecordBatch) -> pa.Array:
        found = pa.repeat(pa.scalar(value=False), rows.num_rows)
        for match in matches:
            one = pa.repeat(pa.scalar(value=True), rows.num_rows)
            for name, value in match.values.items():
                column = rows.column(name)
                one = pc.and_(one, _sure(pc.equal(column, pa.scalar(value).cast(column.type))))
            if match.begins:
                one = pc.and_(one, _sure(pc.greater_equal(rows.column(POSITION), match.begins)))
            if match.ends is not None:
                one = pc.and_(one, _sure(pc.less(rows.column(POSITION), match.ends)))
            found = pc.or_(found, one)
        return found

    return holds


def _sure(found: pa.Array) -> pa.Array:
    return pc.fill_null(found, False)  # noqa: FBT003
