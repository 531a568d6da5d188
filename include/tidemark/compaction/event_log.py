"""Which events of the change log a table takes in: new ones, all of them, earlier halves of updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.run import Run
from tidemark.errors import IncompatibleSchemaError, RebuildNeededError
from tidemark.events import Operation
from tidemark.folding import update_halves
from tidemark.lake import names
from tidemark.lake.filters import among
from tidemark.lake.log_schemas import RowKind
from tidemark.lake.statistics import rows_in
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.expired import Expired
from tidemark.spark.session import checkpointed
from tidemark.spark.tuning import is_small
from tidemark.tables import epochs, eras, evolving
from tidemark.tables.plan import Found, Plan
from tidemark.tables.shards import Shards
from tidemark.tables.withheld import Withheld


class Events(NamedTuple):
    """Change events of one table, and the plan to read them by."""

    plan: Plan
    rows: DataFrame


class _Whole(NamedTuple):
    """How events of any batch are read."""

    plan: Plan
    """Covers the shapes of all batches."""
    read: Callable[[DataFrame], DataFrame]
    """Gives events of the change log the shapes that ``plan`` knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """The change log of one table, as its plan reads it."""

    run: Run
    plan: Plan

    def changes(self) -> DataFrame:
        """Return the events that the table is to take in, with their shapes by epoch."""
        changes = new_events(self.run, self.plan.found)
        if self.plan.found.names and not self.plan.found.shards:
            epoch_names = evolving.names_of(self.plan.found, None)
            return changes.withColumn("shape", epochs.shape_in_epoch(epoch_names))
        return changes

    def events(self) -> Events:
        """Return the events that the table is to take in, and the plan to read them by.

        Where the new half of an update is among them and the old half came before, the old half is included
        (``update_halves``).
        """
        found = self.plan.found
        earlier = self._earlier_halves() if found.splits and found.goes_on else None
        if earlier is None:
            return Events(self.plan, self.changes())
        whole = self._whole()
        return Events(whole.plan, whole.read(update_halves.with_earlier(new_events(self.run, found), earlier)))

    def whole(self) -> Events:
        """Return every event of the table up to this cut, with a plan that covers all their shapes.

        Used to fold the table from scratch.

        Raises:
            RebuildNeededError: the key changed at the source, so not all of them can be read by one plan.
            IncompatibleSchemaError: the same, in the midst of a rebuild.
        """
        found = self.plan.found
        if found.positions[0]:
            raise IncompatibleSchemaError(
                f"{found.object}: its key changed at the source, and some of its events can only be read together with "
                "those from before. Load it anew at the source: a complete load after the change replaces its rows"
            )
        if found.goes_on and (eras.keyed_since(found.table) or found.segments):
            raise RebuildNeededError(
                f"{found.object}: events of rows came late, and it changed its key or its name before"
            )
        if found.goes_on and (problem := Expired(self.run.lake, self.run.source.source).problem_of(found.objects)):
            raise IncompatibleSchemaError(f"{found.object}: {problem}")
        whole = self._whole()
        return Events(whole.plan, whole.read(self._up_to(self.run.cut.batch)))

    def taken(self) -> DataFrame:
        """Return the events that the table had taken in when it came to the batch that it stands at."""
        return self._up_to(self.plan.found.published_batch, but=self.plan.found.withheld.released)

    def taken_between(self, first: str, last: str) -> Events:
        """Return the sound events at some positions that the table had taken in, and a plan that reads them."""
        whole = self._whole()
        near = self.taken().where(F.col("position").between(first, last))
        return Events(whole.plan, whole.read(self.without_set_aside(near)))

    def without_set_aside(self, events: DataFrame) -> DataFrame:
        """Return earlier events without those that went to quarantine when they came, and took no part."""
        quarantine = names.quarantine(self.run.source.source)
        table = self.run.lake.find(quarantine)
        if table is None:
            return events
        aside = self.run.read(quarantine).where(F.col("object") == self.plan.found.object)
        aside = aside.select("batch", "file", "place")
        # The events may be all that the table ever had. None of them is shuffled for a few rows.
        aside = F.broadcast(aside) if is_small(rows_in(table)) else aside
        return events.join(aside, ["batch", "file", "place"], "left_anti")

    def _up_to(self, batch: int, but: frozenset[str] = frozenset()) -> DataFrame:
        """Return the events of the table up to a batch, without transactions that are not published."""
        found = self.plan.found
        undone = ledger_transactions.ids_in(
            self.run.ledger.transactions(), self.run.cut.batch, ledger_transactions.UNDONE
        )
        undone -= self.run.given_up.ids
        events = _log_of(self.run.changes(), found, batch, found.withheld.waiting | undone | but)
        return _as_read(self.run, found, events)

    def _earlier_halves(self) -> DataFrame | None:
        lone = checkpointed(update_halves.lone(new_events(self.run, self.plan.found)))
        bounds = lone.agg(F.min("update"), F.max("update")).first()
        if bounds is None or bounds[0] is None:
            return None
        # Data files have bounds of their positions, so no file of a batch older than all lone halves is read.
        updates = self.taken().where(F.col("operation") == Operation.UPDATE)
        near = updates.where(F.col("position").between(bounds[0], f"{bounds[1]}~"))
        own = ["object", "update"]
        found = near.withColumn("update", update_halves.update()).join(F.broadcast(lone), own, "left_semi")
        earlier = checkpointed(self.without_set_aside(found.drop("update")))
        return None if earlier.isEmpty() else earlier

    def _whole(self) -> _Whole:
        ledger, found = self.run.ledger, self.plan.found
        shapes = ledger.shapes_of(*found.objects)
        contents = ledger.contents(among("object", found.objects))
        contents = [row for row in contents if row.batch <= self.run.cut.batch]
        whole = replace(
            found,
            shapes=shapes,
            names={},
            truncates=sum(row.events for row in contents if row.operation == Operation.TRUNCATE),
            partial=any(row.partial for row in contents),
            halves=any(row.half for row in contents),
            moves=found.moves_ever and any(row.moves for row in contents),
        )
        if found.shards:
            shapes, today = shards_of(self.run, found).shapes()
            whole = replace(whole, shapes=shapes, names=today)
            return _Whole(replace(self.plan, found=whole), lambda events: events)
        epoch_names = evolving.names_of(whole, None)
        if not epoch_names.touches(column.name for shape in shapes.values() for column in shape.columns):
            return _Whole(replace(self.plan, found=whole), lambda events: events)
        every = [f"{shape}@{epoch}" for shape in shapes for epoch in range(len(epoch_names.renamings) + 1)]
        by_epoch, today = epochs.shapes_by_epoch(shapes, epoch_names, every)
        plan = replace(self.plan, found=replace(whole, shapes=by_epoch, names=today))
        return _Whole(plan, lambda events: events.withColumn("shape", epochs.shape_in_epoch(epoch_names)))


