"""Check: let Great Expectations judge every candidate of the cut before anybody sees it.

Declared checks come from the source file and judge the rows that are not deleted; the invariants are built in: no key
is null, no key occurs twice, the rows are as many as the ledger says, no more of them are deleted than one cut may
delete, no more events and messages are set aside than may be, the ledger of events closes, and the history has one
current version for each row. A failed blocking check holds the whole cut back: its candidates stay on their branches
for inspection. Where only such a limit was broken, a person may approve the cut (docs/adr/0016).
"""

from __future__ import annotations

import structlog

from tidemark.compaction.cut_doubts import doubts_by_table
from tidemark.lake import names
from tidemark.lake.catalog import home
from tidemark.lake.filters import at_most, equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.check_rows import CHECK
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import CutState, TableState
from tidemark.quality import (
    contradiction_checks,
    mixed_orders,
    outdated_ranks,
    schema_drift,
    source_findings,
    unfit_entries,
    unread_messages,
    volume,
)
from tidemark.quality.doubt import in_words
from tidemark.quality.doubts_of_cut import invariants_by_object
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.judging import judge
from tidemark.quality.outcome import asks_for_approval, state_of, with_words
from tidemark.quality.records import record
from tidemark.quality.source_verdict import source_verdict
from tidemark.sources.choices import Severity
from tidemark.sources.model import Source
from tidemark.stages import StageReport

log = structlog.get_logger(__name__)


def run(source: Source) -> StageReport:
    """Judge the candidates of the newest cut; does nothing when the newest cut is published.

    Raises:
        ConfigurationError: a declared check has an unknown expectation, argument or severity.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    cut = ledger.last_cut()
    if cut is None or cut.state in {CutState.PUBLISHED, CutState.PUBLISHING, CutState.REPLACED}:
        return _nothing_new(ledger, source)
    rows = [row for row in cuts.tables_of(ledger, cut.cut) if cuts.is_built(row)]
    last = cuts.last_published(ledger)
    once = ReadOnce(lake, source.source)
    doubts = doubts_by_table(lake, once, source, cut, rows)
    contradictions = ledger.contradictions(equals("cut", cut.cut))
    past = ledger.tables(equals("state", TableState.PUBLISHED))
    contradicted = contradiction_checks.invariants_of(contradictions, source.invariants)
    volumes = volume.invariants_of(rows, past, source.invariants.volume)
    drifts = schema_drift.invariants_of(lake, rows, {row.object for row in past}, source.invariants.schema_drift)
    verdicts, places = judge(lake, once, source, rows, invariants_by_object(doubts, contradicted, volumes, drifts))
    summary: dict[str, int | str] = {"cut": cut.cut, "tables": len(verdicts)}
    docs = verdicts[0].docs if verdicts else home()
    offsets = once.offsets(at_most("batch", cut.batch))
    batches = JudgedBatches.of(ledger, last, cut)
    of_messages = source_findings.of_messages(lake, ledger, source, batches, offsets)
    of_file = (*unfit_entries.judged(once, source), *outdated_ranks.judged(once, source, batches, cut))
    of_order = mixed_orders.judged(once, source, batches, cut)
    findings = [*of_messages, *source_findings.of_age(ledger, source, [*past, *rows]), *of_file, *of_order]
    whole = source_verdict(source.source, findings, docs)
    verdicts += whole.verdicts
    for name, blocking in contradiction_checks.blocking(contradictions, source).items():
        doubts[name] = [*doubts.get(name, ()), *blocking]
    failed = [verdict for verdict in verdicts if not verdict.success]
    ledger.replace(TableRow, with_words(cuts.tables_of(ledger, cut.cut), verdicts), equals("cut", cut.cut))
    record(ledger, cut.cut, CHECK, verdicts)
    state = state_of(verdicts)
    cuts.set_state(ledger, cut, state)
    problems = tuple(problem for verdict in failed for problem in verdict.problems())
    warnings = tuple(warning for verdict in verdicts for warning in verdict.warnings())
    warnings += (*places, *whole.warnings)
    problems += whole.problems
    changelog = lake.find(names.change_log(source.source))
    problems += in_words(doubts, Severity.BLOCK, changelog)
    warnings += in_words(doubts, Severity.WARN, changelog)
    if state == CutState.AWAITING_APPROVAL:
        unread = any(each.blocks and each.result.name == unread_messages.UNREAD_MESSAGES for each in findings)
        problems += (asks_for_approval(source, cut.cut, rows, unread=unread),)
    log.info("checked", source=source.source, failed=len(failed), **summary)
    summary |= {"failed": len(failed), "warnings": len(warnings)}
    if rows:
        summary["docs"] = str(docs)
    return StageReport(stage="check", source=source.source, summary=summary, problems=problems, remarks=warnings)


def _nothing_new(ledger: Ledger, source: Source) -> StageReport:
    """Return what a run without a cut to judge has to report: how old the newest data is, where that has a limit."""
    findings = source_findings.of_age(ledger, source, ledger.published_tables().values())
    verdict = source_verdict(source.source, findings, home())
    summary = {"tables": 0, **({"warnings": len(verdict.warnings)} if verdict.warnings else {})}
    return StageReport(
        stage="check", source=source.source, summary=summary, problems=verdict.problems, remarks=verdict.warnings
    )
