"""Building the candidate of a history table: close the versions that new events end, open those that they begin.

Two Spark actions for the usual run: one asks which keys have late events, the merge writes. Keys with a late event are
folded again from the whole change log; so is the table when a TRUNCATE comes late, or its history was not kept so far.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from pyiceberg.table import Table
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import merging
from tidemark.ddl.history import Emptying
from tidemark.events import Operation
from tidemark.folding import actions, frames, update_halves, versions
from tidemark.lake import pending_schema, properties
from tidemark.lake.branches import CUT_TAG, branch_from_main, cut_tags
from tidemark.lake.lake import Lake
from tidemark.lake.properties import STATE_PROPERTIES
from tidemark.spark.session import checkpointed
from tidemark.tables import schemas
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import COMMITTED_AT, IS_CURRENT, POSITION, VALID_FROM, VALID_TO
from tidemark.text import quoted
from tidemark.values.table_columns import field

WholeLog = Callable[[], tuple[Plan, DataFrame]]
"""All events that the table is to hold, and the plan with what they tell."""

Named = Callable[[DataFrame], DataFrame]
"""The same frame by name, which keeps plans shallow."""

_PROPERTIES = {
    **STATE_PROPERTIES,
    # A version that ends goes to the other partition.
    "write.spark.fanout.enabled": "true",
}


class HistoryCandidate:
    """One history table's way from new events to a branch."""

    def __init__(self, session: SparkSession, lake: Lake, source: str, plan: Plan, branch: str) -> None:
        self._session = session
        self._lake = lake
        self._source = source
        # The versions of a row end where it is deleted, however the table shows it.
        self._plan = replace(plan, soft=False)
        self._branch = branch
        self._keys = frames.key_names(plan)

    def build(self, events: tuple[Plan, DataFrame], emptyings: Sequence[Emptying], log: WholeLog, named: Named) -> None:
        """Build the candidate.

        Args:
            events: the table's new events, with halves of updates that came before, and the plan to read them by.
            emptyings: new statements that emptied the table.
            log: all events, for what has to be folded again.
            named: gives the same frame, by a name where it needs one.
        """
        self._prepared_table()
        read, new = replace(events[0], soft=False), events[1]
        emptied = self._emptied(new, self._plan.found.truncates, emptyings)
        if not self._goes_on() or (emptied is not None and self._truncated_late(emptied)):
            self._merge(self._folded(log, None), anywhere=True)
            return
        self._fill()
        told = checkpointed(versions.events(self._actions(new, read), read))
        placed = checkpointed(self._placed(told))
        late, reborn = self._late_and_reborn(placed)
        usual = self._onward(placed, everywhere=emptied is not None, reborn=reborn > 0, whole=late > 0)
        rows = versions.versions(usual, self._plan, emptied).where(~F.col("stored") | F.col("valid_to").isNotNull())
        if late:
            again = placed.where("late").groupBy(*self._keys).agg(F.max(F.greatest("seen", "position")).alias("newest"))
            rows = named(rows).unionByName(self._folded(log, named(again)))
        self._merge(named(rows), anywhere=late > 0)

    def _prepared_table(self) -> None:
        plan = self._plan
        key = {properties.KEY_PROPERTY: json.dumps(plan.key)}
        own = {properties.OBJECT_PROPERTY: plan.found.object, properties.SOURCE_PROPERTY: self._source}
        known = self._lake.find(plan.versions)
        if known is None or not self._goes_on():
            # It begins with the names of today.
            self._plan = plan = replace(plan, today={})
        table = self._lake.ensure(
            plan.versions, schemas.history_schema(plan), {**_PROPERTIES, **key, **own}, partition_by=[IS_CURRENT]
        )
        table = schemas.evolve(table, plan)
        cut = int(self._branch.removeprefix("candidate_"))
        branch_from_main(pending_schema.plan_pending(table, cut, plan.today, key), self._branch)

    def _goes_on(self) -> bool:
        """Whether the history was published with the table's last cut: it was not if it was not asked for then."""
        cut = _last_cut(self._lake.load(self._plan.target))
        return cut is not None and cut in self._lake.load(self._plan.versions).refs()

    def _truncated_late(self, emptied: DataFrame) -> bool:
        """Whether anything known is newer than the first of the new TRUNCATEs."""
        known = self._stored().select(POSITION).unionAll(self._state().select("position")).agg(F.max(POSITION))
        first = emptied.select(F.get("truncates", F.lit(0))["position"].alias("first"))
        row = first.crossJoin(known.toDF("known")).select(F.col("first") < F.col("known")).first()
        return bool(row and row[0])

    def _actions(self, changes: DataFrame, plan: Plan) -> DataFrame:
        rows = changes.where(F.col("operation") != Operation.TRUNCATE)
        return actions.actions(rows, plan, None, [*versions.KEPT, *update_halves.earlier_column(rows)])

    def _folded(self, log: WholeLog, keys: DataFrame | None) -> DataFrame:
        """Versions from the whole change log, of some keys up to their ``newest`` position, or of all."""
        whole, changes = log()
        plan = replace(whole, soft=False)
        told = versions.events(self._actions(changes, plan), plan)
        if keys is not None:
            # What is newer than all that is known of the key was set aside when it came, and is so still.
            told = told.join(F.broadcast(keys), self._keys).where(F.col("position") <= F.col("newest")).drop("newest")
        emptied = self._emptied(changes, plan.found.truncates, plan.found.history.emptyings)
        return versions.versions(told, plan, emptied)

    def _emptied(self, changes: DataFrame, truncates: int, emptyings: Sequence[Emptying]) -> DataFrame | None:
        """What empties the table, in one row, if anything does: TRUNCATEs, and statements to the same end."""
        if not (truncates or emptyings):
            return None
        origin = ("batch", "file", "place", "row")
        times = ("committed_at", "captured_at", "landed_at")
        told = _truncates(changes).select("position", *origin, *times)
        if emptyings:
            rows = [(each.position, each.batch, each.at) for each in emptyings]
            stated = self._session.createDataFrame(rows, "position string, batch int, at bigint")
            nothing = {name: F.lit(None).cast(told.schema[name].dataType) for name in (*origin[1:], *times[:2])}
            stated = stated.withColumns({**nothing, "landed_at": F.timestamp_micros("at")})
            told = told.unionByName(stated.select(*told.columns))
        return versions.truncates(told)

    def _fill(self) -> None:
        """Give the versions that are there the defaults of columns that were added, as those from the change log have.

        Commits to the branch, so before anything that is kept in memory is read from it.
        """
        plan = self._plan
        for column, told in plan.new_defaults():
            older = self._keyed(F.col(POSITION).alias("position")).where(F.col("position") < told.position)
            values = {column.name: actions.default_value(column, told.text)}
            merging.fill(older.drop(IS_CURRENT), plan, self._spark_branch(), values)

    def _spark_branch(self) -> str:
        return self._lake.spark_name(self._plan.versions, self._branch)

    def _stored(self) -> DataFrame:
        """The versions in the branch, under the names that their columns will have when the cut is published."""
        return frames.of_today(self._session.table(self._spark_branch()), self._plan)

    def _keyed(self, *names: str | Expression) -> DataFrame:
        """Rows of the history table, its key under the names that frames have."""
        return self._stored().select(*frames.key_columns(self._plan), IS_CURRENT, *names)

    def _state(self) -> DataFrame:
        return self._session.table(self._lake.spark_name(self._plan.state))

    def _placed(self, told: DataFrame) -> DataFrame:
        """Events with what is known of their key.

        ``seen``, the newest position known of it; ``late``, whether any of its events is older than what is known;
        ``reborn``, whether it had versions, maybe, and has none now.
        """
        keys = self._keys
        touched = told.select(*keys).distinct()
        current = self._keyed(POSITION).where(IS_CURRENT).join(F.broadcast(touched), keys, "left_semi")
        state = self._state()
        dead = state.where(F.col("kind") == "tombstone").join(F.broadcast(touched), keys, "left_semi")
        dead = dead.groupBy(*keys).agg(F.max("position").alias("died_at"))
        over = state.where(F.col("kind") == "truncate").agg(F.max("position").alias("over"))
        known = touched.join(current.select(*keys, F.col(POSITION).alias("stands_at")), keys, "left")
        known = known.join(dead, keys, "left").crossJoin(F.broadcast(over))
        known = known.select(
            *keys,
            F.greatest("stands_at", "died_at", "over").alias("seen"),
            (F.col("stands_at").isNull() & (F.col("died_at").isNotNull() | F.col("over").isNotNull())).alias("reborn"),
        )
        first = told.groupBy(*keys).agg(F.min("position").alias("first")).join(known, keys)
        late = F.coalesce(F.col("first") < F.col("seen"), F.lit(False))
        return told.join(first.select(*keys, "seen", "reborn", late.alias("late")), keys)

    def _late_and_reborn(self, placed: DataFrame) -> tuple[int, int]:
        row = placed.agg(F.count_if("late"), F.count_if("reborn")).first()
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def _onward(self, placed: DataFrame, *, everywhere: bool, reborn: bool, whole: bool) -> DataFrame:
        """New events of keys without late ones, and the versions that they may close.

        Args:
            placed: ``_placed``.
            everywhere: whether there is a TRUNCATE, which closes the versions of keys without an event too.
            reborn: whether keys begin again that had versions before.
            whole: whether the closed versions are written again with their values.
        """
        plan, keys = self._plan, self._keys
        touched = placed.groupBy(*keys).agg(F.first("late").alias("late"))
        mine = placed.where(~F.col("late") & (F.col("seen").isNull() | (F.col("position") > F.col("seen"))))
        mine = mine.drop("seen", "reborn", "late").withColumn("stored", F.lit(False))
        cells = [F.col(quoted(plan.columns[n].name)).alias(field(n)) for n in frames.value_numbers(plan)]
        if not (whole or plan.found.partial):
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
            current = current.join(F.broadcast(touched.where("late")), keys, "left_anti")
        else:
            current = current.join(F.broadcast(touched.where(~F.col("late"))), keys, "left_semi")
        told = mine.unionByName(current)
        if not reborn:
            return told
        ended = self._keyed(VALID_TO).where(~F.col(IS_CURRENT)).join(F.broadcast(touched), keys, "left_semi")
        floors = ended.groupBy(*keys).agg(F.max(VALID_TO).alias("floor"))
        return told.join(floors, keys, "left")

    def _merge(self, rows: DataFrame, *, anywhere: bool) -> None:
        """Write versions into the branch; ``anywhere``: those that end already may change as well."""
        merging.write_versions(rows, self._plan, self._spark_branch(), anywhere=anywhere)


def _truncates(changes: DataFrame) -> DataFrame:
    return changes.where(F.col("operation") == Operation.TRUNCATE)


def _last_cut(table: Table) -> str | None:
    """The tag of the newest cut that a table was published in."""
    numbers = cut_tags(table)
    return f"{CUT_TAG}{numbers[-1]}" if numbers else None
