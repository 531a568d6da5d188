"""Build the candidate of a table with a key: fold, combine with the stored rows, merge, keep what later runs need.

Three Spark actions for the usual table (fold, merge, tombstones); the merge is one commit, which carries the marker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import (
    accounting,
    before_image_samples,
    contradictions,
    history_candidate,
    idle_events,
    loaded_again,
    marked_again,
    merging,
    moved_rows,
    quarantine,
    row_writing,
    shared_keys,
    truncation,
)
from tidemark.compaction.accounting import Merged
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Built, Contradiction
from tidemark.compaction.event_log import Events
from tidemark.errors import LedgerError, RebuildNeededError
from tidemark.events import Operation
from tidemark.folding import actions, frames, key_bounds, keyed, row_images, update_halves
from tidemark.folding import cells as row_cells
from tidemark.folding.key_bounds import KeyBounds
from tidemark.folding.keyed import Totals
from tidemark.folding.truncates import Truncates
from tidemark.lake.branches import MARKER
from tidemark.lake.commits import commit_files
from tidemark.spark.session import checkpointed, named
from tidemark.spark.tuning import gathered, sent
from tidemark.tables import reasons, row_checks
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import DELETED, POSITION, was_hard


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The new events of one table, folded."""

    rows: DataFrame
    """``folding.keyed.fold``, kept."""
    totals: Totals
    """Of the rows."""
    acted: Callable[[], DataFrame]
    """``folding.actions.actions`` that the rows were folded from."""
    plan: Plan
    """The plan that its events were read by."""
    images: Callable[[], pa.Table]
    """``before_image_samples.images_of`` of the rows."""


def build(prepared: Prepared, fold: Fold | None, views: ExitStack) -> Built:
    """Build the candidate of a table from its new events.

    Args:
        prepared: the table.
        fold: of its new events, where they were folded with the events of other tables (``shared_folds``).
        views: keeps the names that frames are read by until the table is built.

    Raises:
        LedgerError: events went missing between the change log and the fold.
        RebuildNeededError: an update that the table has taken in proves to be one that moves a row.
    """
    plan, state = prepared.plan, prepared.state
    if plan.soft and was_hard(prepared.table):
        merging.mark_alive(prepared.run.session, prepared.branch)
    truncates = truncation.known(prepared)
    events = cache(prepared.log.events)
    if fold is None:
        fold = _fold(prepared, events(), truncates, views)
    totals = fold.totals
    aside = _set_aside(prepared, fold, totals)
    emptied = truncation.empty(prepared, truncates, fold.rows)
    prepared.fill_defaults()
    late = marked_again.late_keys(prepared, fold.rows, totals.oldest) if plan.soft else None
    by_cell = plan.found.partial or "cells" in state.kinds or late is not None
    start = prepared.tip()
    bounds = row_writing.bounds_of(prepared, fold.rows, totals) if late is None else key_bounds.ANY
    judged = _by_cell(prepared, fold, late, bounds) if by_cell else None
    ready = _alive(prepared, fold.rows, totals.oldest) if judged is None else judged.where("changes")
    marked = emptied.marked + (_marked_rows(prepared, ready, bounds) if totals.marks else 0)
    moved = _moved_rows(prepared, ready, bounds, by_cell=by_cell) if totals.away or late is not None else 0
    state.keep(ready, truncates.newest.values(), rows=by_cell or bool(totals.deletes))
    replaced = row_writing.write(prepared, ready, bounds, totals, by_cell=by_cell)
    shared_keys.refuse(prepared, ready)
    if plan.keeps_versions:
        history_candidate.build(prepared, events(), views)
    merged = accounting.merged(prepared.current(), start, prepared.run.cut.branch).exchanged(replaced)
    lost = max(0, merged.deleted + emptied.rows - moved - emptied.returned)
    applied = merged.changed - moved
    lacking = totals.newest - applied
    idle = _idle(prepared, fold, judged, bounds, start, lacking=lacking) if lacking else 0
    _record_checks(prepared)
    return Built(
        object=plan.found.object,
        target=plan.target,
        counts=accounting.account(
            plan.found,
            applied=applied + plan.found.truncates,
            superseded=totals.overtaken + idle + aside.below_truncate,
            duplicate=totals.duplicates,
            quarantined=aside.quarantined,
        ),
        rows_change=merged.grown - emptied.rows,
        deleted=marked if plan.soft else lost,
        committed_at=totals.committed_at or None,
        snapshots=prepared.snapshots(),
        contradictions=_contradictions(prepared, fold, judged, None if by_cell or plan.soft else merged, start),
    )