def new_events(run: Run, found: Found) -> DataFrame:
    """Return the change events that a table takes in, before there is a plan for it."""
    new = _between(found.published_batch, run.cut.batch)
    withheld: Withheld = found.withheld
    if withheld.left_out:
        new &= ~F.coalesce(F.col("transaction_id").isin(*sorted(withheld.left_out)), F.lit(False))
    if withheld.released:
        earlier = (F.col("batch") >= withheld.since) & (F.col("batch") <= found.published_batch)
        new |= earlier & F.col("transaction_id").isin(*sorted(withheld.released))
    events = run.changes().where((F.col("kind") == RowKind.CHANGE) & eras.are_of(found) & new)
    return _as_read(run, found, events)


def shards_of(run: Run, found: Found) -> Shards:
    """Return how the events of a table's shards are read."""
    return Shards(found.shards, found.called, run.ledger.shapes_by_object(found.objects), found.table)


def _as_read(run: Run, found: Found, events: DataFrame) -> DataFrame:
    """Return the events that a table takes in, with images as they came, or as ``Shards.read`` makes them."""
    return shards_of(run, found).read(events) if found.shards else _within(events, found)


def _within(events: DataFrame, found: Found) -> DataFrame:
    """Return the events whose positions the table takes in."""
    first, end = found.positions
    if first:
        events = events.where(F.col("position") >= first)
    return events if end is None else events.where(F.col("position") < end)


def new_events_of(changelog: DataFrame, tables: Sequence[str], after: int, batch: int) -> DataFrame:
    """Return the change events of several tables that stand at one batch, and that no transaction changes.

    Args:
        changelog: rows of ``CHANGE_LOG``.
        tables: as the source names them.
        after: batch at which they stand.
        batch: batch that they are to reach.
    """
    new = _between(after, batch)
    return changelog.where((F.col("kind") == RowKind.CHANGE) & F.col("object").isin(*tables) & new)


def _between(after: int, batch: int) -> Expression:
    return (F.col("batch") > after) & (F.col("batch") <= batch)


def _log_of(changelog: DataFrame, found: Found, batch: int, without: frozenset[str]) -> DataFrame:
    """Return all change events of a table up to a batch, without the events of some transactions.

    Args:
        changelog: rows of ``CHANGE_LOG``.
        found: the table.
        batch: last batch.
        without: ids of transactions: ``Withheld.waiting`` for all that the published table is to hold, with
            ``Withheld.released`` for what it held before.
    """
    of_table = (F.col("kind") == RowKind.CHANGE) & eras.are_of(found) & (F.col("batch") <= batch)
    if without:
        of_table &= ~F.coalesce(F.col("transaction_id").isin(*sorted(without)), F.lit(False))
    return changelog.where(of_table)
