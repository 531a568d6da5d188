"""Tables again from their whole change log: built beside by the way of any candidate, then a branch like any other."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.table.refs import MAIN_BRANCH
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name Spark's users know

from tidemark.compaction.building import candidate_of
from tidemark.compaction.candidate import Cut
from tidemark.lake import copies, pending_schema
from tidemark.lake.branches import branch_from_main, head
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.ledger import Ledger, Row
from tidemark.tables.plan import Plan
from tidemark.tables.schemas import DELETED, was_hard


def build(session: SparkSession, lake: Lake, source: str, plan: Plan, cut: Cut, asked: str) -> Row:
    """Build the candidate of a table from all its events, on an empty base; the row for the ledger.

    With soft deletes the row has ``lost`` too: how many fewer rows are alive.

    Args:
        session: Spark's.
        lake: the lake.
        source: name of the source.
        plan: made as if there were no table yet.
        cut: that the candidate belongs to.
        asked: the asking that is answered.

    Raises:
        LedgerError: events went missing between the change log and the fold.
    """
    _forget_set_aside(lake, source, plan.found.object)
    for identifier in (*cuts.identifiers(".".join(plan.target)), plan.versions):
        table = lake.find(identifier)
        if table is not None:  # what an attempt planned for the schema is over
            pending_schema.plan_pending(table, cut.number, {}, {})
    before = _alive(session, lake, plan, MAIN_BRANCH) if plan.soft else 0
    with copies.emptied(lake) as beside:
        candidate = candidate_of(plan)(session, beside, source, plan, cut)
        candidate.prepare()
        row = candidate.build(0)
        beside.adopt(cut.branch)
    if plan.soft:
        row["lost"] = max(0, before - _alive(session, lake, plan, cut.branch))
    return {**row, "base": head(lake.load(plan.target)), "rebuilt": asked}


def _alive(session: SparkSession, lake: Lake, plan: Plan, branch: str) -> int:
    """Rows of a table with soft deletes that are not deleted."""
    table = lake.find(plan.target)
    snapshot = table.snapshot_by_name(branch) if table is not None else None
    if table is None or snapshot is None:
        return 0
    # With the schema of the snapshot: that of the table may still be without the mark.
    rows = session.read.option("versionAsOf", str(snapshot.snapshot_id)).table(lake.spark_name(plan.target))
    if branch == MAIN_BRANCH and was_hard(table):
        return rows.count()
    return rows.where(~F.col(DELETED)).count()


def without_events(lake: Lake, ledger: Ledger, cut: Cut, asked: Mapping[str, str]) -> list[Row]:
    """Build empty candidates of the tables that no event is left of; the rows for the ledger."""
    rows = []
    published = ledger.targets() if asked else {}
    for name, told in asked.items():
        target = published.get(name)
        if target is None:
            ledger.rebuilt([told])  # there is nothing to empty
            continue
        with copies.emptied(lake) as beside:
            tables = [(identifier, lake.find(identifier)) for identifier in cuts.identifiers(target)]
            for identifier, table in tables:
                if table is not None:
                    branch_from_main(beside.ensure(identifier, table.schema(), table.properties), cut.branch)
            beside.adopt(cut.branch)
        namespace, _, table_name = target.partition(".")
        table = lake.load((namespace, table_name))
        zero = dict.fromkeys(("events", "applied", "superseded", "duplicate", "held", "quarantined"), 0)
        at = {"base": head(table), "snapshot": head(table, cut.branch)}
        who = {"cut": cut.number, "object": name, "target": target, "state": cuts.CANDIDATE, "batch": cut.batch}
        rows.append({**who, **zero, **at, "rebuilt": told})
    return rows


def _forget_set_aside(lake: Lake, source: str, name: str) -> None:
    """Empty the quarantine of what compact put there of a table: what does not fit still, is put there again."""
    quarantine = lake.find(("quarantine", source))
    if quarantine is not None:
        lake.append_files(quarantine, [], {}, instead_of=equals("object", name))
