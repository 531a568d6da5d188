"""Which keys a batch has, in brief: stored rows beyond them need no reading.

Iceberg leaves out the partitions and files that cannot hold such keys, by their partition values and statistics. It can
do so for constants alone, not for the rows of a join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding.frames import key_names
from tidemark.tables.plan import Plan
from tidemark.text import quoted
from tidemark.values.types import decimal_parts, spark_type

FEW = 200
"""Most values of a column that are named one by one; for more, Iceberg does not look at its statistics of files."""

_ORDERED = ("int", "long", "string", "date", "timestamp", "timestamptz")
"""Types whose order is the same in Spark and in Iceberg. The order of decimals is the same, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyBounds:
    """What the key of each row of a batch fulfils; without ranges and values: anything."""

    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Key column -> its least and its greatest value, as Spark writes them."""
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Key column -> all its values, as Spark writes them, where they are few."""

    def holds(self, plan: Plan, names: Mapping[str, str]) -> Expression:
        """Return whether a row of the table may have a key of the batch.

        Args:
            plan: the table's.
            names: key column -> its name in the rows that are asked.
        """
        types = _types(plan)

        def constant(name: str, text: str) -> Expression:
            return F.lit(text).cast(types[name])

        held = [
            F.col(quoted(names[name])).between(constant(name, least), constant(name, greatest))
            for name, (least, greatest) in self.ranges.items()
        ]
        held += [
            F.col(quoted(names[name])).isin([constant(name, value) for value in values])
            for name, values in self.values.items()
        ]
        return reduce(and_, held, F.lit(True))

    def of(self, stored: DataFrame, plan: Plan) -> DataFrame:
        """Return the rows of a table that may have a key of the batch; the columns have the names of the plan."""
        if not (self.ranges or self.values):
            return stored
        return stored.where(self.holds(plan, {name: name for name in plan.key}))


ANY = KeyBounds()
"""Of a batch whose keys are not known."""


_LEAST, _GREATEST = "least_", "greatest_"


def is_bound(total: str) -> bool:
    """Return whether a total has one of the names of ``totals``."""
    return total.startswith((_LEAST, _GREATEST))


def totals(plan: Plan) -> Iterator[Expression]:
    """Yield aggregates over the rows of ``keyed.fold``, for ``found``: text, or null where none is exact."""
    types = _types(plan)
    for name, own in _bounded(plan):
        for bound, value in ((_LEAST + own, F.min(own)), (_GREATEST + own, F.max(own))):
            yield _exact(value, types[name]).alias(bound)


def found(plan: Plan, bounds: Mapping[str, str | None]) -> KeyBounds:
    """Return the bounds of the keys of a batch, from its ``totals``."""
    ranges = {name: (bounds.get(_LEAST + own), bounds.get(_GREATEST + own)) for name, own in _bounded(plan)}
    return KeyBounds(ranges={name: (a, b) for name, (a, b) in ranges.items() if a is not None and b is not None})


def with_values(bounds: KeyBounds, folded: DataFrame, plan: Plan, names: Collection[str]) -> KeyBounds:
    """Return the bounds with all values of some key columns, where these are few.

    Args:
        bounds: of the batch.
        folded: ``keyed.fold``, kept.
        plan: the table's.
        names: the key columns.
    """
    types = _types(plan)
    values: dict[str, Sequence[str]] = {}
    for name, own in _bounded(plan):
        if name in names and name in bounds.ranges:
            distinct = folded.select(own).distinct().limit(FEW + 1)
            texts = [row[0] for row in distinct.select(_exact(F.col(own), types[name])).collect()]
            if len(texts) <= FEW and None not in texts:
                values[name] = texts
    return KeyBounds(ranges=bounds.ranges, values=values)


def _exact(value: Expression, kind: str) -> Expression:
    """Return a value as text; null if the text is not read as the same value again."""
    text = value.cast("string")
    return F.when(text.try_cast(kind) == value, text)


def _bounded(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield key columns whose values have bounds, each with its name in folded rows."""
    for name, own, number in zip(plan.key, key_names(plan), plan.key_numbers, strict=True):
        kind = plan.columns[number].type
        if kind in _ORDERED or decimal_parts(kind):
            yield name, own


def _types(plan: Plan) -> dict[str, str]:
    """Return the type of each key column in Spark's SQL."""
    return {
        name: spark_type(plan.columns[number].type) for name, number in zip(plan.key, plan.key_numbers, strict=True)
    }
