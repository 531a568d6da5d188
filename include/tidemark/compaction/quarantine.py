"""The quarantine of compact: messages whose events cannot be taken in, with bytes, reason and place."""

from __future__ import annotations

from functools import reduce

from pyiceberg.expressions import And, BooleanExpression, Or
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import misfit_details
from tidemark.compaction.merging import only_after
from tidemark.compaction.run import Run
from tidemark.lake import log_tables, names
from tidemark.lake.filters import above, among, not_null
from tidemark.lake.log_schemas import QUARANTINE
from tidemark.lake.retention import gone_up_to
from tidemark.tables import reasons
from tidemark.tables.plan import Plan


def set_aside(run: Run, plan: Plan, acted: DataFrame) -> dict[str, int]:
    """Quarantine the messages whose events take no part in a table, and return how many events have each reason.

    Args:
        run: the run.
        plan: the table's plan.
        acted: ``folding.actions.actions`` of its events.
    """
    aside = acted.where(F.col("set_aside").isNotNull() & ~F.col("moved_away"))
    counts = {row["set_aside"]: int(row["count"]) for row in aside.groupBy("set_aside").count().collect()}
    if counts.keys() - {reasons.TRUNCATED}:
        put(run, plan, aside)
    return counts


def leave_attempts(run: Run) -> None:
    """Take out of the quarantine what compact put there for cuts that were never published.

    Their events are judged anew, and may be taken in now, or be those of another name.
    """
    table = run.lake.find(names.quarantine(run.source.source))
    if table is None:
        return
    tasks = table.scan(row_filter=And(not_null("object"), above("batch", run.standing.lowest))).plan_files()
    fields = [field.name for field in table.spec().fields]
    partitions = [task.file.partition for task in tasks]
    places = {(each[fields.index("object")], each[fields.index("batch")]) for each in partitions}
    by_standing: dict[int, set[str]] = {}
    for name, batch in places:
        if batch > (after := run.standing.batch_of(name)):
            by_standing.setdefault(after, set()).add(name)
    if by_standing:
        aborted: list[BooleanExpression] = [
            And(among("object", some), above("batch", after)) for after, some in by_standing.items()
        ]
        run.lake.append_files(table, [], {}, instead_of=reduce(Or, aborted))


def put(run: Run, plan: Plan, aside: DataFrame) -> None:
    """Put messages into ``quarantine.<source>``, with their bytes from ``raw``; doing it again changes nothing.

    Args:
        run: the run.
        plan: the table's plan; messages in quarantine stay for the batches that the table stands at already, and
            messages that an aborted attempt put there are replaced.
        aside: ``batch``, ``file``, ``place``, ``row``, ``set_aside``, ``detail``: one row an event. Events below a
            TRUNCATE are superseded, not wrong: they are passed over.
    """
    lake, source, found = run.lake, run.source.source, plan.found
    wrong = aside.where(F.col("set_aside") != reasons.TRUNCATED)
    wrong = wrong.select("batch", "file", "place", "row", "set_aside", "detail")
    bad = misfit_details.described(run, plan, wrong).select(
        "batch", "file", "place", F.col("set_aside").alias("reason"), "detail", F.lit(found.object).alias("object")
    )
    after = min(found.published_batch, found.withheld.since - 1) if found.withheld.released else found.published_batch
    identifier = names.quarantine(source)
    table = log_tables.quarantine(lake, source)
    # A message that was retried lies in raw with the batch that it landed with.
    batches = run.ledger.batches(above("batch", after))
    retried = {row.batch: row.retry_of for row in batches if row.retry_of is not None}
    log_tables.raw(lake, source)  # of an earlier version, it gets the columns that it lacks
    raw = run.read(names.raw(source))
    raw = raw.where((F.col("batch") > after) | F.col("batch").isin(list(retried.values())))
    own = [name for name in QUARANTINE.names if name not in {"batch", "reason", "detail", "object"}]
    landed = F.when(F.lit(False), F.col("batch"))
    for batch, landed_with in retried.items():
        landed = landed.when(F.col("batch") == batch, landed_with)
    once = bad.dropDuplicates(["batch", "file", "place", "reason"])
    once = once.withColumn("landed_with", landed.otherwise(F.col("batch")))
    bytes_of = raw.select(F.col("batch").alias("landed_with"), *own)
    rows = F.broadcast(once).join(bytes_of, ["landed_with", "file", "place"])
    rows = rows.select(*QUARANTINE.names)
    if gone := gone_up_to(lake.find(names.raw(source))):
        # Messages that are past their time have no bytes any more. Their events are in quarantine all the same.
        lost = [name for name in own if name not in once.columns]
        bare = once.where(F.col("landed_with") <= gone)
        nulls = {name: F.lit(None).cast(raw.schema[name].dataType) for name in lost}
        rows = rows.unionByName(bare.withColumns(nulls).select(*QUARANTINE.names))
    if found.published_batch > after:
        earlier = run.read(identifier).where(F.col("batch").between(after + 1, found.published_batch))
        written = rows.select("batch", "reason", "object").distinct()
        rows = rows.unionByName(earlier.join(written, ["batch", "reason", "object"], "left_semi"))
        rows = rows.dropDuplicates(["batch", "file", "place", "reason", "object"])
    # Dynamic overwrite replaces the partitions (batch, reason and table) that an aborted attempt may have written.
    only_after(rows.writeTo(lake.spark_name(identifier)), table).overwritePartitions()
    table.refresh()
