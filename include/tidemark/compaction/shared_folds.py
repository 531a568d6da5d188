"""Folding tables that are read alike in one plan: shards, the same table of many tenants, tables of equal columns.

Spark spends a good part of a second on the plan that folds a table, however few events it has. Tables of which the
plan would be the same but for their names are therefore folded at once, each event with its table beside it, and each
table takes its rows out of what comes of it (docs/adr/0023).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import event_log
from tidemark.compaction.candidate import Candidate, Fold
from tidemark.folding import actions, keyed
from tidemark.lake.lake import Lake
from tidemark.spark.session import checkpointed, named, tuned_for
from tidemark.tables.plan import Plan

_PASSED_OVER = 10_000_000
"""Rows, of all tables of a plan for each of them: so many take as long to pass over as another plan takes."""

_MOST = 100
"""Tables of one plan. Iceberg does not look for a value among 200 and more."""

_NUMBER = "table_number"
"""Column that tells the tables of one plan apart: their places in it, from 1. Text, which Spark keeps out of the code
that it generates: each table would have code of its own to be compiled."""


def folds(
    session: SparkSession,
    lake: Lake,
    source: str,
    candidates: Sequence[tuple[Candidate, int]],
    batch: int,
    pool: Executor,
    views: ExitStack,
) -> dict[str, Fold]:
    """Fold those tables together that are read alike.

    Args:
        session: Spark's.
        lake: the lake.
        source: name of the source.
        candidates: of small tables, prepared, and the batch that each table stands at.
        batch: last batch that they are to hold.
        pool: has the plans made side by side.
        views: keeps what the folds are read by until all tables are built.

    Returns:
        By object as the source names it; tables that are like no other are not in it.
    """
    groups = list(_groups(candidates))
    if not groups:
        return {}
    name = lake.spark_name(("changelog", source))

    def fold(group: tuple[int, list[Plan]]) -> dict[str, Fold]:
        after, plans = group
        return _folded(session.table(name), plans, after, batch, views)

    with tuned_for(session, [_events(plans) for _, plans in groups]):
        return {object_name: each for found in pool.map(fold, groups) for object_name, each in found.items()}


def _groups(candidates: Sequence[tuple[Candidate, int]]) -> Iterator[tuple[int, list[Plan]]]:
    """Tables that are folded together, two of them at least, few enough to be small; and the batch they stand at."""
    alike: dict[tuple[int, Hashable], list[Plan]] = defaultdict(list)
    for candidate, after in candidates:
        if _is_plain(candidate):
            alike[after, _what_is_read(candidate.plan)].append(candidate.plan)
    for (after, _), plans in alike.items():
        group: list[Plan] = []
        for plan in plans:
            if _is_full([*group, plan]):
                yield from [(after, group)] if len(group) > 1 else []
                group = []
            group.append(plan)
        yield from [(after, group)] if len(group) > 1 else []


def _is_full(plans: Sequence[Plan]) -> bool:
    return len(plans) > _MOST or len(plans) * _events(plans) > _PASSED_OVER


def _events(plans: Iterable[Plan]) -> int:
    return sum(plan.found.events for plan in plans)


def _is_plain(candidate: Candidate) -> bool:
    """Whether a table's fold hangs on its new events and columns alone.

    Not on what DDL, TRUNCATE or transactions say, nor on halves of updates that came before.
    """
    plan, found = candidate.plan, candidate.plan.found
    withheld = found.withheld.left_out or found.withheld.released
    alone = candidate.is_truncated or withheld or found.names or plan.defaults or found.splits
    return bool(plan.key and not alone)


def _what_is_read(plan: Plan) -> Hashable:
    """All of a plan that ``folding.actions`` and ``folding.fold`` go by: tables of which it is equal fold alike."""
    found = plan.found
    return (plan.columns, plan.key, plan.soft, found.partial, tuple(found.shapes.items()))


def _folded(changelog: DataFrame, plans: Sequence[Plan], after: int, batch: int, views: ExitStack) -> dict[str, Fold]:
    plan, names = plans[0], [each.found.object for each in plans]
    number = F.array_position(F.array(*map(F.lit, names)), F.col("object")).cast("string")
    changes = event_log.taken_of_all(changelog, names, after, batch).withColumn(_NUMBER, number)
    acted = named(actions.actions(changes, plan, None, kept=(*actions.KEPT, _NUMBER)), views)
    rows = checkpointed(keyed.fold(acted.where(F.col("set_aside").isNull()), plan, apart=[_NUMBER]))
    counted = rows.groupBy(_NUMBER).agg(*keyed.totals(plan))
    totals = {row[_NUMBER]: row.asDict() for row in counted.collect()}
    nothing = dict.fromkeys(counted.columns)
    return {
        name: Fold(
            rows=_of_table(rows, place),
            totals={key: value for key, value in totals.get(place, nothing).items() if key != _NUMBER},
            acted=partial(_of_table, acted, place),
        )
        for place, name in ((str(number), name) for number, name in enumerate(names, start=1))
    }


def _of_table(rows: DataFrame, place: str) -> DataFrame:
    return rows.where(F.col(_NUMBER) == place).drop(_NUMBER)
