"""Build the candidate of a table without a key: what its new events put in and take out (docs/adr/0011).

The usual run, whose events are all later than any seen before, goes on from the published rows: two Spark actions, and
no look at the table where nothing is taken out. Events whose place in the log is not above the highest position seen
are looked up in the change log: the ones that are there were sent again, and the values of the others are folded again
from it.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import accounting, bag_contradictions, bag_events, merging, quarantine, truncation
from tidemark.compaction.bag_events import Met
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Built
from tidemark.errors import LedgerError
from tidemark.folding import bags
from tidemark.folding.bag_copies import IN_QUESTION, IS_COPY
from tidemark.spark.session import named
from tidemark.tables import reasons
from tidemark.tables.plan import Plan

_HIGH, _TRUNCATE = "high", "truncate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """New events by what becomes of them."""

    sound: int
    """Events that take part, copies and all."""
    distinct: int
    duplicates: int
    """Of these, copies of others."""
    truncated: int
    bad: int
    in_question: int
    """Events for which only their order shows whether they are copies."""
    removals: int
    """Distinct events that take a row out."""
    insertions: int
    """Distinct events that put a row in."""
    differing: int
    """Events whose copies say something else, where the position is the identity."""
    first: str | None
    last: str | None
    """Lowest and highest position of the events that take part."""
    committed_at: int | None
    """Of the newest of them, epoch µs."""


def build(prepared: Prepared, views: ExitStack) -> Built:
    """Build the candidate of a table without a key from its new events: only their values tell its rows apart.

    Args:
        prepared: the table.
        views: keeps the names that frames are read by until the table is built.

    Raises:
        LedgerError: events went missing between the change log and the fold.
    """
    plan, state = prepared.plan, prepared.state
    marks = state.marks()
    high = marks.get(_HIGH, "")
    truncates = truncation.known(prepared)
    truncated = truncates.newest[""].position if truncates else None  # shards have a key
    rows = named(bag_events.rows(prepared.log.changes(), plan, truncated), views)
    events, counts = _judged(prepared, rows)
    emptied = truncation.empty(prepared, truncates)
    prepared.fill_defaults()
    start = prepared.tip()
    sound = named(events.where(F.col("set_aside").isNull()), views)
    met = bag_events.NOTHING_MET
    unseen = named(sound.where(~F.col(IS_COPY)), views)
    if counts.first is not None and bag_events.place_of(counts.first) <= high:
        met = bag_events.meet(prepared, sound, bag_events.Reach(counts.first, high, truncated), views)
        unseen = met.unseen if met.unseen is not None else unseen
    taken, goes_on = counts if met.unseen is None else met, False
    if truncated is not None and marks.get(_TRUNCATE, "") < truncated < high:
        _fold_again(prepared, None, truncated, views)
    elif met.late and met.touched is not None:
        _fold_again(prepared, bags.sides(met.touched), truncated, views)
    elif taken.distinct:
        goes_on = True
        _go_on(prepared, named(bags.sides(unseen), views), takes_out=taken.removals > 0)
    state.mark(marks, {_HIGH: max(high, counts.last or ""), _TRUNCATE: truncated or ""})
    grown = accounting.merged(prepared.current(), start, prepared.run.cut.branch).grown
    missing = _removed_nothing(plan, grown, taken) if goes_on else 0
    contradictions = bag_contradictions.missing_rows(prepared, unseen, rows, start) if missing and plan.compares else []
    contradictions += bag_contradictions.different_copies(prepared, rows) if counts.differing else []
    contradictions += bag_contradictions.incomplete(prepared, rows)
    change = grown - emptied.rows
    return Built(
        object=plan.found.object,
        target=plan.target,
        counts=accounting.account(
            plan.found,
            applied=taken.distinct + plan.found.truncates,
            superseded=counts.truncated,
            duplicate=taken.duplicates,
            quarantined=counts.bad,
        ),
        rows_change=change,
        # A row that was updated, or came again, cannot be told from one that went while another came.
        deleted=max(0, -change),
        committed_at=counts.committed_at,
        snapshots=prepared.snapshots(),
        contradictions=contradictions,
    )


def _judged(prepared: Prepared, rows: DataFrame) -> tuple[DataFrame, _Counts]:
    """Return the new events, each once, with copies marked, and how many there are of each kind."""
    plan = prepared.plan
    events = bag_events.once(rows, plan)
    counts = _counted(prepared, events, rows)
    if counts.in_question:
        events = bag_events.settled(events, plan.found.object)
        counts = _counted(prepared, events)
    if plan.has_deliveries and not plan.found.goes_on:
        # All of the change log: a part of it may be older than deliveries.
        events = bag_events.with_stored(events)
        counts = _counted(prepared, events)
    return events, counts


def _removed_nothing(plan: Plan, grown: int, taken: _Counts | Met) -> int:
    """Return how many rows were to go out and were not there, where a table went on from the rows that it had.

    Raises:
        LedgerError: no such number explains by how many rows the table grew.
    """
    missing = grown - taken.insertions + taken.removals
    if not 0 <= missing <= taken.removals:
        raise LedgerError(
            f"{plan.found.object}: the ledger does not close. {taken.insertions} events put a row in and "
            f"{taken.removals} take one out, and the table grew by {grown} rows. Nothing of it is published"
        )
    return missing


def _counted(prepared: Prepared, events: DataFrame, rows: DataFrame | None = None) -> _Counts:
    """Return how many events there are of each kind, and quarantine the bad ones, if ``rows`` has them all.

    Raises:
        LedgerError: the counts are not all events.
    """
    found = prepared.plan.found
    sound = F.col("set_aside").isNull()
    truncated = F.col("set_aside") == reasons.TRUNCATED
    row = events.agg(
        F.sum(F.when(sound, F.col("copies"))).alias("sound"),
        F.count(F.when(sound & ~F.col(IS_COPY), 1)).alias("distinct"),
        F.sum(F.when(sound, bag_events.copies_beyond_the_first())).alias("duplicates"),
        F.count_if(IN_QUESTION).alias("in_question"),
        F.sum(F.when(truncated, F.col("copies"))).alias("truncated"),
        F.sum(F.when(~truncated, F.col("copies"))).alias("bad"),
        F.count(F.when(sound & ~F.col(IS_COPY) & F.col("old").isNotNull(), 1)).alias("removals"),
        F.count(F.when(sound & ~F.col(IS_COPY) & F.col("new").isNotNull(), 1)).alias("insertions"),
        F.count_if(sound & F.col("unequal") & F.lit(not prepared.plan.has_deliveries)).alias("differing"),
        F.min(F.when(sound, F.col("position"))).alias("first"),
        F.max(F.when(sound, F.col("position"))).alias("last"),
        F.unix_micros(F.max(F.when(sound, F.col("committed_at")))).alias("committed_at"),
    ).first()
    totals = row.asDict() if row else {}
    counts = _Counts(
        sound=int(totals.get("sound") or 0),
        distinct=int(totals.get("distinct") or 0),
        duplicates=int(totals.get("duplicates") or 0),
        in_question=int(totals.get("in_question") or 0),
        truncated=int(totals.get("truncated") or 0),
        bad=int(totals.get("bad") or 0),
        removals=int(totals.get("removals") or 0),
        insertions=int(totals.get("insertions") or 0),
        differing=int(totals.get("differing") or 0),
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
    if counts.bad and rows is not None:
        quarantine.put(prepared.run, prepared.plan, rows)
    return counts


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
    events = named(bag_events.judged(changes, plan, truncated), views)
    sides, stored = bags.sides(events.where(~F.col(IS_COPY))), bags.stored_sides(prepared.stored(), prepared.plan)
    if touched is not None:
        sides, stored = bags.of_values(sides, touched), bags.of_values(stored, touched)
    gone = None
    if plan.has_deliveries:
        # A row may be published of an event that now proves to be a copy of another one.
        copies = events.where(IS_COPY).select("position")
        gone = stored.join(copies, "position", "left_semi")
        stored = stored.join(copies, "position", "left_anti")
    folded = bags.changed(named(bags.marked(sides, stored), views))
    if gone is not None:
        leaves = gone.select("value.*", "position", "committed_at", F.lit(True).alias("deleted"))
        folded = folded.unionByName(leaves)
    merging.exchange(folded, prepared.plan, prepared.branch)
