"""Build the candidate of a history table: close the versions that new events end, open the versions that they begin.

Two Spark actions for the usual run: one asks which keys have late events, the merge writes. Keys with a late event are
folded again from the whole change log; so is the table when a TRUNCATE comes late, or its history was not kept so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import history_tables, merging, moved_rows, truncation
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.event_log import EventLog, Events
from tidemark.compaction.run import Run
from tidemark.compaction.state import State
from tidemark.ddl.history import Emptying
from tidemark.events import Operation
from tidemark.folding import actions, frames, log_places, versions
from tidemark.folding.truncates import Truncates
from tidemark.spark.session import checkpointed, named
from tidemark.spark.tuning import gathered
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import COMMITTED_AT, IS_CURRENT, POSITION, VALID_FROM, VALID_TO
from tidemark.text import quoted
from tidemark.values.image_reader import field


def build(prepared: Prepared, events: Events, views: ExitStack) -> None:
    """Build the candidate of a table's history on the branch of the cut.

    Args:
        prepared: the table whose rows have versions.
        events: its new events, with halves of updates that came before, and the plan to read them by.
        views: keeps the names that frames are read by until the table is built.
    """
    _build(prepared, events, views)
    history_tables.record_tracking(prepared.run, prepared.plan)


def _build(prepared: Prepared, events: Events, views: ExitStack) -> None:
    run = prepared.run
    on = history_tables.goes_on(run, prepared.plan)
    # The versions of a row end where it is deleted, however the table shows it.
    plan = history_tables.prepare(run, replace(prepared.plan, soft=False), on=on)
    history = _History(run=run, plan=plan, log=prepared.log, state=prepared.state)
    read, new = replace(events.plan, soft=False), events.rows
    emptied = history.emptied(new, plan.found.truncates, truncation.new_emptyings(plan.found))
    if not on or (emptied is not None and history.is_truncated_late(emptied)):
        history.merge(history.with_gone(history.folded(None), None, views), anywhere=True)
        return
    history.fill()
    acted = checkpointed(versions.events(gathered(_actions(history.log, new, read)), read))
    placed = checkpointed(history.placed(acted))
    late, reborn = _late_and_reborn(placed)
    usual = history.onward(placed, everywhere=emptied is not None, reborn=reborn > 0, whole=late > 0)
    changed = ~F.col("stored") | F.col("valid_to").isNotNull()
    rows = versions.versions(usual, plan, emptied).where(changed if plan.tracked is None else changed | F.col("gone"))
    if late:
        again = placed.where("late").groupBy(*history.keys).agg(F.max(F.greatest("seen", "position")).alias("newest"))
        again = named(again, views)
        refolded = history.with_gone(history.folded(again), again, views)
        rows = named(rows, views).unionByName(refolded, allowMissingColumns=True)
    history.merge(named(rows, views), anywhere=late > 0)


def _actions(log: EventLog, changes: DataFrame, plan: Plan) -> DataFrame:
    rows = changes.where(F.col("operation") != Operation.TRUNCATE)
    return moved_rows.acted(log, Events(plan, rows), None, versions.KEPT)


def _late_and_reborn(placed: DataFrame) -> tuple[int, int]:
    """Return how many events are of keys with a late event, and how many of keys that begin again."""
    row = placed.agg(F.count_if("late"), F.count_if("reborn")).first()
    return (int(row[0]), int(row[1])) if row else (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """The history table on the branch of the cut."""

    run: Run
    plan: Plan
    log: EventLog
    state: State
    """Of the table, as it was before the cut."""

    @property
    def keys(self) -> list[str]:
        """Names of the key's columns in frames."""
        return frames.key_names(self.plan)

    @property
    def branch(self) -> str:
        """Name of the candidate branch in Spark."""
        return self.run.lake.spark_name(self.plan.versions, self.run.cut.branch)

    def is_truncated_late(self, emptied: DataFrame) -> bool:
        """Return whether anything known is newer than the first of the new TRUNCATEs."""
        shard = F.col(self.keys[-1]) if self.plan.found.shards else F.lit("")
        known = self._keyed(POSITION).select(shard.alias("shard"), POSITION)
        known = known.unionAll(self.state.rows().select(shard, "position"))
        known = known.groupBy("shard").agg(F.max(POSITION).alias("known"))
        first = emptied.select("shard", F.get("truncates", F.lit(0))["position"].alias("first"))
        return not first.join(known, "shard").where(F.col("first") < F.col("known")).isEmpty()

    def folded(self, keys: DataFrame | None) -> DataFrame:
        """Return versions from the whole change log, of some keys up to their ``newest`` position, or of all."""
        whole, changes = self.log.whole()
        plan = replace(whole, soft=False)
        events = versions.events(_actions(self.log, changes, plan), plan)
        if keys is not None:
            # What is newer than all that is known of the key was set aside when it came, and is so still.
            events = events.join(F.broadcast(keys), self.keys)
            events = events.where(F.col("position") <= F.col("newest")).drop("newest")
        emptied = self.emptied(changes, plan.found.truncates, plan.found.history.emptyings)
        return versions.versions(events, plan, emptied)

    def with_gone(self, rows: DataFrame, keys: DataFrame | None, views: ExitStack) -> DataFrame:
        """Return versions from the whole change log, and those that the table holds and that are none any more.

        Their events proved to be copies. Where only some columns are tracked, their events belong to other versions.

        Args:
            rows: ``folded``.
            keys: the keys that were folded; None for all.
            views: keeps the names that frames are read by until the table is built.
        """
        every = self.plan.tracked is not None or history_tables.records_tracking(self.run, self.plan)
        if not (self.plan.has_deliveries or every):
            return rows
        rows = named(checkpointed(rows), views)
        stored = self._keyed(POSITION)
        if keys is not None:
            stored = stored.join(self.run.small_side(keys, self.plan.versions), self.keys, "left_semi")
        stored = stored.select(*self.keys, F.col(POSITION).alias("position"))
        if not every:
            stored = stored.where(log_places.has_delivery())
        gone = stored.join(rows, [*self.keys, "position"], "left_anti").withColumn("gone", F.lit(True))
        return rows.drop("gone").unionByName(gone, allowMissingColumns=True)

    def emptied(self, changes: DataFrame, truncates: int, emptyings: Sequence[Emptying]) -> DataFrame | None:
        """Return the TRUNCATEs and statements that empty the table, in a row for each shard; None for none."""
        if not (truncates or emptyings):
            return None
        origin = ("batch", "file", "place", "row")
        times = ("committed_at", "captured_at", "landed_at")
        shard = (F.col("object") if self.plan.found.shards else F.lit("")).alias("shard")
        found = changes.where(F.col("operation") == Operation.TRUNCATE).select(shard, "position", *origin, *times)
        if emptyings:
            rows = [(each.shard, each.position, each.batch, each.at) for each in emptyings]
            stated = self.run.session.createDataFrame(rows, "shard string, position string, batch int, at bigint")
            nothing = {name: F.lit(None).cast(found.schema[name].dataType) for name in (*origin[1:], *times[:2])}
            stated = stated.withColumns({**nothing, "landed_at": F.timestamp_micros("at")})
            found = found.unionByName(stated.select(*found.columns))
        return versions.truncates(found)

    def fill(self) -> None:
        """Give the versions that are there the defaults of columns that were added, as those from the change log have.

        Commits to the branch, so before anything that is kept in memory is read from it.
        """
        for column, default in self.plan.new_defaults():
            older = self._keyed(F.col(POSITION).alias("position")).where(F.col("position") < default.position)
            values = {column.name: actions.default_value(self.plan, column, default.fill)}
            merging.fill(older.drop(IS_CURRENT), self.plan, self.branch, values)

    def _stored(self) -> DataFrame:
        """Return the versions in the branch, under the names that their columns will have when the cut is published."""
        return frames.of_today(self.run.read(self.plan.versions, self.run.cut.branch), self.plan)

    def _keyed(self, *names: str | Expression) -> DataFrame:
        """Return rows of the history table, its key under the names that frames have."""
        return self._stored().select(*frames.key_columns(self.plan), IS_CURRENT, *names)

    def placed(self, events: DataFrame) -> DataFrame:
        """Return events with what is known of their key.

        ``seen``, the newest position known of it; ``late``, whether any of its events is older than what is known;
        ``reborn``, whether it had versions, maybe, and has none now.
        """
        plan, keys = self.plan, self.keys
        first = events.groupBy(*keys).agg(F.min("position").alias("first"))
        touched = first.select(*keys)
        near = self.run.small_side(touched, plan.versions)
        current = self._keyed(POSITION).where(IS_CURRENT).join(near, keys, "left_semi")
        known = first.join(current.select(*keys, F.col(POSITION).alias("stands_at")), keys, "left")
        died_at = over = F.lit(None).cast("string")
        if "tombstone" in self.state.kinds:
            near = self.run.small_side(touched, plan.state)
            dead = self.state.tombstones().join(near, keys, "left_semi")
            known = known.join(dead.groupBy(*keys).agg(F.max("position").alias("died_at")), keys, "left")
            died_at = F.col("died_at")
        if self.state.truncates:
            over = Truncates(self.state.truncates).position(plan)
        known = known.select(
            *keys,
            "first",
            F.greatest("stands_at", died_at, over).alias("seen"),
            (F.col("stands_at").isNull() & (died_at.isNotNull() | over.isNotNull())).alias("reborn"),
        )
        # At the place of what is known, an event may be a copy, or prove that another one is.
        below = F.when(log_places.has_delivery("first"), log_places.log_place("first") <= F.col("seen"))
        late = F.coalesce(below, F.col("first") < F.col("seen"), F.lit(False))
        return events.join(known.select(*keys, "seen", "reborn", late.alias("late")), keys)

    def onward(self, placed: DataFrame, *, everywhere: bool, reborn: bool, whole: bool) -> DataFrame:
        """Return new events of keys without late ones, and the versions that they may close.

        Args:
            placed: ``placed``.
            everywhere: whether there is a TRUNCATE, which closes the versions of keys without an event too.
            reborn: whether keys begin again that had versions before.
            whole: whether the closed versions are written again with their values.
        """
        plan, keys = self.plan, self.keys
        touched = placed.groupBy(*keys).agg(F.first("late").alias("late"))
        mine = placed.where(~F.col("late") & (F.col("seen").isNull() | (F.col("position") > F.col("seen"))))
        mine = mine.drop("seen", "reborn", "late").withColumn("stored", F.lit(False))
        cells = [F.col(quoted(plan.columns[n].name)).alias(field(n)) for n in frames.value_numbers(plan)]
        if not (whole or plan.found.partial or plan.tracked is not None):
            cells = [
                F.lit(None).cast(mine.schema[field(n)].dataType).alias(field(n)) for n in frames.value_numbers(plan)
            ]
        current = (
            self._stored()
            .where(IS_CURRENT)
            .select(
                *frames.key_columns(plan),
                F.col(POSITION).alias("position"),
                F.col(VALID_FROM).alias("at"),
                F.col(COMMITTED_AT).alias("committed_at"),
                F.lit(False).alias("deleted"),
                *cells,
                *(F.lit(True).alias(f"w{n}") for n in frames.value_numbers(plan) if plan.found.partial),
                F.lit(True).alias("stored"),
            )
        )
        if everywhere:
            current = current.join(self.run.small_side(touched.where("late"), plan.versions), keys, "left_anti")
        else:
            near = self.run.small_side(touched.where(~F.col("late")), plan.versions)
            current = current.join(near, keys, "left_semi")
        rows = mine.unionByName(current)
        if not reborn:
            return rows
        near = self.run.small_side(touched, plan.versions)
        ended = self._keyed(VALID_TO).where(~F.col(IS_CURRENT)).join(near, keys, "left_semi")
        floors = ended.groupBy(*keys).agg(F.max(VALID_TO).alias("floor"))
        return rows.join(floors, keys, "left")

    def merge(self, rows: DataFrame, *, anywhere: bool) -> None:
        """Write versions into the branch; ``anywhere``: those that end already may change as well."""
        merging.write_versions(rows, self.plan, self.branch, anywhere=anywhere)
