"""Cuts: the set of snapshots of a source's tables that is published together.

Publishing is written ahead: the cut is first marked ``publishing`` in the ledger, then each table's ``main`` is moved
by a compare-and-set, tagged, and the cut marked ``published``. A crash in between is finished by whoever comes next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import msgspec
import structlog
from pyiceberg.table import Table

from tidemark.errors import ConfigurationError, PublishConflictError
from tidemark.lake import pending_schema
from tidemark.lake.branches import cut_tags, drop_branch, fast_forward, head, remove_tags
from tidemark.lake.filters import at_most, equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier, beside, candidate_branch, cut_tag, moved_together, whole_beside
from tidemark.ledger import moving
from tidemark.ledger.erasing_cuts import rows_of_erasures
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState

log = structlog.get_logger(__name__)


def last_published(ledger: Ledger) -> CutRow | None:
    """Return the newest cut that readers of ``main`` see."""
    return max(ledger.cuts(equals("state", CutState.PUBLISHED)), key=lambda row: row.cut, default=None)


def under_way(ledger: Ledger) -> CutRow | None:
    """Return the newest cut, if it is not published."""
    cut = ledger.last_cut()
    return None if cut is None or cut.state == CutState.PUBLISHED else cut


def ever_published(ledger: Ledger) -> dict[tuple[str, str], tuple[Identifier, ...]]:
    """Return, of each table that was ever published, the tables that move with it.

    Returns:
        By the published name and the source's name: the table, its state, its history, its feed, and its whole rows
        and versions. Only the first two certainly exist.
    """
    rows = ledger.newest_tables(equals("state", TableState.PUBLISHED), by=("target", "object"))
    return {
        (str(row.identifier), row.object): (
            *moved_together(row.identifier),
            *beside(row.identifier),
            *whole_beside(row.identifier),
        )
        for row in sorted(rows, key=lambda row: str(row.identifier))
    }


def oldest_kept(ledger: Ledger, *, newest: int, since: datetime) -> int:
    """Return the oldest cut that stays readable: one of the ``newest``, or published since a time; 0 without any.

    Cuts of erasures, which no check judged, are not counted: a list of erased rows would take the place of all others.
    """
    published = ledger.cuts(equals("state", CutState.PUBLISHED))
    erasing = {row.cut for row in rows_of_erasures(ledger, max((row.cut for row in published), default=0))}
    counted = sorted((row.cut for row in published if row.cut not in erasing), reverse=True)
    young = (row.cut for row in published if row.written_at is not None and row.written_at >= since)
    return min([*counted[:newest], *young], default=0)


def drop_tags(table: Table, oldest: int) -> int:
    """Drop the tags of cuts that no cut from ``oldest`` on needs, and return how many went.

    A table is tagged in the cuts that changed it, so the newest tag before ``oldest`` is what that cut shows of it.
    """
    gone = [number for number in cut_tags(table) if number <= oldest][:-1]
    remove_tags(table, [cut_tag(number) for number in gone])
    return len(gone)


def shown_by(ledger: Ledger, cut: int) -> dict[str, TableRow]:
    """Return what a published cut shows: by target the row of the newest cut up to it that changed the table.

    They are ordered by target.

    Raises:
        ConfigurationError: there is no such cut, or it is not published.
    """
    published = {row.cut for row in ledger.cuts(equals("state", CutState.PUBLISHED))}
    if cut not in published:
        known = f"{min(published)} to {max(published)}" if published else "none yet"
        raise ConfigurationError(f"cut {cut} is not published; published cuts: {known}")
    rows = ledger.newest_tables(equals("state", TableState.PUBLISHED), at_most("cut", cut), by=("target",))
    rows += [row for row in rows_of_erasures(ledger, cut) if row.cut in published]
    shown = {str(row.identifier): row for row in sorted(rows, key=lambda row: row.cut)}
    return {target: shown[target] for target in sorted(shown)}


def tagged_snapshot(table: Table, cut: int) -> int:
    """Return the snapshot of a table, or of its state, that a cut published.

    Raises:
        ConfigurationError: the tag was dropped.
    """
    ref = table.refs().get(cut_tag(cut))
    if ref is None:
        name = ".".join(table.name())
        raise ConfigurationError(f"{name} as of cut {cut} is no longer kept (`maintenance: keep_cuts`, or an erasure)")
    return ref.snapshot_id


def tables_of(ledger: Ledger, cut: int) -> list[TableRow]:
    """Return the rows of the cut's tables, ordered by the source's names."""
    return sorted(ledger.tables(equals("cut", cut)), key=lambda row: row.object)


def is_built(row: TableRow) -> bool:
    """Return whether a table of a cut has a candidate."""
    return row.state not in {TableState.STOPPED, TableState.UNMOVED, TableState.WAITING}


def set_state(ledger: Ledger, cut: CutRow, state: CutState) -> CutRow:
    """Write a cut's new state to the ledger, and return the cut with it."""
    changed = msgspec.structs.replace(cut, state=state)
    ledger.replace(CutRow, [changed], equals("cut", cut.cut))
    return changed


