"""The ledger's row of a table: what became of each of its events, and of its rows."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import msgspec
from pyiceberg.table import Table

from tidemark.compaction.decisions import Built, Stopped, Unmoved, Waiting
from tidemark.compaction.rows_before import rows_before
from tidemark.compaction.run import Run
from tidemark.errors import LedgerError
from tidemark.lake.branches import ancestry
from tidemark.ledger.event_counts import EventCounts
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import TableState
from tidemark.tables.plan import Found
from tidemark.values.iso8601 import EPOCH


class Merged(NamedTuple):
    """Rows that commits changed, as their snapshots say."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def exchanged(self, replaced: int) -> Merged:
        """Return the same change, with rows that were deleted and added again counted as updated."""
        return Merged(self.inserted - replaced, self.updated + replaced, self.deleted - replaced)

    @property
    def changed(self) -> int:
        """Rows that are other than before."""
        return self.inserted + self.updated + self.deleted

    @property
    def grown(self) -> int:
        """How many rows the table has more than before."""
        return self.inserted - self.deleted


def merged(table: Table, start: int, branch: str) -> Merged:
    """Return what the commits on a branch since the snapshot ``start`` did."""
    counts = dict.fromkeys(Merged._fields, 0)
    for snapshot in ancestry(table, branch):
        if snapshot.snapshot_id == start:
            break
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        found = {name: summary.get(f"spark.merge-into.num-target-rows-{name}") for name in counts}
        if not any(found.values()):
            found["inserted"] = summary.get("added-records")  # an append
        for name, count in found.items():
            counts[name] += int(count or 0)
    return Merged(**counts)


def account(found: Found, *, applied: int, superseded: int, duplicate: int, quarantined: int) -> EventCounts:
    """Return what became of the events of a table that was built; each term was counted by itself.

    Args:
        found: the table's events, as normalize counted them.
        applied: events that changed a row, as the commits say, and TRUNCATEs.
        superseded: events of which nothing is left.
        duplicate: copies of events that were counted.
        quarantined: events that could not be taken in.

    Raises:
        LedgerError: these are not all events, or more.
    """
    accounted = applied + superseded + duplicate + quarantined
    if accounted != found.events or min(applied, superseded, duplicate, quarantined) < 0:
        raise LedgerError(
            f"{found.object}: the ledger does not close. {applied} events applied + {superseded} superseded + "
            f"{duplicate} duplicate + {quarantined} quarantined are {accounted}, and the change log has {found.events} "
            "new events of the table. Nothing is published. Run compact again; if this comes again, "
            "please report it: the table may lack rows"
        )
    withheld = found.withheld
    return EventCounts(
        events=found.events + withheld.held + withheld.discarded,
        applied=applied,
        superseded=superseded + withheld.discarded,
        duplicate=duplicate,
        held=withheld.held,
        quarantined=quarantined,
    )


def row(decision: Built | Waiting | Unmoved | Stopped, run: Run) -> TableRow:
    """Return the ledger's row of what was decided for a table."""
    match decision:
        case Built():
            return _built(decision, run)
        case Waiting(found=found, reason=reason, request=request):
            waits = _all_held(found, run, TableState.WAITING, reason)
            if request is None:
                return waits
            return msgspec.structs.replace(waits, rebuilt=request, rows_after=0, deleted=waits.rows_before)
        case Stopped(found=found, reason=reason):
            return _all_held(found, run, TableState.STOPPED, reason)
        case Unmoved(object=name, target=target, withheld=withheld):
            counts = EventCounts(
                events=withheld.held + withheld.discarded, superseded=withheld.discarded, held=withheld.held
            )
            rows = run.rows_of(name)
            unmoved = TableRow(
                cut=run.cut.number,
                object=name,
                target=None if target is None else str(target),
                state=TableState.UNMOVED,
                batch=run.cut.batch,
                rows_before=rows,
                rows_after=rows,
            )
            return unmoved.with_counts(counts)


def _built(built: Built, run: Run) -> TableRow:
    before = rows_before(run, built.object, built.target)
    after = (before if built.request is None else 0) + built.rows_change
    committed_at = None if built.committed_at is None else EPOCH + timedelta(microseconds=built.committed_at)
    written = TableRow(
        cut=run.cut.number,
        object=built.object,
        target=str(built.target),
        state=TableState.CANDIDATE,
        batch=run.cut.batch,
        rebuilt=built.request,
        rows_before=before,
        rows_after=after,
        deleted=max(0, before - after) if built.deleted is None else built.deleted,
        committed_at=committed_at,
        base=built.snapshots.base,
        snapshot=built.snapshots.candidate,
    )
    return written.with_counts(built.counts)


def _all_held(found: Found, run: Run, state: TableState, reason: str) -> TableRow:
    """Return the row of a table that stays where it is, with all of its new events held."""
    events = found.events + found.withheld.held + found.withheld.discarded
    rows = run.rows_of(found.object)
    written = TableRow(
        cut=run.cut.number,
        object=found.object,
        state=state,
        reason=reason,
        batch=run.standing.batch_of(found.object),
        rows_before=rows,
        rows_after=rows,
    )
    return written.with_counts(EventCounts(events=events, held=events))
