"""Building the candidate of a table without a key: what its new events put in and take out (docs/adr/0011).

The usual run, whose events are all later than any seen before, goes on from the published rows: two Spark actions, and
no look at the table where nothing is taken out. Events at or below the highest position seen are looked up in the
change log: those that are there were sent again, and the values of those that are not are folded again from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table import Table
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import merging
from tidemark.compaction.accounting import merge_counts
from tidemark.compaction.candidate import Candidate, Fold
from tidemark.errors import LedgerError
from tidemark.events import Operation
from tidemark.folding import bags
from tidemark.lake.branches import head
from tidemark.ledger.ledger import Row
from tidemark.spark.session import checkpointed, named
from tidemark.tables import reasons as fold_reasons
from tidemark.tables.plan import Plan

_HIGH, _TRUNCATE = "high", "truncate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """New events by what becomes of them."""

    sound: int
    """Those that take part, copies and all."""
    distinct: int
    truncated: int
    bad: int
    removals: int
    """Distinct events that take a row out."""
    first: str | None
    last: str | None
    """Lowest and highest position of those that take part."""
    committed_at: int | None
    """Of the newest of them, epoch µs."""


class BagCandidate(Candidate):
    """One table's way from new events to a branch, where nothing but their values tells its rows apart."""

    def _build(self, after: int, fold: Fold | None, views: ExitStack) -> Row:  # noqa: ARG002  nothing is folded by key
        base = head(self._table)
        marks = self._marks()
        high = marks.get(_HIGH, "")
        truncated, at, _ = self._truncated(after)
        rows = named(_rows(self.changes(after), self.plan, truncated), views)
        events = checkpointed(bags.once(rows))
        counts = self._counted(events, rows, after)
        emptied, _, _ = self._truncate(truncated, at)
        self._fill(truncated)
        start = head(self._lake.load(self.plan.target), self._cut.branch)
        sound = named(_sound(events), views)
        unseen, late, again = sound, 0, 0
        if counts.first is not None and counts.first <= high:
            unseen = named(self._unseen(sound, counts.first, high, after), views)
            late = unseen.where(F.col("position") <= high).count()
            again = sound.where(F.col("position") <= high).count() - late
        if truncated is not None and marks.get(_TRUNCATE, "") < truncated < high:
            self._fold_again(None, truncated, views)
        elif late:
            self._fold_again(bags.sides(unseen), truncated, views)
        elif counts.distinct > again:
            self._go_on(named(bags.sides(unseen), views), takes_out=counts.removals > 0)
        self._mark(marks, {_HIGH: max(high, counts.last or ""), _TRUNCATE: truncated or ""})
        table = self._lake.load(self.plan.target)
        applied = counts.distinct - again + self.plan.found.truncates
        duplicate = counts.sound - counts.distinct + again
        change = _grown(table, start, self._cut.branch) - emptied
        return self._accounted(
            table,
            base,
            applied=applied,
            duplicate=duplicate,
            quarantined=counts.bad,
            change=change,
            # Nothing tells a row that was updated, or came again, from one that went while another came.
            deleted=max(0, -change),
            committed_at=counts.committed_at,
        )

    def _counted(self, events: DataFrame, rows: DataFrame, after: int) -> _Counts:
        sound = F.col("set_aside").isNull()
        truncated = F.col("set_aside") == fold_reasons.TRUNCATED
        told = events.agg(
            F.sum(F.when(sound, F.col("copies"))).alias("sound"),
            F.count(F.when(sound, 1)).alias("distinct"),
            F.sum(F.when(truncated, F.col("copies"))).alias("truncated"),
            F.sum(F.when(~truncated, F.col("copies"))).alias("bad"),
            F.count(F.when(sound & F.col("old").isNotNull(), 1)).alias("removals"),
            F.min(F.when(sound, F.col("position"))).alias("first"),
            F.max(F.when(sound, F.col("position"))).alias("last"),
            F.unix_micros(F.max(F.when(sound, F.col("committed_at")))).alias("committed_at"),
        ).first()
        found = told.asDict() if told else {}
        numbers = {name: int(found.get(name) or 0) for name in ("sound", "distinct", "truncated", "bad", "removals")}
        counts = _Counts(
            **numbers, first=found.get("first"), last=found.get("last"), committed_at=found.get("committed_at")
        )
        total = counts.sound + counts.truncated + counts.bad + self.plan.found.truncates
        if total != self.plan.found.events:
            raise LedgerError(
                f"{self.plan.found.object}: {self.plan.found.events} events in the change log, but {counts.sound} "
                f"take part + {counts.truncated} below a TRUNCATE + {counts.bad} set aside + "
                f"{self.plan.found.truncates} truncates. Nothing of it is published."
            )
        if counts.bad:
            self._quarantine(rows.where(F.col("set_aside") != fold_reasons.TRUNCATED), after)
        return counts

    def _unseen(self, sound: DataFrame, first: str, high: str, after: int) -> DataFrame:
        """Those events whose position no earlier batch has.

        An earlier event that went to quarantine took no part: one that is sent again with its position is new.
        """
        seen = self._but_set_aside(self._taken(after).where(F.col("position").between(first, high)))
        return sound.join(seen.select("position"), "position", "left_anti")

    def _go_on(self, told: DataFrame, *, takes_out: bool) -> None:
        """Events later than all before them: they meet the rows that are published."""
        if not takes_out:
            merging.append(told.select("value.*", "position", "committed_at"), self.plan, self._branch())
            return
        taken = told.where(F.col("delta") < 0)
        stored = bags.of_values(bags.stored_sides(self._stored(), self.plan), taken)
        merging.exchange(bags.changed(told.unionByName(stored)), self.plan, self._branch())

    def _fold_again(self, touched: DataFrame | None, truncated: str | None, views: ExitStack) -> None:
        """Fold the values that were touched (all of them: None) from the change log, whatever is published of them."""
        plan, changes = self.whole_log()
        if truncated is not None:
            changes = changes.where(F.col("position") > truncated)
        events = named(_sound(bags.once(_rows(changes, plan, truncated))), views)
        told, stored = bags.sides(events), bags.stored_sides(self._stored(), self.plan)
        if touched is not None:
            told, stored = bags.of_values(told, touched), bags.of_values(stored, touched)
        folded = bags.changed(named(bags.marked(told, stored), views))
        merging.exchange(folded, self.plan, self._branch())

    def _marks(self) -> dict[str, str]:
        """What the state keeps: the highest position seen, and that of the newest TRUNCATE."""
        rows = self._lake.load(self.plan.state).scan().to_arrow().to_pylist()
        return {row["kind"]: row["position"] for row in rows}

    def _mark(self, marks: Mapping[str, str], reached: Mapping[str, str]) -> None:
        new = {kind: position for kind, position in reached.items() if position}
        if new == marks:
            return
        state = self._lake.load(self.plan.state)
        rows = [{"kind": kind, "position": position, "batch": self._cut.batch} for kind, position in new.items()]
        told = pa.Table.from_pylist(rows, schema=state.schema().as_arrow())
        if marks:
            state.overwrite(told, branch=self._cut.branch)
        else:
            state.append(told, branch=self._cut.branch)


def _rows(changes: DataFrame, plan: Plan, truncated: str | None) -> DataFrame:
    return bags.read_rows(changes.where(F.col("operation") != Operation.TRUNCATE), plan, truncated)


def _sound(events: DataFrame) -> DataFrame:
    return events.where(F.col("set_aside").isNull()).drop("set_aside", "copies")


def _grown(table: Table, start: int, branch: str) -> int:
    """How many rows the table has more by the commits on a branch since ``start``, as they tell."""
    told = merge_counts(table, start, branch)
    return told["inserted"] - told["deleted"]
