"""Putting the published tables of a source back to an earlier cut.

Restoring is written ahead, as publishing is: the ledger first says to which cut the tables go back. A table, its state
and its whole rows go back in commits of their own. If a restore is cut short, whoever comes next carries it out
(docs/adr/0110).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog
from pyiceberg.table import Table

from tidemark.errors import ConfigurationError, PublishConflictError, TidemarkError
from tidemark.lake import purging
from tidemark.lake.branches import cut_tags, head, put_back, remove_tags, was_rebuilt
from tidemark.lake.earlier_schemas import has_other_names, schema_with
from tidemark.lake.filters import above
from tidemark.lake.lake import Lake
from tidemark.lake.names import cut_tag, is_feed, is_history, is_whole
from tidemark.ledger import cuts
from tidemark.ledger.check_rows import CheckRow
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.reconciliation_rows import ReconciliationRow
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """Where a table is to go."""

    object: str
    """The published table that it belongs to, by the source's name."""
    table: Table
    snapshot: int | None
    """None: it is dropped."""

    def cannot_go_on(self) -> bool:
        """Return whether the next run cannot go on from the snapshot.

        After a rename or drop, the table keeps the names of today, and compact would make the change a second time: a
        column that was given the name of a dropped one would go too.
        """
        if self.snapshot is None:
            return False
        return was_rebuilt(self.table, self.snapshot) or has_other_names(self.table, self.snapshot)


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
    _finish_restore(lake, ledger)
    cuts.finish_or_drop(lake, ledger)
    moves = list(_moves(lake, ledger, cut))
    last = ledger.last_cut()
    # A number means one cut for good: somebody may be approving one that was held.
    ledger.begin_restore(cut, max(last.cut if last is not None else 0, ledger.left_number()))
    _forget_cuts(lake, ledger, cut, moves)
    for move in moves:
        _carry_out(move)
    _end(ledger, cut)
    return len(cuts.shown_by(ledger, cut))


def finish(lake: Lake, ledger: Ledger) -> None:
    """Finish what was cut short: a restore, or the publishing of a cut (``cuts.finish``)."""
    _finish_restore(lake, ledger)
    cuts.finish(lake, ledger)


def _finish_restore(lake: Lake, ledger: Ledger) -> None:
    """Carry out a restore that was cut short.

    A table of which a part cannot go back any more is to be built again, as another part of it may have gone back.
    """
    cut = ledger.restored_cut()
    if cut is None:
        return
    log.info("restore_resumed", cut=cut)
    moves = list(_moves(lake, ledger, cut, resumed=True))
    _forget_cuts(lake, ledger, cut, moves)
    for move in moves:
        try:
            _carry_out(move)
        except PublishConflictError as error:
            _give_up(ledger, move.object, error)
    _end(ledger, cut)


def _give_up(ledger: Ledger, name: str, error: TidemarkError) -> None:
    log.warning("not_restored", object=name, reason=str(error))
    ledger.request_rebuild([name])


def _moves(lake: Lake, ledger: Ledger, cut: int, *, resumed: bool = False) -> Iterator[_Move]:
    """Yield where each table goes; if a restore is resumed, a table that is no longer kept as it was is given up."""
    shown = cuts.shown_by(ledger, cut)
    published = [
        (target, own, name) for (target, own), beside in cuts.ever_published(ledger).items() for name in beside
    ]
    for target, own, name in published:
        table = lake.find(name)
        if table is None:
            continue
        try:
            snapshot = _restored(table, shown[target].cut) if target in shown else None
        except ConfigurationError as error:
            if not resumed:
                raise
            _give_up(ledger, own, error)
            snapshot = head(table)
        yield _Move(object=own, table=table, snapshot=snapshot)


def _forget_cuts(lake: Lake, ledger: Ledger, cut: int, moves: Sequence[_Move]) -> None:
    """Forget the cuts after one, and drop what tables have of them; the tables are not moved yet."""
    last = ledger.last_cut()
    if last is not None and last.state != CutState.PUBLISHED:
        cuts.drop_candidates(lake, ledger, last.cut)
    ledger.request_rebuild(move.object for move in moves if move.cannot_go_on())
    # A tag says that a table shows a cut, so no tag may be left of the cuts that go.
    for move in moves:
        remove_tags(move.table, [cut_tag(number) for number in cut_tags(move.table) if number > cut])
    ledger.forget(CutRow, above("cut", cut))


def _carry_out(move: _Move) -> None:
    """Drop a table, or put it back. A feed stays."""
    if move.snapshot is None:
        purging.drop(move.table)
    elif not is_feed(move.table.name()[-1]):
        table = move.table.refresh()
        put_back(table, move.snapshot, schema_with(table, move.snapshot))


def _end(ledger: Ledger, cut: int) -> None:
    """Forget what the ledger says of the tables in the cuts that went, now that no table shows them."""
    ledger.forget(TableRow, above("cut", cut))
    for kind in (ReconciliationRow, CheckRow, ContradictionRow):  # what was found of later rows says nothing of these
        ledger.forget(kind, above("cut", cut))
    ledger.end_restore()
