"""The values that a row lacks which moved to another key: looked up in the change log (``folding.row_moves``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyiceberg.expressions import And
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import truncation
from tidemark.compaction.event_log import EventLog, Events
from tidemark.events import Operation
from tidemark.folding import actions, frames, keyed, row_moves, update_halves
from tidemark.folding.truncates import Truncates
from tidemark.lake import names
from tidemark.lake.filters import above, among, equals
from tidemark.lake.statistics import lower_bound
from tidemark.spark.session import checkpointed
from tidemark.tables.plan import Plan
from tidemark.values.image_reader import field

_MOST_MOVES = 8
"""How often a row may have moved since its value was written; beyond, the value counts as unknown."""


def acted(log: EventLog, events: Events, truncated: Truncates | None, kept: Sequence[str] = actions.KEPT) -> DataFrame:
    """Return ``folding.actions.actions`` of events, with the values that rows lack which moved to another key.

    Where updates arrive as two events, halves from earlier runs are not among them: ``update_halves.settled``.

    Args:
        log: the change log of the table.
        events: row changes, and the plan to read them by.
        truncated: as ``actions`` takes it.
        kept: columns of the change log that stay.
    """
    plan, rows = events
    if plan.found.splits:
        kept = [*kept, *update_halves.earlier_column(rows)]
        return update_halves.settled(actions.actions(rows, plan, truncated, kept), plan)
    if not plan.found.moves:
        return actions.actions(rows, plan, truncated, kept)
    read = actions.actions(row_moves.marked(rows), plan, truncated, [*kept, row_moves.LACKS, row_moves.SPOT])
    found = _found(log, read)
    if found is not None:
        read = row_moves.filled(read, found, plan)
    return read.drop(row_moves.LACKS, row_moves.SPOT)


def _found(log: EventLog, read: DataFrame) -> DataFrame | None:
    """Return the values that INSERTs with placeholders lack; None if there are no such INSERTs."""
    columns = ("position", "set_aside", row_moves.LACKS, row_moves.SPOT)
    lacking = checkpointed(read.where(row_moves.LACKS).select(*columns))
    if lacking.isEmpty():
        return None
    every, pairs, plan = _everything(log)
    truncates = truncation.of_whole_log(plan.found, log.whole().rows)
    wanted = checkpointed(row_moves.lookups(lacking, pairs, plan))
    rounds = []
    for depth in range(_MOST_MOVES):
        events = row_moves.events_of(every, wanted, plan, truncates)
        values = checkpointed(_looked_up_values(events, plan).withColumn("depth", F.lit(depth)))
        rounds.append(values)
        missing = wanted.join(values.where(~row_moves.is_complete(plan)).select("lookup", "begun"), "lookup")
        wanted = checkpointed(row_moves.behind(missing, pairs, plan))
        if wanted.isEmpty():
            break
    return checkpointed(_nearest(reduce(DataFrame.unionByName, rounds), plan))


def _everything(log: EventLog, more: Sequence[str] = ()) -> tuple[DataFrame, row_moves.Moves, Plan]:
    """Return the actions of the whole change log, the pairs in it, and the plan that they were read by.

    Args:
        log: the change log of the table.
        more: columns of the change log that the actions keep beside the usual ones.
    """
    plan, changes = log.whole()
    # As with soft deletes, a deleted row keeps its values, and takes the values that its delete has.
    plan = replace(plan, soft=True)
    changes = row_moves.marked(changes.where(F.col("operation") != Operation.TRUNCATE))
    kept = [*actions.KEPT, row_moves.LACKS, row_moves.SPOT]
    every = actions.actions(changes, plan, None, [*kept, *more])
    pairs = row_moves.pairs(actions.actions(row_moves.near(changes), plan, None, kept), plan)
    return every, row_moves.Moves(checkpointed(pairs.rows)), plan


def are_outdated(log: EventLog) -> bool:
    """Return whether new events are of rows before they moved, and the moved rows were written without them.

    The DELETE of a pair may come after its INSERT, which was set aside then. An event may have been held, because its
    transaction was open. A TRUNCATE from before the move ends what was taken for the row's life. The table is built
    from its whole change log in all of these cases.
    """
    found = log.plan.found
    if not (found.moves_ever and found.goes_on):
        return False
    truncated = truncation.first_new(log)
    if _are_all_newer(log, truncated):
        return False
    every, pairs, plan = _everything(log, ["transaction_id"])
    released = F.col("transaction_id").isin(*sorted(found.withheld.released))
    taken = (F.col("batch") <= found.published_batch) & ~F.coalesce(released, F.lit(False))
    if truncated is not None and not row_moves.moved_after(pairs, truncated, found.published_batch).isEmpty():
        return True
    return not row_moves.late(every, pairs, plan, found.published_batch, taken).isEmpty()


def _are_all_newer(log: EventLog, truncated: str | None) -> bool:
    """Return whether all new events are newer than every row that has moved so far, as the ledger and statistics say.

    So it is in a stream without late events, and the change log is not read then.

    Args:
        log: the change log of the table.
        truncated: position of the first new TRUNCATE, or of another event that empties the table.
    """
    found, run = log.plan.found, log.run
    if found.withheld.released:
        return False
    of_table = among("object", found.objects)
    moved = run.ledger.contents(of_table, equals("operation", Operation.INSERT), equals("partial", value=True))
    batches = {row.batch for row in moved if row.batch <= found.published_batch}
    newest = {row.batch: row.newest for row in run.ledger.spans(of_table) if row.batch in batches}
    changelog = run.lake.load(names.change_log(run.source.source))
    files = changelog.scan(row_filter=And(of_table, above("batch", found.published_batch))).plan_files()
    oldest = lower_bound(changelog, (task.file for task in files), "position")
    last = max(newest.values(), default="")
    is_newer = truncated is None or truncated > last
    return newest.keys() == batches and oldest is not None and oldest > last and is_newer


def _looked_up_values(events: DataFrame, plan: Plan) -> DataFrame:
    """Fold the events of each look-up, and return the values that they lead to."""
    folded = keyed.fold(events, plan, apart=["lookup", "begun"])
    return folded.select("lookup", "begun", *(F.col(field(n)).alias(f"f{n}") for n in frames.value_numbers(plan)))


def _nearest(rounds: DataFrame, plan: Plan) -> DataFrame:
    """Return of each lookup the values that were found on the shortest way back."""
    values = [
        F.min_by(f"f{n}", F.when(F.col(f"f{n}").isNotNull(), F.col("depth"))).alias(f"f{n}")
        for n in frames.value_numbers(plan)
    ]
    return rounds.groupBy("lookup").agg(*values)