def publish(lake: Lake, ledger: Ledger, cut: CutRow) -> None:
    """Move ``main`` of every table of the cut to its candidate, tag it, and mark the cut published.

    What would stop a move is looked for in all tables before the first one moves (``moving.obstacle``).

    Raises:
        PublishConflictError: a candidate is gone, or another writer changed it or its table, and no table was moved for
            it; or a ``main`` moved since its candidate was built.
    """
    rows = tables_of(ledger, cut.cut)
    built = [row for row in rows if is_built(row)]
    required, tables = dict[Identifier, Table](), dict[Identifier, Table]()
    for row in built:
        needed = moving.required(lake, row.identifier, cut.cut)
        required |= needed
        tables |= needed | moving.allowed(lake, row.identifier, needed)
    _require_candidates(ledger, cut, required.values())
    try:
        _require_judged(cut, built, required)
        _require_movable(tables.values(), cut.cut)
        cut = set_state(ledger, cut, CutState.PUBLISHING)
        for row in built:
            move(lake, row.identifier, cut.cut, tables)
    except PublishConflictError:
        _give_up(lake, ledger, cut)  # another writer was faster
        raise
    shown = [msgspec.structs.replace(row, state=TableState.PUBLISHED) if is_built(row) else row for row in rows]
    ledger.replace(TableRow, shown, equals("cut", cut.cut))
    ledger.answered({row.object: row.rebuilt for row in shown if row.rebuilt and row.state != TableState.STOPPED})
    set_state(ledger, cut, CutState.PUBLISHED)
    log.info("published", cut=cut.cut, tables=len(rows))


def finish(lake: Lake, ledger: Ledger) -> None:
    """Finish a cut whose publishing was cut short; every check had passed before it began.

    Where another writer moved a ``main`` meanwhile, the cut is to be built again instead.
    """
    for cut in ledger.cuts(equals("state", CutState.PUBLISHING)):
        log.info("publishing_resumed", cut=cut.cut)
        try:
            publish(lake, ledger, cut)
        except PublishConflictError as error:
            if not ledger.cuts(equals("cut", cut.cut), equals("state", CutState.REPLACED)):
                raise
            log.warning("cut_is_built_again", cut=cut.cut, reason=str(error))


def finish_or_drop(lake: Lake, ledger: Ledger) -> None:
    """Finish a cut whose publishing was cut short; give it up where only a person could finish it.

    For a restore, which puts back the tables that moved.
    """
    try:
        finish(lake, ledger)
    except (PublishConflictError, ConfigurationError) as error:
        for cut in ledger.cuts(equals("state", CutState.PUBLISHING)):
            _give_up(lake, ledger, cut)
            log.warning("cut_is_given_up", cut=cut.cut, reason=str(error))


def _give_up(lake: Lake, ledger: Ledger, cut: CutRow) -> None:
    """Let a cut be built again, and tables that it left so that no cut can go on from them from all events.

    These are tables that moved without their state, and tables that moved and got other names (docs/adr/0099).
    """
    built = [row for row in tables_of(ledger, cut.cut) if is_built(row)]
    ledger.request_rebuild({*moving.in_part(lake, built, cut.cut), *moving.renamed(lake, built, cut.cut)})
    set_state(ledger, cut, CutState.REPLACED)


def number_of_next(ledger: Ledger) -> int:
    """Return the number that the next cut gets.

    The number of an unpublished cut is used again, unless the cut awaits approval: a person who approves a number means
    the cut that had it then.
    """
    newest, last = ledger.last_cut(), last_published(ledger)
    number = max(last.cut if last else 0, ledger.left_number()) + 1
    is_awaited = newest is not None and newest.state in {CutState.AWAITING_APPROVAL, CutState.REPLACED}
    return max(newest.cut + 1, number) if newest is not None and is_awaited else number