def _idle(
    prepared: Prepared, fold: Fold, judged: DataFrame | None, bounds: KeyBounds, start: int, *, lacking: int
) -> int:
    """Return how many folded rows leave the table as it was, counted by themselves; they should be ``lacking``."""
    if judged is not None:
        return idle_events.by_cell(judged)
    return idle_events.against_rows(prepared, fold.rows, fold.totals, bounds, start, lacking=lacking)


def _record_checks(prepared: Prepared) -> None:
    """Record in the table by which checks its rows were judged."""
    plan = prepared.plan
    if row_checks.are_recorded(plan.found.table, plan.row_checks):
        summary = {MARKER + row_checks.MARK: row_checks.as_text(plan.row_checks)}
        commit_files(prepared.current(), [], summary=summary, branch=prepared.run.cut.branch)


def _fold(prepared: Prepared, events: Events, truncates: Truncates, views: ExitStack) -> Fold:
    """Fold the table's events by themselves."""
    plan, rows = events
    if plan.found.truncates:
        rows = rows.where(F.col("operation") != Operation.TRUNCATE)
    kept: Sequence[str] = actions.KEPT
    images = before_image_samples.wanted(plan, plan.found.events)
    if images:
        rows, kept = row_images.with_images(rows, images.share), (*kept, *row_images.KEPT)
    acted = moved_rows.acted(prepared.log, Events(plan, rows), None if plan.soft else truncates, kept)
    acted = named(gathered(acted), views)
    folded = keyed.fold(acted.where(F.col("set_aside").isNull()), plan, truncates=truncates, images=images)
    if plan.soft and truncates:
        folded = keyed.truncated_softly(folded, plan, truncates)
    folded = checkpointed(folded)
    row = folded.agg(*keyed.totals(plan, images=plan.compares_images)).first()
    totals = Totals.of(row.asDict() if row else {})
    images_of = partial(before_image_samples.images_of, folded)
    if not plan.found.splits:
        return Fold(rows=folded, totals=totals, acted=lambda: acted, plan=plan, images=images_of)
    if plan.found.goes_on and (update_halves.earlier_column(rows) or _left_out(prepared, totals)):
        _refuse_undone(prepared, acted)
    known = folded.where(F.col("position").isNotNull())
    return Fold(rows=known, totals=totals, acted=lambda: acted, plan=plan, images=images_of)


def _refuse_undone(prepared: Prepared, acted: DataFrame) -> None:
    """Raise where the table has taken in a new half that is set aside, now that its old half has come.

    Raises:
        RebuildNeededError: it has.
    """
    log = prepared.log
    torn = checkpointed(update_halves.new_halves(acted))
    bounds = torn.agg(F.min("position"), F.max("position")).first()
    if bounds is None or bounds[0] is None:
        return
    taken = log.without_set_aside(log.taken().where(F.col("position").between(*bounds)))
    if not taken.join(sent(torn), "position", "left_semi").isEmpty():
        raise RebuildNeededError(f"{log.plan.found.object}: the old half of an update came late, and has another key")


def _left_out(prepared: Prepared, totals: Totals) -> int:
    """Return how many events take no part, as the ledger and the fold count them."""
    found = prepared.plan.found
    return found.events - found.truncates - totals.events


class _SetAside(NamedTuple):
    """How many events take no part."""

    below_truncate: int
    """Nothing is wrong with them."""
    quarantined: int


