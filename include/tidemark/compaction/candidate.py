"""Building the candidate of one table: fold its new events, merge them into a branch, keep what later runs need.

Three Spark actions for the usual table (fold, merge, tombstones); the merge is one commit, which carries the marker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from pyiceberg.table import Table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import event_log, merging
from tidemark.compaction.accounting import merge_counts
from tidemark.compaction.event_log import Whole
from tidemark.compaction.history_candidate import HistoryCandidate
from tidemark.compaction.keyed_candidate import LARGE
from tidemark.compaction.quarantine import quarantine
from tidemark.compaction.state import VERSIONS
from tidemark.ddl.history import Emptying
from tidemark.errors import LedgerError
from tidemark.events import Operation
from tidemark.folding import actions, frames, keyed, update_halves
from tidemark.folding import cells as row_cells
from tidemark.lake import pending_schema, properties
from tidemark.lake.branches import branch_from_main, greatest, head, rows_in, upper_bound
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.properties import KEPT_PROPERTIES, STATE_PROPERTIES
from tidemark.ledger import tally
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger, Row
from tidemark.spark.session import checkpointed, named
from tidemark.tables import columns as table_columns
from tidemark.tables import epochs, schemas
from tidemark.tables import reasons as fold_reasons
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import DELETED, POSITION


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The run that a candidate belongs to."""

    number: int
    batch: int
    """Last batch of the change log that it holds."""

    @property
    def branch(self) -> str:
        """Name of the candidate branch in every table of the cut."""
        return f"candidate_{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The new events of one table, folded."""

    rows: DataFrame
    """``folding.fold``, kept."""
    totals: Mapping[str, Any]
    """``folding.totals`` of them, null or 0 for no rows."""
    acted: Callable[[], DataFrame]
    """``folding.actions`` that they were folded from."""


