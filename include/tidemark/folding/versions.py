"""Versions: from the events of one table to the versions of its rows, each with the interval in which it was valid.

Pure ``DataFrame -> DataFrame`` functions. The versions of a row follow each other in the order of positions. Each event
that writes a row opens a version, whether or not it changed a value. The next event of the key (a delete is one) or a
TRUNCATE closes it. Where only some columns are tracked, a version is a run of events between which none of them
changes: it begins with the first of these events, and shows the row as the last one left it.

The times of a source may go back while its positions go on. Even then, no version begins before the previous one has
ended, and none ends before it began: at any time a row has at most one version.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.folding import actions, log_places
from tidemark.folding.captured import Captured
from tidemark.folding.frames import key_names, value_numbers
from tidemark.folding.log_places import LOG_PLACE
from tidemark.tables.plan import Plan
from tidemark.values.image_reader import field

KEPT = (*actions.KEPT, "captured_at", "landed_at")
"""Columns of the change log that actions keep where versions are made from them."""


def event_time() -> Expression:
    """Return when an event of the change log took place, as well as this is known; never null."""
    return F.coalesce("committed_at", "captured_at", "landed_at")


def events(acted: DataFrame, plan: Plan) -> DataFrame:
    """Return one row for each key and position: of copies of an event at one position, the one that landed first.

    Copies at other positions are left out.

    Args:
        acted: the result of ``actions.actions`` with ``KEPT``, for row changes before and after TRUNCATEs alike;
            actions that are set aside are ignored. Where updates arrive as two events, of
            ``update_halves.settled``.
        plan: the table's plan, with hard deletes.

    Returns:
        ``k0 .. kn``, ``position``, ``at`` (when the event took place), ``committed_at``, ``deleted``, ``c<n>``, and
        with partial images ``w<n>``: whether the event wrote the column.
    """
    keys = key_names(plan)
    acted = acted.where(F.col("set_aside").isNull())
    if plan.found.splits:
        acted = acted.where(~F.col("idle"))
    cells = [field(number) for number in value_numbers(plan)]
    written, captured = _written(plan), Captured(plan)
    timed = acted.withColumns({"at": event_time(), **{f"w{number}": captured.writes(number) for number in written}})
    names = ["at", "committed_at", "deleted", *cells, *(f"w{number}" for number in written)]
    first = F.struct(-F.col("batch"), "file", "place", "row")
    if plan.has_deliveries:
        timed = timed.repartition(*keys)
    once = timed.groupBy(*keys, "position").agg(F.max_by(F.struct(*names), first).alias("event"))
    found = once.select(*keys, "position", "event.*")
    return (
        _without_copies(found, keys, [*cells, *(f"w{number}" for number in written)]) if plan.has_deliveries else found
    )


def _without_copies(events: DataFrame, keys: list[str], cells: list[str]) -> DataFrame:
    """Leave out the events that were sent again.

    Of equal events at one place of the log, the first stays. The last event of the place stays in any case, because the
    published row has its position. If it is a copy of the newest of the others, it stands for it; else the row changed
    to and fro within a transaction.
    """
    place = [*keys, LOG_PLACE]
    of_place = Window.partitionBy(*place).orderBy("position")
    alike = Window.partitionBy(*place, "content").orderBy("position")
    placed = events.withColumns(
        {LOG_PLACE: log_places.log_place(), "content": log_places.content(["deleted", *cells])}
    ).withColumns({"is_first": F.row_number().over(alike) == 1, "is_last": F.lead("position").over(of_place).isNull()})
    onward = of_place.rowsBetween(1, Window.unboundedFollowing)
    whole_place = of_place.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    placed = placed.withColumns(
        {
            "followed": F.coalesce(F.max("is_first").over(onward), F.lit(False)),
            "end": F.last("content").over(whole_place),
        }
    )
    stays = F.col("is_last") | (F.col("is_first") & (F.col("followed") | (F.col("content") != F.col("end"))))
    alone = F.col("content").isNull()
    return placed.where(alone | stays).select(*events.columns)


def _written(plan: Plan) -> list[int]:
    """Return the numbers of the columns that an event may leave unwritten: none without partial images."""
    return value_numbers(plan) if plan.found.partial else []


def truncates(changes: DataFrame) -> DataFrame:
    """Return all TRUNCATEs in one row for each shard.

    Args:
        changes: TRUNCATEs of the change log, with their ``shard``, which is empty for a table of its own.

    Returns:
        ``shard``; ``truncates``: array of structs of ``position`` and ``at``, in the order of position.
    """
    first = F.struct(-F.col("batch"), "file", "place", "row")
    once = changes.groupBy("shard", "position").agg(F.max_by(event_time(), first).alias("at"))
    return once.groupBy("shard").agg(F.array_sort(F.collect_list(F.struct("position", "at"))).alias("truncates"))


def versions(events: DataFrame, plan: Plan, emptied: DataFrame | None) -> DataFrame:
    """Fold events to the versions of each row.

    Args:
        events: the result of ``events``. Where a stored history is continued, with ``stored`` (whether the row is a
            version of the history table; ``at`` is then its ``valid_from``) and ``floor`` (when the key's last version
            ended, or null).
        plan: the table's plan.
        emptied: the result of ``truncates``, if there are any.

    Returns:
        ``k0 .. kn``, ``position``, ``committed_at``, ``c<n>``, ``valid_from``, ``valid_to``, ``stored``; one row for
        each event that is not a delete. Where only some columns are tracked, one row for each run of such events, with
        the position of the last, and ``gone``: whether the row is a stored version that is the beginning of a run now.
    """
    keys, rows = key_names(plan), events
    for name, missing in (("stored", F.lit(False)), ("floor", F.lit(None).cast("timestamp"))):
        rows = rows if name in rows.columns else rows.withColumn(name, missing)
    # The versions between two TRUNCATEs are independent of those before and after: no row survives a TRUNCATE.
    if emptied is None:
        life, over = keys, F.lit(None).cast("timestamp")
    else:
        behind = F.filter("truncates", lambda truncate: truncate["position"] > F.col("position"))
        shard = F.col(keys[-1]) if plan.found.shards else F.lit("")
        rows = rows.withColumn("shard", shard).join(F.broadcast(emptied), "shard", "left")
        rows = rows.withColumn("ends", F.get(behind, F.lit(0))).drop("truncates", "shard")
        rows = rows.withColumns({"ends": F.col("ends.position"), "over": F.col("ends.at")})
        life, over = [*keys, "ends"], F.col("over")
    onward = Window.partitionBy(*life).orderBy("position")
    steps: dict[str, Expression] = {}
    so_far = onward.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    for number in _written(plan):
        cell = F.when(F.col(f"w{number}"), F.struct(field(number)))
        steps[f"l{number}"] = F.last(cell, ignorenulls=True).over(so_far)
    apart: list[str] = []
    if plan.tracked is not None:
        filled = rows.withColumns(steps) if steps else rows  # Spark Connect takes no empty list
        rows, steps, apart = _runs(filled, plan, life), {}, ["gone"]
        onward = Window.partitionBy(*life, *apart).orderBy("position")
    steps["closed"] = F.coalesce(F.lead("at").over(onward), over)
    opened = rows.withColumns(steps).where(~F.col("deleted"))
    before = Window.partitionBy(*keys, *apart).orderBy("position").rowsBetween(Window.unboundedPreceding, -1)
    opened = opened.withColumn("reached", F.max(F.greatest("at", "closed")).over(before))
    opened = opened.withColumn("valid_from", F.greatest("at", "reached", "floor"))
    ended = F.when(F.col("closed").isNotNull(), F.greatest("valid_from", "closed"))
    cells = [_filled(number, plan).alias(field(number)) for number in value_numbers(plan)]
    interval: list[Expression | str] = ["valid_from", ended.alias("valid_to"), "stored"]
    return opened.select(*keys, "position", "committed_at", *cells, *interval, *apart)


def _filled(number: int, plan: Plan) -> Expression:
    """Return a column's value after an event, also where the event does not write it."""
    return F.col(f"l{number}.{field(number)}") if number in _written(plan) else F.col(field(number))


def _runs(rows: DataFrame, plan: Plan, life: list[str]) -> DataFrame:
    """Return the last event of each run between which no tracked column changes, with the time of the first.

    Deletes stay as they are. A stored version that a run goes on from comes with ``gone``.
    """
    cells = [_filled(n, plan) for n in value_numbers(plan) if plan.columns[n].name in (plan.tracked or ())]
    onward = Window.partitionBy(*life).orderBy("position")
    in_runs = rows.withColumn("tracked", F.struct(F.col("deleted"), *cells))
    begins = F.col("deleted") | ~F.col("tracked").eqNullSafe(F.lag("tracked").over(onward))
    in_runs = in_runs.withColumn("begins", begins).withColumn("run", F.count_if("begins").over(onward))
    of_run = Window.partitionBy(*life, "run").orderBy("position")
    first = F.first("at").over(of_run.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    in_runs = in_runs.withColumns({"at": first, "gone": F.lead("position").over(of_run).isNotNull()})
    return in_runs.where(~F.col("gone") | F.col("stored")).drop("tracked", "begins", "run")
