"""Compact: fold new events of the change log onto the published tables, each on a candidate branch.

*Compact* is log compaction (the last image per key); rewriting small files is maintenance. All tables of the source
that have new events are built side by side in one Spark session and belong to one cut. A schema change that would lose
data stops its table, with the reason, and no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from tidemark.compaction import (
    accounting,
    building,
    contradictions,
    deciding,
    finding,
    pending,
    quarantine,
    rebuild_requests,
    rebuilding,
    renamed,
)
from tidemark.compaction.decisions import BuildAnew, Built, Decision, Stopped, stopped
from tidemark.compaction.routing import Routing
from tidemark.compaction.run import Cut, Run
from tidemark.ddl.lineages import Lineages
from tidemark.lake import log_tables
from tidemark.lake.branches import marker
from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts, reprocessings, restoring
from tidemark.ledger.event_counts import NO_EVENTS
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.normalization import retrying
from tidemark.normalization.build_digest import built_by
from tidemark.sources.model import Source
from tidemark.spark.session import open_session
from tidemark.spark.tuning import tuned_for
from tidemark.stages import StageReport
from tidemark.tables import schema_policies
from tidemark.tables.plan import Found

log = structlog.get_logger(__name__)


def run(source: Source) -> StageReport:
    """Build the candidate of every table that has events which no published cut holds.

    An earlier candidate that was never published is dropped and built again from where ``main`` stands, but for one
    that awaits approval: it stays until there are new events, another request to build a table again, or a source file
    that says otherwise how to build. A cut whose publishing was cut short is finished first.

    Raises:
        LedgerError: events went missing.
        LakeError: the store or the engine failed; running again starts from ``main``.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    restoring.finish(lake, ledger)
    retrying.finish_retry(lake, source.source)
    dropped = rebuild_requests.dropped(lake, source)
    while not isinstance(done := _attempt(lake, ledger, source), StageReport):
        for each in done:
            log.warning("table_built_anew", object=each.object, reason=each.reason)
        ledger.request_rebuild(each.object for each in done)
    return replace(done, remarks=(*dropped, *done.remarks))


def _attempt(lake: Lake, ledger: Ledger, source: Source) -> StageReport | Sequence[BuildAnew]:
    """Build the cut, or return the tables that have to be built from their whole change log instead."""
    last, published = cuts.last_published(ledger), ledger.published_tables()
    routed = Routing.of(source, ledger, published, last.batch if last else 0)
    published = routed.current(published)
    newest = int(marker(log_tables.find_change_log(lake, source.source), "batch") or 0)
    requests = routed.requests(ledger)
    behind = routed.behind(published)
    nothing_new = pending.is_up_to_date(last, published, newest) and not pending.is_released(source, published)
    is_idle = nothing_new and not (requests or behind)
    is_done = is_idle or pending.is_awaiting_approval(ledger, newest, requests, behind)
    if is_done and not pending.is_outdated(ledger, source):
        return _report(source, [], {})
    cut = Cut(number=cuts.next_number(lake, ledger), batch=newest)
    standing = pending.standing_of(last, published, behind)
    since = 0 if requests else standing.lowest
    this = Run(
        session=open_session(sum(row.events for row in ledger.batches(above("batch", since)))),
        lake=lake,
        source=source,
        cut=cut,
        standing=standing,
        published=published,
        routed=routed,
        requests=requests,
        given_up=pending.given_up(ledger, source, cut),
    )
    quarantine.leave_attempts(this)
    lineages = renamed.known_to(ledger, source, newest)
    if outdated := renamed.outdated(this, lineages):
        return outdated
    finds = finding.find_tables(this, lineages)
    if gone := finding.gone(this, finds.values()):
        reason = "it was published, and is not there any more"
        return [BuildAnew(object=found.object, reason=reason) for found in gone]
    decisions = _decisions(this, finds, lineages)
    if anew := [each for each in decisions if isinstance(each, BuildAnew)]:
        return anew
    rows = [accounting.row(each, this) for each in decisions if not isinstance(each, BuildAnew)]
    ledger.replace(TableRow, rows, equals("cut", cut.number))
    built = [each for each in decisions if isinstance(each, Built)]
    contradictions.note(ledger, cut.number, built)
    ledger.replace(CutRow, [_begun(this)], equals("cut", cut.number))
    report = _report(source, rows, {name: _ddl_not_followed(found) for name, found in finds.items()})
    unasked = [f"{row.object}: {row.reason}" for row in rows if row.reason == schema_policies.CONSENT]
    return replace(report, remarks=(*unasked, *contradictions.sentences(built)))


def _begun(this: Run) -> CutRow:
    """Return the row of a cut whose candidates are built."""
    number, batch = this.cut.number, this.cut.batch
    given_up = sorted(id_ for id_, cut in this.given_up.cuts.items() if cut == number)
    return CutRow(
        cut=number,
        state=CutState.CANDIDATE,
        batch=batch,
        reprocessed=reprocessings.newest(this.ledger) or None,
        given_up=tuple(given_up) or None,
        built_by=built_by(this.source),
    )


def _decisions(this: Run, finds: Mapping[str, Found], lineages: Lineages) -> list[Decision]:
    """Return what was done with each table; where one has to be built anew, nothing is built."""
    left = renamed.emptied(this, finds)
    with tuned_for(this.session, [this.size_of(found) for found in finds.values()]):
        plans, decisions = deciding.decide(this, {name: found for name, found in finds.items() if name not in left})
    if any(isinstance(each, BuildAnew) for each in decisions):
        return decisions
    waiting = renamed.waiting_for(this, lineages, [each for each in decisions if isinstance(each, Stopped)])
    held = {plan.found.object for plan in plans if plan.found.object in waiting and not plan.found.goes_on}
    decisions += [stopped(finds[name], f"{name}: {_WAITS_FOR_RENAMED}") for name in sorted(held)]
    decisions += building.build(this, [plan for plan in plans if plan.found.object not in held])
    if any(isinstance(each, BuildAnew) for each in decisions):
        return decisions
    left = {name: 0 for name in this.requests if name not in finds} | left
    lost = {name: held for name, held in left.items() if name not in waiting}
    return [*decisions, *rebuilding.without_events(this, lost, lineages.tables)]


_WAITS_FOR_RENAMED = (
    "tables were renamed at the source, and one that its rows go to or come from is stopped; "
    "it stays as it is until then"
)


def _ddl_not_followed(found: Found) -> str:
    """Return the statements of the new batches that were not followed, and log them; they hold nothing back."""
    notes = [note.text for note in found.history.notes if note.batch > found.published_batch]
    for note in notes:
        log.warning("ddl_not_followed", object=found.object, statement=note)
    return "; ".join(notes)


def _report(source: Source, rows: Sequence[TableRow], ddl: Mapping[str, str]) -> StageReport:
    totals = sum((row.counts for row in rows), NO_EVENTS).by_name()
    problems = tuple(row.reason or "" for row in rows if row.state == TableState.STOPPED)
    details: dict[str, dict[str, int | str]] = {row.object: {**row.counts.by_name()} for row in rows}
    for name, statements in ddl.items():
        if statements and name in details:
            details[name]["ddl"] = statements
    log.info("compacted", source=source.source, tables=len(rows), **totals)
    summary = {"tables": len(rows), **totals}
    return StageReport(stage="compact", source=source.source, summary=summary, problems=problems, details=details)
