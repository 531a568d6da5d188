"""Folding tables that are read alike in one plan: shards, the same table of many tenants, tables of equal columns.

Spark spends a good part of a second on the plan that folds a table, however few events it has. Tables whose plans
differ only in the table's name are therefore folded in one plan. A column says which table an event belongs to, and
each table selects its rows from the result (docs/adr/0023).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import cache, partial

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import before_image_samples, event_log
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.keyed_candidate import Fold
from tidemark.folding import actions, keyed, row_images
from tidemark.folding.keyed import Totals
from tidemark.spark.jvm_lookups import ENGINE_ERRORS
from tidemark.spark.session import checkpointed, named
from tidemark.spark.tuning import gathered, tuned_for
from tidemark.tables.plan import Plan
from tidemark.text import first_line

log = structlog.get_logger(__name__)

_MOST_IMAGES = 10_000
"""Before images of some tables up to which they are handed to this process together."""

_PASSED_OVER = 10_000_000
"""Rows, of all tables of a plan for each of them: so many take as long to pass over as another plan takes."""

_MOST = 100
"""Tables of one plan. Iceberg does not look for a value among 200 and more."""

_NUMBER = "table_number"
"""Column that tells the tables of one plan apart: their places in it, from 1. Text, which Spark keeps out of the code
that it generates: each table would have code of its own to be compiled."""


def folds(prepared: Sequence[Prepared], pool: Executor, views: ExitStack) -> dict[str, Fold]:
    """Fold tables together whose plans differ only in the table's name.

    Args:
        prepared: small tables of one run.
        pool: has the plans made side by side.
        views: keeps what the folds are read by until all tables are built.

    Returns:
        By object as the source names it; tables that are like no other are not in it.
    """
    groups = list(_groups(prepared))
    if not groups:
        return {}
    run = prepared[0].run

    def fold(plans: Sequence[Plan]) -> dict[str, Fold]:
        try:
            return _folded(run.changes(), plans, run.cut.batch, views)
        except ENGINE_ERRORS as error:  # each table is folded by itself then, and shows which of them it is
            tables = [plan.found.object for plan in plans]
            log.warning("engine_failed", tables=tables, error=first_line(error))
            return {}

    with tuned_for(run.session, [_events(plans) for plans in groups]):
        return {object_name: each for found in pool.map(fold, groups) for object_name, each in found.items()}


def _groups(prepared: Sequence[Prepared]) -> Iterator[list[Plan]]:
    """Yield tables that are folded together: two at least that stand at one batch, few enough to be small."""
    alike: dict[tuple[int, Hashable], list[Plan]] = defaultdict(list)
    for each in prepared:
        if _is_plain(each):
            alike[each.plan.found.published_batch, _what_is_read(each.plan)].append(each.plan)
    for plans in alike.values():
        group: list[Plan] = []
        for plan in plans:
            if _is_full([*group, plan]):
                yield from [group] if len(group) > 1 else []
                group = []
            group.append(plan)
        yield from [group] if len(group) > 1 else []


def _is_full(plans: Sequence[Plan]) -> bool:
    return len(plans) > _MOST or len(plans) * _events(plans) > _PASSED_OVER


def _events(plans: Iterable[Plan]) -> int:
    return sum(plan.found.events for plan in plans)


def _is_plain(prepared: Prepared) -> bool:
    """Return whether a table's fold depends on its new events and columns alone.

    It does not where DDL, TRUNCATE or transactions decide too, or halves of updates and rows that came before.
    """
    plan, found = prepared.plan, prepared.plan.found
    withheld = found.withheld.left_out or found.withheld.released
    alone = (
        prepared.is_truncated
        or withheld
        or found.names
        or plan.defaults
        or found.splits
        or found.moves
        or found.segments
        or found.shards
        or plan.row_checks
    )
    return bool(plan.key and not alone)


def _what_is_read(plan: Plan) -> Hashable:
    """Return all of a plan that ``folding`` uses: tables for which it is equal fold alike."""
    found = plan.found
    masks = (*plan.masks.kinds.items(), plan.masks.variable)
    flags = (plan.compares, plan.compares_images, plan.ranks_copies, found.halves, found.partial)
    return (plan.columns, plan.key, plan.soft, flags, masks, tuple(found.shapes.items()))


def _folded(changelog: DataFrame, plans: Sequence[Plan], batch: int, views: ExitStack) -> dict[str, Fold]:
    plan, names = plans[0], [each.found.object for each in plans]
    number = F.array_position(F.array(*map(F.lit, names)), F.col("object")).cast("string")
    changes = event_log.new_events_of(changelog, names, plan.found.published_batch, batch).withColumn(_NUMBER, number)
    kept: Sequence[str] = (*actions.KEPT, _NUMBER)
    images = before_image_samples.wanted(plan, max(each.found.events for each in plans))
    if images:
        changes, kept = row_images.with_images(changes, images.share), (*kept, *row_images.KEPT)
    acted = named(gathered(actions.actions(changes, plan, None, kept=kept)), views)
    sound = acted.where(F.col("set_aside").isNull())
    rows = checkpointed(keyed.fold(sound, plan, apart=[_NUMBER], images=images))
    counted = rows.groupBy(_NUMBER).agg(*keyed.totals(plan, images=plan.compares_images))
    found = {row[_NUMBER]: row.asDict() for row in counted.collect()}
    for row in found.values():
        del row[_NUMBER]
    totals = {place: Totals.of(row) for place, row in found.items()}
    image_count = sum(each.images for each in totals.values())
    every = cache(partial(before_image_samples.images_of, rows, [_NUMBER])) if image_count <= _MOST_IMAGES else None
    return {
        name: Fold(
            rows=_of_table(rows, place),
            totals=totals.get(place, Totals.of({})),
            acted=partial(_of_table, acted, place),
            plan=plans[int(place) - 1],
            images=partial(_images_of, every, place)
            if every is not None
            else partial(before_image_samples.images_of, _of_table(rows, place)),
        )
        for place, name in ((str(number), name) for number, name in enumerate(names, start=1))
    }


def _images_of(every: Callable[[], pa.Table], place: str) -> pa.Table:
    images = every()
    return images.filter(pc.equal(images.column(_NUMBER), place)).drop_columns([_NUMBER])


def _of_table(rows: DataFrame, place: str) -> DataFrame:
    return rows.where(F.col(_NUMBER) == place).drop(_NUMBER)
