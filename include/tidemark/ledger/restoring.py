"""Putting the published tables of a source back to an earlier cut."""

from __future__ import annotations

from pyiceberg.table import Table

from tidemark.lake import purging
from tidemark.lake.branches import cut_tags, head, put_back, remove_tags, was_rebuilt
from tidemark.lake.earlier_schemas import has_other_names, schema_with
from tidemark.lake.filters import above
from tidemark.lake.lake import Lake
from tidemark.lake.names import cut_tag, is_feed, is_history, is_whole
from tidemark.ledger import cuts
from tidemark.ledger.check_rows import CheckRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import ReconciliationRow
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState


def _restored(table: Table, cut: int) -> int | None:
    """Return the snapshot that a table goes back to; None for a history, or whole rows, that were not kept then.

    These begin again. A feed stays where it is.
    """
    if is_feed(table.name()[-1]):
        return head(table)
    name = table.name()[-1]
    if (is_history(name) or is_whole(name)) and cut_tag(cut) not in table.refs():
        return None
    return cuts.tagged_snapshot(table, cut)


def _is_to_be_rebuilt(table: Table, snapshot: int) -> bool:
    """Return whether the next run cannot go on from a snapshot.

    After a rename or drop, the table keeps the names of today, and compact would make the change a second time: a
    column that was given the name of a dropped one would go too.
    """
    return was_rebuilt(table, snapshot) or has_other_names(table, snapshot)


def restore(lake: Lake, ledger: Ledger, cut: int) -> int:
    """Put all tables of the source back to what a published cut shows, and forget the cuts after it.

    The change log keeps their events: the next compact folds them again. A table that the cut does not have is
    dropped with its files, and so is its feed. Any other feed goes on: what changed is added to it for its readers
    (``compaction.feeding``).

    Returns:
        How many tables there are.

    Raises:
        ConfigurationError: the cut is not published, or no longer kept; nothing was changed.
    """
    cuts.finish_or_drop(lake, ledger)
    shown = cuts.shown_by(ledger, cut)
    published = [(*names, name) for names, beside in cuts.ever_published(ledger).items() for name in beside]
    tables = [(target, own, table) for target, own, name in published if (table := lake.find(name)) is not None]
    moves = [
        (own, table, _restored(table, shown[target].cut) if target in shown else None) for target, own, table in tables
    ]
    last = ledger.last_cut()
    if last is not None and last.state != CutState.PUBLISHED:
        cuts.drop_candidates(lake, ledger, last.cut)
    ledger.request_rebuild({own for own, table, to in moves if to is not None and _is_to_be_rebuilt(table, to)})
    # A number means one cut for good: somebody may be approving one that was held.
    if last is not None:
        ledger.leave_number(max(last.cut, ledger.left_number()))
    # A tag says that a table shows a cut, so no tag may be left of the cuts that go.
    for _, table, _ in moves:
        remove_tags(table, [cut_tag(number) for number in cut_tags(table) if number > cut])
    # Then the cuts go: run again from here on, compact folds their events onto whatever main is, which changes no row.
    ledger.forget(CutRow, above("cut", cut))
    for _, table, snapshot in moves:
        if snapshot is None:
            purging.drop(table)
        elif not is_feed(table.name()[-1]):
            put_back(table.refresh(), snapshot, schema_with(table, snapshot))
    ledger.forget(TableRow, above("cut", cut))
    for kind in (ReconciliationRow, CheckRow):  # what was found of later rows says nothing of these
        ledger.forget(kind, above("cut", cut))
    return len(shown)
