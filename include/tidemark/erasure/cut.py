"""The cut of an erasure: the published table, its state, history, feed and whole rows, without a subject's rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from tidemark.erasure import matches as matching
from tidemark.erasure.subject import ErasedRow
from tidemark.erasure.targets import targets_of
from tidemark.lake import feeds, file_edits, names, pending_schema, purging
from tidemark.lake.branches import branch_from_main, head
from tidemark.lake.file_edits import Edit, RowsFound
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger import cuts
from tidemark.ledger.check_rows import CheckRow
from tidemark.ledger.contradiction_rows import ContradictionRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import LEFT_BEHIND, CutState, TableState
from tidemark.normalization.erased_keys import Erasure
from tidemark.tables.schemas import COMMITTED_AT, POSITION

_Holds = Callable[[pa.RecordBatch], pa.Array]

_MAPS = ("versions",)


def tables_of(
    lake: Lake, ledger: Ledger, subject: ErasedRow, erasures: Sequence[Erasure] = ()
) -> Iterator[tuple[Identifier, Table, Edit]]:
    """Yield the published tables and what moves with them, each with what takes the rows out of it.

    Under an earlier name of the table, or where it was folded with others, another table may be published by now.
    Compact has built that one again since, so only its feed and its old snapshots have rows of the subject.

    Args:
        lake: the lake.
        ledger: of the source.
        subject: whose rows.
        erasures: only rows that one of them covers; none: all rows of the key.
    """
    for name, target in targets_of(lake, ledger, subject).published.items():
        own = name == subject.object
        by_table = {
            names.state(target): subject.matches_of_state() if own else [],
            names.feed(target): _matches_of_feed(subject, name),
        }
        for identifier in (*names.moved_together(target), *names.beside(target), *names.whole_beside(target)):
            table = lake.find(identifier)
            if table is not None:
                matches = by_table.get(identifier, subject.matches() if own else [])
                holds = _covered(matching.holds(matches), erasures)
                yield identifier, table, Edit(where=matching.condition(matches), holds=holds, plain=_MAPS)


def _matches_of_feed(subject: ErasedRow, name: str) -> list[matching.Match]:
    """Return which rows belong to the subject in the feed of what is published under a name."""
    if name not in subject.names:
        return []  # ``refusals`` lets no such feed pass that has its key
    ends = {segment.ends for segment in subject.segments if segment.object == name}
    return subject.matches(max(filter(None, ends))) if None not in ends else subject.matches()


def _covered(holds: _Holds, erasures: Sequence[Erasure]) -> _Holds:
    """Return a function that marks which of the rows are from before an erasure."""
    if not erasures:
        return holds

    def covered(rows: pa.RecordBatch) -> pa.Array:
        found = holds(rows)
        names_of = rows.schema.names
        positions = rows.column(POSITION if POSITION in names_of else "position").to_pylist()
        times = rows.column(COMMITTED_AT).cast(pa.int64()).to_pylist() if COMMITTED_AT in names_of else repeat(None)
        old = (
            any(each.covers(at, position or "") for each in erasures)
            for at, position in zip(times, positions, strict=False)
        )
        return pc.and_(found, pa.array(old, pa.bool_())) if pc.any(found).as_py() else found

    return covered


def find(lake: Lake, ledger: Ledger, subject: ErasedRow) -> dict[str, RowsFound]:
    """Return by table how many files and rows of the subject there are."""
    edits = tables_of(lake, ledger, subject)
    return {str(identifier): file_edits.find(table, edit) for identifier, table, edit in edits}


def publish(lake: Lake, ledger: Ledger, subject: ErasedRow, erased: int) -> tuple[int, dict[str, RowsFound]]:
    """Publish the tables without the subject, in a cut of its own, whose number is returned with what was removed.

    A cut that is under way is dropped: the next compact builds it again, on what is published then. No check judges
    the cut: it takes rows out, and must not wait for the quality of others.

    Args:
        lake: the lake.
        ledger: of the source.
        subject: whose rows.
        erased: number of its events that no cut has counted as erased.
    """
    last = cuts.last_published(ledger)
    if last is None:
        raise ValueError("a published table has a published cut")
    number = _own_number(lake, ledger)
    branch = names.candidate_branch(number)
    removed: dict[str, RowsFound] = {}
    for identifier, table, edit in tables_of(lake, ledger, subject):
        candidate = branch_from_main(pending_schema.plan_pending(table, number, {}, {}), branch)
        schema = candidate.schema().as_arrow()
        removed[str(identifier)] = file_edits.apply(lake, candidate, schema, edit, branch)
    rows = []
    standings = ledger.published_tables()
    for name, target in targets_of(lake, ledger, subject).published.items():
        feeds.keep_in_step(lake.load(target), lake.find(names.feed(target)), branch)
        gone = removed[str(target)].rows
        own = erased if name == subject.object else 0
        rows.append(_row(lake, target, standings[name], number, erased=own, gone=gone))
    ledger.replace(TableRow, rows, equals("cut", number))
    cut = CutRow(cut=number, state=CutState.CHECKED, batch=last.batch, reprocessed=last.reprocessed)
    ledger.replace(CutRow, [cut], equals("cut", number))
    for row in rows:
        if row.state in LEFT_BEHIND:  # publishing leaves them where they are
            cuts.move(lake, row.identifier, number)
    cuts.publish(lake, ledger, cut)
    return number, removed


def _own_number(lake: Lake, ledger: Ledger) -> int:
    """Return the number of the cut of an erasure.

    A cut that was never published may have had it: what its checks and its compact found says nothing of this one.
    """
    number = cuts.next_number(lake, ledger)
    for kind in (CheckRow, ContradictionRow):
        ledger.forget(kind, equals("cut", number))
    return number


def _row(lake: Lake, target: Identifier, standing: TableRow, number: int, *, erased: int, gone: int) -> TableRow:
    """Return the ledger's row: the table stands where it stood, and its erased events are counted once more."""
    table = lake.load(target)
    before = standing.rows_after or 0
    return msgspec.structs.replace(
        standing,
        cut=number,
        target=str(target),
        state=standing.state if standing.state in LEFT_BEHIND else TableState.CANDIDATE,
        events=standing.held + erased,
        applied=0,
        superseded=0,
        duplicate=0,
        quarantined=0,
        erased=erased,
        rebuilt=None,
        rows_before=before,
        rows_after=before - gone,
        deleted=gone,
        base=head(table),
        snapshot=head(table, names.candidate_branch(number)),
        verdict=None,
        written_at=None,
    )


def purge(lake: Lake, ledger: Ledger, subject: ErasedRow, cut: int | None) -> dict[str, purging.Purged]:
    """Remove, physically, what no newest snapshot of the source's tables needs; return what was removed by table."""
    logs = [kind(subject.source) for kind in (names.raw, names.change_log, names.quarantine)]
    tables = {identifier: table for identifier in logs if (table := lake.find(identifier)) is not None}
    tables |= {identifier: table for identifier, table, _ in tables_of(lake, ledger, subject)}
    keep = None if cut is None else names.cut_tag(cut)
    return {str(identifier): purging.purge(table, keep) for identifier, table in tables.items()}
