"""Build the candidate of a table without a key: what its new events put in and take out (docs/adr/0011).

The usual run, whose events are all later than any seen before, goes on from the published rows: two Spark actions, and
no look at the table where nothing is taken out. Events at or below the highest position seen are looked up in the
change log: the ones that are there were sent again, and the values of the others are folded again from it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import accounting, merging, quarantine, truncation
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Built
from tidemark.errors import LedgerError
from tidemark.events import Operation
from tidemark.folding import bags
from tidemark.spark.session import checkpointed, named
from tidemark.tables import reasons
from tidemark.tables.plan import Plan

_HIGH, _TRUNCATE = "high", "truncate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """New events by what becomes of them."""

    sound: int
    """Events that take part, copies and all."""
    distinct: int
    truncated: int
    bad: int
    removals: int
    """Distinct events that take a row out."""
    first: str | None
    last: str | None
    """Lowest and highest position of the events that take part."""
    committed_at: int | None
    """Of the newest of them, epoch µs."""


def build(prepared: Prepared, views: ExitStack) -> Built:
    """Build the candidate of a table from its new events; nothing but their values tells its rows apart.

    Args:
        prepared: the table.
        views: keeps the names that frames are read by until the table is built.

    Raises:
        LedgerError: events went missing between the change log and the fold.
    """
    plan, state = prepared.plan, prepared.state
    marks = state.marks()
    high = marks.get(_HIGH, "")
    truncate = truncation.newest(prepared)
    truncated = truncate.position if truncate else None
    rows = named(_rows(prepared.log.changes(), plan, truncated), views)
    events = checkpointed(bags.once(rows))
    counts = _counted(prepared, events, rows)
    emptied = truncation.empty(prepared, truncate)
    prepared.fill_defaults()
    start = prepared.tip()
    sound = named(_sound(events), views)
    unseen, late, again = sound, 0, 0
    if counts.first is not None and counts.first <= high:
        unseen = named(_unseen(prepared, sound, counts.first, high), views)
        late = unseen.where(F.col("position") <= high).count()
        again = sound.where(F.col("position") <= high).count() - late
    if truncated is not None and marks.get(_TRUNCATE, "") < truncated < high:
        _fold_again(prepared, None, truncated, views)
    elif late:
        _fold_again(prepared, bags.sides(unseen), truncated, views)
    elif counts.distinct > again:
        _go_on(prepared, named(bags.sides(unseen), views), takes_out=counts.removals > 0)
    state.mark(marks, {_HIGH: max(high, counts.last or ""), _TRUNCATE: truncated or ""})
    change = accounting.merged(prepared.current(), start, prepared.run.cut.branch).grown - emptied.rows
    return Built(
        object=plan.found.object,
        target=plan.target,
        counts=accounting.account(
            plan.found,
            applied=counts.distinct - again + plan.found.truncates,
            duplicate=counts.sound - counts.distinct + again,
            quarantined=counts.bad,
        ),
        rows_change=change,
        # Nothing tells a row that was updated, or came again, from one that went while another came.
        deleted=max(0, -change),
        committed_at=counts.committed_at,
        snapshots=prepared.snapshots(),
    )


def _counted(prepared: Prepared, events: DataFrame, rows: DataFrame) -> _Counts:
    """Return how many events there are of each kind, and quarantine the bad ones.

    Raises:
        LedgerError: the counts are not all events.
    """
    found = prepared.plan.found
    sound = F.col("set_aside").isNull()
    truncated = F.col("set_aside") == reasons.TRUNCATED
    row = events.agg(
        F.sum(F.when(sound, F.col("copies"))).alias("sound"),
        F.count(F.when(sound, 1)).alias("distinct"),
        F.sum(F.when(truncated, F.col("copies"))).alias("truncated"),
        F.sum(F.when(~truncated, F.col("copies"))).alias("bad"),
        F.count(F.when(sound & F.col("old").isNotNull(), 1)).alias("removals"),
        F.min(F.when(sound, F.col("position"))).alias("first"),
        F.max(F.when(sound, F.col("position"))).alias("last"),
        F.unix_micros(F.max(F.when(sound, F.col("committed_at")))).alias("committed_at"),
    ).first()
    totals = row.asDict() if row else {}
    counts = _Counts(
        sound=int(totals.get("sound") or 0),
        distinct=int(totals.get("distinct") or 0),
        truncated=int(totals.get("truncated") or 0),
        bad=int(totals.get("bad") or 0),
        removals=int(totals.get("removals") or 0),
        first=totals.get("first"),
        last=totals.get("last"),
        committed_at=totals.get("committed_at"),
    )
    if counts.sound + counts.truncated + counts.bad + found.truncates != found.events:
        raise LedgerError(
            f"{found.object}: {found.events} events in the change log, but {counts.sound} take part + "
            f"{counts.truncated} below a TRUNCATE + {counts.bad} set aside + {found.truncates} truncates. "
            "Nothing of it is published."
        )
    if counts.bad:
        quarantine.put(prepared.run, prepared.plan, rows)
    return counts


def _unseen(prepared: Prepared, sound: DataFrame, first: str, high: str) -> DataFrame:
    """Return the events whose position no earlier batch has.

    An earlier event that went to quarantine took no part: one that is sent again with its position is new.
    """
    log = prepared.log
    seen = log.without_set_aside(log.taken().where(F.col("position").between(first, high)))
    return sound.join(seen.select("position"), "position", "left_anti")


def _go_on(prepared: Prepared, sides: DataFrame, *, takes_out: bool) -> None:
    """Write events that are later than all before them: they meet the rows that are published."""
    plan = prepared.plan
    if not takes_out:
        merging.append(sides.select("value.*", "position", "committed_at"), plan, prepared.branch)
        return
    removed = sides.where(F.col("delta") < 0)
    stored = bags.of_values(bags.stored_sides(prepared.stored(), plan), removed)
    merging.exchange(bags.changed(sides.unionByName(stored)), plan, prepared.branch)


def _fold_again(prepared: Prepared, touched: DataFrame | None, truncated: str | None, views: ExitStack) -> None:
    """Fold the values that were touched (None: all of them) from the change log, whatever is published of them."""
    plan, changes = prepared.log.whole()
    if truncated is not None:
        changes = changes.where(F.col("position") > truncated)
    events = named(_sound(bags.once(_rows(changes, plan, truncated))), views)
    sides, stored = bags.sides(events), bags.stored_sides(prepared.stored(), prepared.plan)
    if touched is not None:
        sides, stored = bags.of_values(sides, touched), bags.of_values(stored, touched)
    folded = bags.changed(named(bags.marked(sides, stored), views))
    merging.exchange(folded, prepared.plan, prepared.branch)


def _rows(changes: DataFrame, plan: Plan, truncated: str | None) -> DataFrame:
    return bags.read_rows(changes.where(F.col("operation") != Operation.TRUNCATE), plan, truncated)


def _sound(events: DataFrame) -> DataFrame:
    return events.where(F.col("set_aside").isNull()).drop("set_aside", "copies")