class Candidate:
    """One table's way from new events to a branch."""

    _table: Table
    """As it was before the batch, with the columns of the batch; this and what follows from ``prepare`` on."""
    _state_table: Table
    _state_kinds: Collection[str]
    """Kinds of the rows that the state keeps (``table_schemas.state_schema``)."""
    _state_newest: str | None
    """No position that the state keeps is above this one; None where that is not known."""
    _state_truncates: Sequence[tuple[str, int]]

    def __init__(self, session: SparkSession, lake: Lake, source: str, plan: Plan, cut: Cut) -> None:
        self.plan = plan
        self._session = session
        self._lake = lake
        self._source = source
        self._cut = cut

    def prepare(self) -> None:
        """Put the branches where ``main`` stands, with the columns that the batch wants: without Spark."""
        self._table = self._prepared_table()
        files = [task.file for task in self._state_table.scan().plan_files() if task.file.record_count]
        self._state_kinds = frozenset(file.partition[0] for file in files)
        self._state_newest = upper_bound(self._state_table, files, "position")
        self._state_truncates = self._kept_truncates() if "truncate" in self._state_kinds else []

    def _kept_truncates(self) -> list[tuple[str, int]]:
        """Position and time (epoch µs, 0: unknown) of each TRUNCATE that the state keeps."""
        rows = self._state_table.scan(row_filter=equals("kind", "truncate")).to_arrow().to_pylist()
        return [(row["position"], int(dict(row["versions"] or {}).get(row_cells.REST) or 0)) for row in rows]

    @property
    def is_truncated(self) -> bool:
        """Whether a TRUNCATE, of this batch or of an earlier one, has a say in what the events become."""
        found = self.plan.found
        return bool(found.truncates or found.history.emptyings or self._state_truncates)

    def build(self, after: int, fold: Fold | None = None) -> Row:
        """Build the candidate from the events of batches above ``after``; the row for the ledger.

        Args:
            after: batch that the table stands at.
            fold: of these events, where they were folded with those of other tables (``together``).

        Raises:
            LedgerError: events went missing between the change log and the fold.
        """
        with ExitStack() as views:
            return self._build(after, fold, views)

    def _build(self, after: int, fold: Fold | None, views: ExitStack) -> Row:
        base = head(self._table)
        if self.plan.soft and schemas.was_hard(self._table):
            merging.mark_alive(self._session, self._branch())
        truncated, truncated_at, is_kept = self._truncated(after)
        events = cache(partial(self._events, after))
        if fold is None:
            fold = self._fold(events(), truncated, truncated_at, views)
        folded = fold.rows
        counts, oldest = self._counts(fold, after)
        counts["emptied"], counts["marked"], counts["back"] = self._truncate(truncated, truncated_at, folded)
        self._fill(truncated)
        by_cell = self.plan.found.partial or "cells" in self._state_kinds
        start = head(self._lake.load(self.plan.target), self._cut.branch)
        ready = checkpointed(self._combined(folded)) if by_cell else self._alive(folded, oldest)
        counts["marked"] += self._marked_rows(ready) if counts["marks"] else 0
        counts["moved_rows"] = self._moved_rows(ready, by_cell=by_cell) if counts["away"] else 0
        new = None if is_kept else truncated
        if by_cell or counts["deletes"] or new is not None:
            self._keep(ready, new, truncated_at)
        if not by_cell and self._is_above(oldest):
            counts["replaced"] = self._exchange(ready, deletes=counts["deletes"])
        else:
            merging.upsert(ready, self.plan, self._branch(), by_cell=by_cell)
        if self.plan.history:
            kept = HistoryCandidate(self._session, self._lake, self._source, self.plan, self._cut.branch)
            kept.build(events(), self._emptyings(), self.whole_log, lambda frame: named(frame, views))
        return self._row(base, start, counts)

    def _fold(
        self, events: tuple[Plan, DataFrame], truncated: str | None, truncated_at: int | None, views: ExitStack
    ) -> Fold:
        """Fold the table's events by themselves."""
        plan, rows = events
        if plan.found.truncates:
            rows = rows.where(F.col("operation") != Operation.TRUNCATE)
        kept = [*actions.KEPT, *update_halves.earlier_column(rows)]
        acted = named(actions.actions(rows, plan, None if plan.soft else truncated, kept), views)
        sound, new = acted.where(F.col("set_aside").isNull()), acted
        if plan.found.splits:
            sound = update_halves.settled(sound, frames.key_names(plan))
            new = update_halves.without_earlier(acted)
        folded = keyed.fold(sound, plan)
        if plan.soft and truncated is not None:
            folded = keyed.truncated_softly(folded, plan, truncated, truncated_at)
        folded = checkpointed(folded)
        totals = folded.agg(*keyed.totals(plan)).first()
        touched = folded.where(F.col("position").isNotNull()) if plan.found.splits else folded
        return Fold(rows=touched, totals=totals.asDict() if totals else {}, acted=lambda: new)

    def _events(self, after: int) -> tuple[Plan, DataFrame]:
        """The events that the table is to take in, and the plan to read them by.

        Where one half of an update is among them and the other came before, that is there too (``halves``).
        """
        earlier = self._earlier_halves(after) if self.plan.found.splits and after else None
        if earlier is None:
            return self.plan, self.changes(after)
        whole = self._whole()
        return whole.plan, whole.read(update_halves.with_earlier(self._new(after), earlier))

    def _earlier_halves(self, after: int) -> DataFrame | None:
        lone = checkpointed(update_halves.lone(self._new(after)))
        bounds = lone.agg(F.min("update"), F.max("update")).first()
        if bounds is None or bounds[0] is None:
            return None
        # As its files tell their positions, nothing is read of a batch that is older than all lone halves.
        updates = self._taken(after).where(F.col("operation") == Operation.UPDATE)
        taken = updates.where(F.col("position").between(bounds[0], f"{bounds[1]}~"))
        found = taken.withColumn("update", update_halves.update()).join(F.broadcast(lone), "update", "left_semi")
        earlier = checkpointed(self._but_set_aside(found.drop("update")))
        return None if earlier.isEmpty() else earlier

    def _prepared_table(self) -> Table:
        plan = self.plan
        key = {properties.KEY_PROPERTY: json.dumps(plan.key)}
        table = self._lake.ensure(
            plan.target,
            schemas.table_schema(plan),
            {
                **STATE_PROPERTIES,
                **key,
                properties.OBJECT_PROPERTY: plan.found.object,
                properties.SOURCE_PROPERTY: self._source,
            },
        )
        state = self._lake.ensure(plan.state, schemas.state_schema(plan), KEPT_PROPERTIES, partition_by=["kind"])
        self._state_table = branch_from_main(schemas.widen_keys(state, plan), self._cut.branch)
        table = schemas.evolve(table, plan)
        table = pending_schema.plan_pending(table, self._cut.number, plan.today, key)
        return branch_from_main(schemas.soften(table) if plan.soft else table, self._cut.branch)

    def changes(self, after: int) -> DataFrame:
        """The events that the table is to take in, as the change log has them, their shapes by epoch."""
        changes = self._new(after)
        if self.plan.found.names:
            names = table_columns.names_of(self.plan.found, None)
            return changes.withColumn("shape", epochs.shape_in_epoch(names))
        return changes

    def _new(self, after: int) -> DataFrame:
        changelog = self._session.table(self._lake.spark_name(("changelog", self._source)))
        return event_log.taken(changelog, self.plan.found.object, after, self._cut.batch, self.plan.found.withheld)

    def _log(self, batch: int, but: frozenset[str] = frozenset()) -> DataFrame:
        """The change log of the table up to a batch, without the events of transactions that are not published."""
        changelog = self._session.table(self._lake.spark_name(("changelog", self._source)))
        undone = ledger_transactions.undone(Ledger(self._lake, self._source), self._cut.batch)
        found = self.plan.found
        return event_log.log_of(changelog, found.object, batch, found.withheld.waiting | undone | but)

    def _taken(self, after: int) -> DataFrame:
        """The events that the table had taken in when it came to a batch."""
        return self._log(after, self.plan.found.withheld.released)

    def _but_set_aside(self, events: DataFrame) -> DataFrame:
        """Without those that went to quarantine when they came, and took no part."""
        name = ("quarantine", self._source)
        if self._lake.find(name) is None:
            return events
        aside = self._session.table(self._lake.spark_name(name)).where(F.col("object") == self.plan.found.object)
        return events.join(aside.select("batch", "file", "place"), ["batch", "file", "place"], "left_anti")

    def whole_log(self) -> tuple[Plan, DataFrame]:
        """All events that the table is to hold, and the plan with what they tell, to fold them from the first on."""
        whole = self._whole()
        return whole.plan, whole.read(self._log(self._cut.batch))

    def _whole(self) -> Whole:
        ledger, found = Ledger(self._lake, self._source), self.plan.found
        of_table = equals("object", found.object)
        shapes = {row["shape"]: tally.shape_from(row["columns"]) for row in ledger.read("shapes", of_table)}
        contents = [row for row in ledger.read("contents", of_table) if row["batch"] <= self._cut.batch]
        whole = replace(
            found,
            shapes=shapes,
            names={},
            truncates=sum(row["events"] for row in contents if row["operation"] == Operation.TRUNCATE),
            partial=any(row["partial"] for row in contents),
            halves=any(row["half"] for row in contents),
        )
        names = table_columns.names_of(whole, None)
        if not names.touches(column.name for shape in shapes.values() for column in shape.columns):
            return Whole(replace(self.plan, found=whole), lambda events: events)
        every = [f"{shape}@{epoch}" for shape in shapes for epoch in range(len(names.renamings) + 1)]
        told, today = epochs.shapes_by_epoch(shapes, names, every)
        plan = replace(self.plan, found=replace(whole, shapes=told, names=today))
        return Whole(plan, lambda events: events.withColumn("shape", epochs.shape_in_epoch(names)))

    def _state(self) -> DataFrame:
        state = self._session.table(self._lake.spark_name(self.plan.state))
        versions = F.col("versions")
        renamed = {**self.plan.today, **self.plan.begun}
        if renamed:
            versions = row_cells.renamed_versions(versions, renamed).alias("versions")
        return state.select(*frames.key_names(self.plan), "kind", "position", versions, "batch")

    def _truncated(self, after: int) -> tuple[str | None, int | None, bool]:
        """Position of the newest TRUNCATE, when the source committed it (epoch µs), and whether the state has it."""
        told = list(self._state_truncates)
        if self.plan.found.truncates:
            at = F.coalesce(F.unix_micros("committed_at"), F.lit(0)).alias("at")
            truncates = self.changes(after).where(F.col("operation") == Operation.TRUNCATE)
            newest = truncates.agg(F.max(F.struct("position", at))).first()
            told.extend([tuple(newest[0])] if newest and newest[0] else [])
        # Those of earlier batches as well: there may have been no table that could keep them.
        told.extend((emptying.position, emptying.at) for emptying in self.plan.found.history.emptyings)
        position, at_micros = max(told, default=(None, 0))
        return position, at_micros or None, any(known == position for known, _ in self._state_truncates)

    def _emptyings(self) -> list[Emptying]:
        """The statements and initial loads of this batch that emptied the table."""
        found = self.plan.found
        return [told for told in found.history.emptyings if found.after < told.batch]

    def _counts(self, fold: Fold, after: int) -> tuple[dict[str, int], str | None]:
        """Numbers for the ledger, and the position of the oldest row."""
        told = dict(fold.totals)
        oldest = told.pop("oldest", None)
        counts = {name: int(value or 0) for name, value in told.items()}
        found = self.plan.found
        aside = found.events - found.truncates - counts["events"]
        reasons = self._set_aside(fold.acted(), after) if aside else {}
        if aside != sum(reasons.values()):
            raise LedgerError(
                f"{found.object}: {found.events} events in the change log, but {counts['events']} folded + "
                f"{found.truncates} truncates + {sum(reasons.values())} set aside. Nothing of it is published."
            )
        reasons.pop(fold_reasons.TRUNCATED, None)  # superseded, not wrong
        return {**counts, "quarantined": sum(reasons.values())}, oldest

    def _set_aside(self, acted: DataFrame, after: int) -> dict[str, int]:
        aside = acted.where(F.col("set_aside").isNotNull() & ~F.col("moved_away"))
        reasons = {row["set_aside"]: int(row["count"]) for row in aside.groupBy("set_aside").count().collect()}
        if reasons.keys() - {fold_reasons.TRUNCATED}:
            self._quarantine(aside.where(F.col("set_aside") != fold_reasons.TRUNCATED), after)
        return reasons

    def _quarantine(self, bad: DataFrame, after: int) -> None:
        found = bad.select(
            "batch",
            "file",
            "place",
            F.col("set_aside").alias("reason"),
            "detail",
            F.lit(self.plan.found.object).alias("object"),
        )
        withheld = self.plan.found.withheld
        since = min(after, withheld.since - 1) if withheld.released else after
        quarantine(self._lake, self._source, found, since, settled=after)

    def _truncate(self, truncated: str | None, at: int | None, folded: DataFrame | None = None) -> tuple[int, int, int]:
        """Delete the rows that a TRUNCATE of this batch removed: its position decides, not its arrival.

        Returns:
            How many rows went, how many that were alive were marked as deleted, and how many of the rows that went are
            back with ``folded``, by the key: those that a load, which is an order to replace, brings again.
        """
        if not (self.plan.found.truncates or self._emptyings()) or truncated is None:
            return 0, 0, 0
        rows, back = self._stored().where(F.col(POSITION) < truncated), F.lit(False)
        if folded is not None and any(told.load and told.position == truncated for told in self._emptyings()):
            keys = frames.key_names(self.plan)
            state = [DELETED] if self.plan.soft else []
            again = folded.where(~F.col("deleted")).select(*keys, F.lit(True).alias("again"))
            rows = rows.select(*frames.key_columns(self.plan), *state).join(again, keys, "left")
            back = F.col("again").isNotNull()
        alive = F.count_if(~F.col(DELETED) & ~back) if self.plan.soft else F.lit(0)
        counted = rows.agg(F.count("*"), alive, F.count_if(back)).first()
        older, alive_rows, returned = (int(number) for number in counted) if counted else (0, 0, 0)
        if older:
            merging.delete_older(self._session, self.plan, self._branch(), truncated, at)
        if "cells" in self._state_kinds:
            merging.empty_cells(row_cells.emptied(self._state(), self.plan, truncated), self.plan, self._branch())
        return (0, alive_rows, 0) if self.plan.soft else (older, 0, returned)

    def _branch(self) -> str:
        """Name of the candidate branch in Spark."""
        return self._lake.spark_name(self.plan.target, self._cut.branch)

    def _stored(self) -> DataFrame:
        """The rows of the candidate, under the names that their columns will have when it is published."""
        return frames.of_today(self._session.table(self._branch()), self.plan)

    def _fill(self, truncated: str | None) -> None:
        """Give the rows that are there the defaults of columns that were added: nothing is delivered for them."""
        plan = self.plan
        for column, told in plan.new_defaults():
            older = self._stored().where(F.col(POSITION) < told.position)
            if plan.soft and truncated is not None:
                older = older.where(F.col(POSITION) != truncated)  # a TRUNCATE leaves nothing of its rows to be seen
            rows = older.select(*(frames.key_columns(plan) or [F.col(POSITION).alias("position")]))
            merging.fill(rows, plan, self._branch(), {column.name: actions.default_value(column, told.text)})

    def _combined(self, folded: DataFrame) -> DataFrame:
        return row_cells.combine(folded, self._stored(), self._state(), self.plan)

    def _alive(self, folded: DataFrame, oldest: str | None) -> DataFrame:
        """Without late events of keys that are dead. A batch that is newer than all that is kept has none."""
        if oldest is None or (self._state_newest is not None and self._state_newest < oldest):
            return folded
        return row_cells.not_dead(folded, self._state().where(F.col("kind") == "tombstone"), self.plan)

    def _moved_rows(self, ready: DataFrame, *, by_cell: bool) -> int:
        """Rows that change because their key did: in the ledger their event counts where it wrote the new key."""
        keys = frames.key_names(self.plan)
        # With soft deletes the old key gets a row even if it had none.
        how = "left" if self.plan.soft else "inner"
        gone = ready.where("moved_away").join(
            self._stored().select(*frames.key_columns(self.plan), POSITION), keys, how
        )
        # By cell, a row that a newer event wrote a part of lives on without the cells that moved away.
        changes = F.col(POSITION) <= F.col("position") if by_cell else F.col(POSITION) < F.col("position")
        return gone.where(changes | F.col(POSITION).isNull()).count()

    def _marked_rows(self, ready: DataFrame) -> int:
        """Rows that are alive and become marked as deleted: readers who leave such rows out lose them."""
        alive = self._stored().where(~F.col(DELETED)).select(*frames.key_columns(self.plan), POSITION)
        gone = ready.where(F.col("deleted") & ~F.col("moved_away")).join(alive, frames.key_names(self.plan))
        return gone.where(F.col(POSITION) < F.col("position")).count()

    def _keep(self, ready: DataFrame, truncated: str | None, truncated_at: int | None) -> None:
        """Append what later runs need: tombstones, versions of rows written in parts, a TRUNCATE that is new."""
        keys = frames.key_names(self.plan)
        branch = self._lake.spark_name(self.plan.state, self._cut.branch)
        if self.plan.today and "cells" in self._state_kinds:
            cells = self._state().where(F.col("kind") == "cells")
            self._session.sql(f"DELETE FROM {branch} WHERE kind = 'cells'")  # noqa: S608  every part is quoted
            cells.writeTo(branch).append()
        versions = "versions" if "versions" in ready.columns else F.lit(None).cast(VERSIONS).alias("versions")
        kind = F.when(F.col("deleted"), "tombstone").otherwise("cells").alias("kind")
        rows = ready.select(*keys, kind, "position", versions, F.lit(self._cut.batch).alias("batch"))
        rows = rows.where((F.col("kind") == "tombstone") | F.col("versions").isNotNull())
        if truncated is not None:
            mark = self._session.range(1).select(
                *(F.lit(None).alias(key) for key in keys),
                F.lit("truncate").alias("kind"),
                F.lit(truncated).alias("position"),
                F.create_map(F.lit(row_cells.REST), F.lit(truncated_at).cast("string")).alias("versions"),
                F.lit(self._cut.batch).alias("batch"),
            )
            rows = rows.unionByName(mark)
        rows.writeTo(branch).append()

    def _is_above(self, oldest: str | None) -> bool:
        """Whether each event of the batch is newer than every row of a large table, as its files tell.

        Then keys need no comparing of positions. A batch with one late event in it is merged row by row.
        """
        if self.plan.soft or oldest is None or rows_in(self._table) < LARGE:
            return False
        newest = greatest(self._lake.load(self.plan.target), POSITION, self._cut.branch)
        return newest is not None and newest < oldest

    def _exchange(self, ready: DataFrame, deletes: int) -> int:
        """Delete the rows of the batch's keys, then add the new ones; how many were replaced.

        A MERGE that inserts has to shuffle the table. Here the batch's keys go to the table's files.
        """
        keys = frames.key_names(self.plan)
        gone = 0
        if deletes:
            stored = self._stored().select(*frames.key_columns(self.plan))
            gone = stored.join(ready.where("deleted").select(*keys), keys, "left_semi").count()
        start = head(self._lake.load(self.plan.target), self._cut.branch)
        merging.remove(ready, self.plan, self._branch())
        removed = merge_counts(self._lake.load(self.plan.target), start, self._cut.branch)["deleted"]
        merging.append(ready.where(~F.col("deleted")), self.plan, self._branch())
        return removed - gone

    def _row(self, base: int, start: int, counts: Mapping[str, int]) -> Row:
        table = self._lake.load(self.plan.target)
        merged = merge_counts(table, start, self._cut.branch)
        replaced = counts.get("replaced", 0)  # deleted and added
        merged = {
            "inserted": merged["inserted"] - replaced,
            "updated": merged["updated"] + replaced,
            "deleted": merged["deleted"] - replaced,
        }
        effective = merged["inserted"] + merged["updated"] + merged["deleted"] - counts["moved_rows"]
        applied = effective + self.plan.found.truncates
        change = merged["inserted"] - merged["deleted"] - counts["emptied"]
        gone = merged["deleted"] + counts["emptied"] - counts["moved_rows"] - counts["back"]
        deleted = counts["marked"] if self.plan.soft else max(0, gone)
        return self._accounted(
            table,
            base,
            applied=applied,
            duplicate=counts["events"] - counts["distinct"],
            quarantined=counts["quarantined"],
            change=change,
            deleted=deleted,
            committed_at=counts["committed_at"] or None,
        )

    def _accounted(
        self,
        table: Table,
        base: int,
        *,
        applied: int,
        duplicate: int,
        quarantined: int,
        change: int,
        deleted: int,
        committed_at: int | None,
    ) -> Row:
        """The row for the ledger; ``change`` is how many more rows the table has, ``committed_at`` in epoch µs."""
        found = self.plan.found
        withheld = found.withheld
        superseded = found.events - applied - duplicate - quarantined
        if superseded < 0:
            raise LedgerError(
                f"{found.object}: {applied} events applied + {duplicate} duplicate + {quarantined} quarantined are "
                f"more than the {found.events} events that there were. Nothing of it is published."
            )
        return {
            "cut": self._cut.number,
            "object": found.object,
            "target": ".".join(self.plan.target),
            "state": "candidate",
            "batch": self._cut.batch,
            "events": found.events + withheld.held + withheld.discarded,
            "applied": applied,
            "superseded": superseded + withheld.discarded,
            "duplicate": duplicate,
            "held": withheld.held,
            "quarantined": quarantined,
            "rows_change": change,
            "deleted": deleted,
            "committed_at": committed_at,
            "base": base,
            "snapshot": head(table, self._cut.branch),
        }
