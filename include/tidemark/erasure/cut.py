"""The cut of an erasure: the published table, its state, history, feed and whole rows without those of a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from tidemark.erasure.subject import Subject
from tidemark.lake import feeds, file_edits, names, pending_schema, purging
from tidemark.lake.branches import branch_from_main, head
from tidemark.lake.file_edits import Edit, Found
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.lake.names import Identifier
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.normalization.erased_keys import Erasure
from tidemark.tables.schemas import COMMITTED_AT, POSITION

_Holds = Callable[[pa.RecordBatch], pa.Array]

_MAPS = ("versions",)


def tables_of(
    lake: Lake, subject: Subject, erasures: Sequence[Erasure] = ()
) -> Iterator[tuple[Identifier, Table, Edit]]:
    """Yield the published table and what moves with it, each with what takes the rows out of it.

    Args:
        lake: the lake.
        subject: whose rows.
        erasures: only rows that one of them covers; none: all rows of the key.
    """
    places = [f"k{number}" for number in range(len(subject.reader.key))]
    named = {names.state(subject.target): places}
    target = subject.target
    for identifier in (*names.moved_together(target), *names.beside(target), *names.whole_beside(target)):
        table = lake.find(identifier)
        if table is not None:
            columns = named.get(identifier, ())
            holds = _covered(subject.holds(columns), erasures)
            yield identifier, table, Edit(where=subject.condition(columns), holds=holds, plain=_MAPS)


def _covered(holds: _Holds, erasures: Sequence[Erasure]) -> _Holds:
    """Return a function that tells which of the rows are from before an erasure."""
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


def find(lake: Lake, subject: Subject) -> dict[str, Found]:
    """Return by table how many files and rows of the subject there are."""
    return {str(identifier): file_edits.find(table, edit) for identifier, table, edit in tables_of(lake, subject)}


def publish(lake: Lake, ledger: Ledger, subject: Subject, erased: int) -> tuple[int, dict[str, Found]]:
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
    number = cuts.next_number(lake, ledger)
    branch = names.candidate_branch(number)
    removed: dict[str, Found] = {}
    for identifier, table, edit in tables_of(lake, subject):
        candidate = branch_from_main(pending_schema.plan_pending(table, number, {}, {}), branch)
        schema = candidate.schema().as_arrow()
        removed[str(identifier)] = file_edits.apply(lake, candidate, schema, edit, branch)
    feeds.keep_in_step(lake.load(subject.target), lake.find(names.feed(subject.target)), branch)
    row = _row(lake, subject, number, erased, removed)
    ledger.replace(TableRow, [row], equals("cut", number))
    cut = CutRow(cut=number, state=cuts.CHECKED, batch=last.batch)
    ledger.replace(CutRow, [cut], equals("cut", number))
    if row.state == cuts.STOPPED:  # publishing leaves stopped tables where they are
        cuts.move(lake, subject.target, number)
    cuts.publish(lake, ledger, cut)
    return number, removed


def _row(lake: Lake, subject: Subject, number: int, erased: int, removed: Mapping[str, Found]) -> TableRow:
    """Return the ledger's row: the table stands where it stood, and its erased events are counted once more."""
    standing, target = subject.standing, lake.load(subject.target)
    before = standing.rows_after or 0
    gone = removed[str(subject.target)].rows
    stopped = standing.state == cuts.STOPPED
    return msgspec.structs.replace(
        standing,
        cut=number,
        target=str(subject.target),
        state=cuts.STOPPED if stopped else cuts.CANDIDATE,
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
        base=head(target),
        snapshot=head(target, names.candidate_branch(number)),
        verdict=None,
        written_at=None,
    )


def purge(lake: Lake, subject: Subject, cut: int | None) -> dict[str, purging.Purged]:
    """Remove, physically, what no newest snapshot of the source's tables needs; return what was removed by table."""
    logs = [kind(subject.source) for kind in (names.raw, names.change_log, names.quarantine)]
    tables = {identifier: table for identifier in logs if (table := lake.find(identifier)) is not None}
    tables |= {identifier: table for identifier, table, _ in tables_of(lake, subject)}
    keep = None if cut is None else names.cut_tag(cut)
    return {str(identifier): purging.purge(table, keep) for identifier, table in tables.items()}