def _set_aside(prepared: Prepared, fold: Fold, totals: Totals) -> _SetAside:
    """Quarantine the events that take no part, except those below a TRUNCATE; return how many there are.

    Raises:
        LedgerError: the events that were folded, TRUNCATEs, and these are not all events.
    """
    found, expected = prepared.plan.found, _left_out(prepared, totals)
    counts = quarantine.set_aside(prepared.run, prepared.plan, fold.acted()) if expected else {}
    if expected != sum(counts.values()):
        raise LedgerError(
            f"{found.object}: {found.events} events in the change log, but {totals.events} folded + "
            f"{found.truncates} truncates + {sum(counts.values())} set aside. Nothing of it is published."
        )
    below_truncate = counts.pop(reasons.TRUNCATED, 0)
    return _SetAside(below_truncate, sum(counts.values()))


def _by_cell(prepared: Prepared, fold: Fold, late: DataFrame | None, bounds: KeyBounds) -> DataFrame:
    """Return what rows become where cells have writers of their own, or deleted rows get late events; kept."""
    plan, folded = prepared.plan, fold.rows
    if late is not None:
        folded = folded.join(late, frames.key_names(plan), "left_anti")
    ready = row_cells.combine(folded, bounds.of(prepared.stored(), plan), prepared.state.rows(), plan)
    if late is not None:
        ready = ready.unionByName(marked_again.rows(prepared, late))
    return checkpointed(ready)


def _alive(prepared: Prepared, folded: DataFrame, oldest: str | None) -> DataFrame:
    """Return folded rows without late events of keys that are dead; a batch newer than all that is kept has none."""
    if oldest is None or prepared.state.is_below(oldest):
        return folded
    return row_cells.not_dead(folded, prepared.state.tombstones(), prepared.plan)


def _moved_rows(prepared: Prepared, ready: DataFrame, bounds: KeyBounds, *, by_cell: bool) -> int:
    """Return how many rows change because their key did: the ledger counts their event where it wrote the new key."""
    plan = prepared.plan
    # With soft deletes the old key gets a row even if it had none.
    how = "left" if plan.soft else "inner"
    stored = bounds.of(prepared.stored(), plan).select(*frames.key_columns(plan), POSITION)
    gone = ready.where("moved_away").join(stored, frames.key_names(plan), how)
    # By cell, a row that a newer event wrote a part of lives on without the cells that moved away.
    changes = F.col(POSITION) <= F.col("position") if by_cell else F.col(POSITION) < F.col("position")
    return gone.where(changes | F.col(POSITION).isNull()).count()


def _marked_rows(prepared: Prepared, ready: DataFrame, bounds: KeyBounds) -> int:
    """Return how many rows are alive and become marked as deleted: readers who leave such rows out lose them."""
    plan = prepared.plan
    alive = bounds.of(prepared.stored(), plan).where(~F.col(DELETED)).select(*frames.key_columns(plan), POSITION)
    gone = ready.where(F.col("deleted") & ~F.col("moved_away")).join(alive, frames.key_names(plan))
    return gone.where(F.col(POSITION) < F.col("position")).count()


def _contradictions(
    prepared: Prepared, fold: Fold, judged: DataFrame | None, merged: Merged | None, start: int
) -> list[Contradiction]:
    """Return the contradictions between the new events and the rows that they were merged into, or among them."""
    found: list[Contradiction] = []
    if judged is not None and fold.totals.parts:
        found += contradictions.incomplete(prepared, fold.acted(), judged)
    found += loaded_again.found(prepared, fold.acted(), fold.totals, start)
    if prepared.plan.compares and contradictions.may_be(prepared, fold.rows, fold.totals, merged, start):
        found += contradictions.found(prepared, fold.acted(), start)
    if fold.plan.compares_images:
        found += _before_images(prepared, fold, start)
    if fold.totals.differing:
        sound = fold.acted().where(F.col("set_aside").isNull() & ~F.col("moved_away"))
        with_content = sound.withColumn("content", frames.content(prepared.plan))
        found += contradictions.different_copies(prepared, with_content, [*frames.key_names(prepared.plan), "position"])
    return found


def _before_images(prepared: Prepared, fold: Fold, start: int) -> list[Contradiction]:
    """Return the before images that are not the row before: sought where one of a few differs."""
    if not before_image_samples.differ(prepared, fold.plan, fold.images, fold.totals, start):
        return []
    of_deletes = before_image_samples.are_of_deletes(fold.plan, fold.totals)
    return contradictions.before_images(prepared, prepared.log.changes(), start, of_deletes=of_deletes)
