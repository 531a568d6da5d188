"""Build tables again from their whole change log: beside the published table, then as a branch like any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyiceberg.table.refs import MAIN_BRANCH
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction import feeding, key_eras, showing
from tidemark.compaction.candidate import Prepared
from tidemark.compaction.decisions import Built, Unmoved
from tidemark.compaction.run import Run
from tidemark.ddl.lineages import Lineage, Segment
from tidemark.lake import copies, names, pending_schema
from tidemark.lake.branches import branch_from_main, head
from tidemark.lake.filters import equals
from tidemark.lake.names import Identifier
from tidemark.lake.properties import SEGMENTS_PROPERTY, keeps_whole
from tidemark.ledger.event_counts import EventCounts
from tidemark.ledger.rows import Snapshots
from tidemark.tables import layouts
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import DELETED, was_hard


def build(run: Run, plan: Plan, build_candidate: Callable[[Prepared], Built]) -> Built:
    """Build the candidate of a table from all its events, on an empty base.

    Args:
        run: the run; it has a request to build the table again.
        plan: made as if there were no table yet.
        build_candidate: builds a table that is prepared.

    Raises:
        LedgerError: events went missing between the change log and the fold.
        IncompatibleSchemaError: the key changed, and the new key of rows from before is unknown.
    """
    _empty_quarantine(run, plan.found.object)
    whole = names.whole_beside(plan.target) if plan.keeps_whole else ()
    for identifier in (*names.moved_together(plan.target), *names.beside(plan.target), *whole):
        table = run.lake.find(identifier)
        if table is not None:  # what an attempt planned for the schema is over
            pending_schema.plan_pending(table, run.cut.number, {}, {})
    _follow_layout(run, plan)
    before = _alive(run, plan, MAIN_BRANCH) if plan.soft else 0
    with copies.emptied(run.lake) as beside:
        built = key_eras.build(run.beside(beside), plan, beside, build_candidate)
        built = showing.show(run.beside(beside), plan, built, anew=True)
        beside.adopt(run.cut.branch)
    # With soft deletes a table does not shrink: what readers lose are rows that were alive.
    lost = max(0, before - _alive(run, plan, run.cut.branch)) if plan.soft else None
    snapshots = Snapshots(head(run.lake.load(plan.target)), built.snapshots.candidate)
    return replace(built, deleted=lost, snapshots=snapshots, request=run.requests[plan.found.object])


def _follow_layout(run: Run, plan: Plan) -> None:
    """Let the published table follow the layout that is declared; where columns are missing yet, the next cut does."""
    table, layout = run.lake.find(plan.target), run.source.table_for(plan.found.object).layout
    if table is not None and layouts.fits(table, layout):
        layouts.follow(table, layout, replace(plan.of_published, today={}))


def _alive(run: Run, plan: Plan, branch: str) -> int:
    """Return how many rows of a table with soft deletes are not deleted."""
    table = run.lake.find(plan.target)
    snapshot = table.snapshot_by_name(branch) if table is not None else None
    if table is None or snapshot is None:
        return 0
    # With the schema of the snapshot: the table's schema may still be without the mark.
    rows = run.at(plan.target, snapshot.snapshot_id)
    if branch == MAIN_BRANCH and was_hard(table):
        return rows.count()
    return rows.where(~F.col(DELETED)).count()


def without_events(run: Run, tables: Mapping[str, int], renamed: Mapping[str, Lineage]) -> list[Built | Unmoved]:
    """Build empty candidates of tables that are to be built again and have no event left.

    A table that was never published needs none. Its events may have waited, and are those of another name now.

    Args:
        run: the run; it has a request for each of the tables.
        tables: as the source names them, each with how many of its events wait for their transactions.
        renamed: by name, the tables that were renamed: their rows are elsewhere now, so readers do not lose them.
    """
    built: list[Built | Unmoved] = []
    published = run.ledger.targets() if tables else {}
    for table, held in tables.items():
        _empty_quarantine(run, table)
        target, request = published.get(table), run.requests[table]
        if target is None or run.lake.find(target) is None:
            run.ledger.answered({table: request})  # there is nothing to empty
            if table in run.published and run.published[table].held:
                built.append(Unmoved(object=table, target=target))
            continue
        _empty(run, target, renamed[table].segments if table in renamed else ())
        emptied = run.lake.load(target)
        if run.source.table_for(table).feed:
            feeding.add(feeding.Feed(run.lake, target, run.cut), head(emptied, run.cut.branch))
        built.append(
            Built(
                object=table,
                target=target,
                counts=EventCounts(events=held, held=held),
                rows_change=0,
                deleted=0 if table in renamed else None,
                committed_at=None,
                snapshots=Snapshots(head(emptied), head(emptied, run.cut.branch)),
                request=request,
            )
        )
    return built


def _empty(run: Run, target: Identifier, segments: Sequence[Segment]) -> None:
    """Give a published table, and what moves together with it, a candidate without rows."""
    with copies.emptied(run.lake) as beside:
        whole = names.whole_beside(target)[:1] if keeps_whole(run.lake.load(target).properties) else ()
        for identifier in (*names.moved_together(target), *whole):
            if (known := run.lake.find(identifier)) is not None:
                properties = {**known.properties, SEGMENTS_PROPERTY: json.dumps(segments)}
                branch_from_main(beside.ensure(identifier, known.schema(), properties), run.cut.branch)
        beside.adopt(run.cut.branch)


def _empty_quarantine(run: Run, table: str) -> None:
    """Take out of the quarantine what compact put there of a table: what still does not fit is put there again."""
    quarantine = run.lake.find(names.quarantine(run.source.source))
    if quarantine is not None:
        run.lake.append_files(quarantine, [], {}, instead_of=equals("object", table))