def next_number(lake: Lake, ledger: Ledger) -> int:
    """Return the number of the cut that is to be built; candidates of a cut that was never published are dropped."""
    newest, number = ledger.last_cut(), number_of_next(ledger)
    if newest is not None and newest.state in {CutState.AWAITING_APPROVAL, CutState.REPLACED}:
        # The ledger says so first: a crash then leaves nothing that could be approved without its candidates.
        set_state(ledger, newest, CutState.REPLACED)
        drop_candidates(lake, ledger, newest.cut)
        ledger.forget(TableRow, equals("cut", newest.cut))
    elif newest is not None and newest.cut == number:
        # Likewise: after a crash another run must not publish, as checked, a cut that was only begun again.
        ledger.forget(CutRow, equals("cut", number))
    drop_candidates(lake, ledger, number)
    return number


def drop_candidates(lake: Lake, ledger: Ledger, cut: int) -> None:
    """Drop the branches of a cut that was never published."""
    for row in tables_of(ledger, cut):
        if not is_built(row):
            continue
        table = lake.find(row.identifier)
        whole = [*whole_beside(row.identifier)] if table is not None and moving.has_whole(table, cut) else []
        _, *others = (*moved_together(row.identifier), *beside(row.identifier), *whole)
        for each in (table, *map(lake.find, others)):
            if each is not None:
                drop_branch(each, candidate_branch(cut))


def _require_judged(cut: CutRow, built: Iterable[TableRow], tables: Mapping[Identifier, Table]) -> None:
    """Refuse a cut with a candidate that is not the one that compact built and check judged."""
    branch = candidate_branch(cut.cut)
    for row in built:
        table = tables[row.identifier]
        if row.snapshot is not None and branch in table.refs() and head(table, branch) != row.snapshot:
            raise PublishConflictError(
                f"{row.identifier}: the branch {branch} moved since compact built it, and no check judged what is "
                "there: run compact again"
            )


def _require_candidates(ledger: Ledger, cut: CutRow, tables: Collection[Table]) -> None:
    """Refuse a cut if one of its candidates is gone; a cut whose publishing had not begun is to be built again.

    A history or a feed may lack its candidate: either the source file does not ask for it any more, or the next cut
    finds that it is behind, and makes up for it.
    """
    branch, name = candidate_branch(cut.cut), cut_tag(cut.cut)
    moved = [table for table in tables if branch not in table.refs() and name in table.refs()]
    gone = [".".join(table.name()) for table in tables if not {branch, name} & table.refs().keys()]
    if not gone:
        return
    if not moved:
        set_state(ledger, cut, CutState.REPLACED)
        raise PublishConflictError(f"{', '.join(gone)}: the branch {branch} is gone: run compact again")
    raise PublishConflictError(
        f"{', '.join(gone)}: the branch {branch} is gone, and other tables of cut {cut.cut} are published already: "
        "put the branch back on its snapshot, which `ledger.tables` tells, and publish again; or go back to an earlier "
        "cut with `tidemark restore`"
    )


def _require_movable(tables: Iterable[Table], cut: int) -> None:
    """Refuse to move tables if any of them cannot move."""
    if reasons := [reason for table in tables if (reason := moving.obstacle(table, cut))]:
        raise PublishConflictError(f"{'. '.join(reasons)}: run compact again")


def move(lake: Lake, target: Identifier, cut: int, tables: Mapping[Identifier, Table] | None = None) -> None:
    """Move ``main`` of a table, and of what moves with it, to a cut's candidates; ``tables`` can move all of them."""
    if tables is None:
        needed = moving.required(lake, target, cut)
        tables = needed | moving.allowed(lake, target, needed)
        _require_movable(tables.values(), cut)
    branch = candidate_branch(cut)
    for table in (tables[each] for each in moving.in_order(target) if each in tables):
        # Without the branch, it was moved before a crash: the commit that moves it drops the branch. Or it is a history
        # or a feed that the source file no longer asks for, which stays as it is, without the tag.
        if branch in table.refs():
            fast_forward(table, branch, cut_tag(cut), pending_schema.changes(table, cut))
