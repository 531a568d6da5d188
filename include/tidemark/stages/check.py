"""Check: let Great Expectations judge every candidate of the cut before anybody sees it.

Declared checks come from the source file and judge the rows that are not deleted; the invariants are built in: no key
is null, no key occurs twice, the rows are as many as the ledger says, no more of them are deleted than one cut may
delete, no more events and messages are set aside than may be, the ledger of events closes, and the history has one
current version for each row. A failed blocking check holds the whole cut back: its candidates stay on their branches
for inspection. Where only such a limit was broken, a person may approve the cut (docs/adr/0016).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import structlog
from pyiceberg.table import Table

from tidemark.compaction import renamed
from tidemark.compaction.unplaced_statements import Moved, doubts_about_statements
from tidemark.lake import names
from tidemark.lake.catalog import home
from tidemark.lake.filters import at_most, equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts, member_rows
from tidemark.ledger.check_rows import CHECK
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.offset_rows import OffsetsRow
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState, VerdictWord
from tidemark.quality import (
    contradiction_checks,
    freshness,
    lone_tombstones,
    missing_offsets,
    mixed_orders,
    outdated_ranks,
    schema_drift,
    unfit_entries,
    unknown_members,
    unknown_messages,
    unread_messages,
    volume,
)
from tidemark.quality.doubt import Doubt
from tidemark.quality.doubts import invariants
from tidemark.quality.doubts_of_cut import doubts_of_cut
from tidemark.quality.invariants import deletable_rows, deleted_rows
from tidemark.quality.judged_batches import JudgedBatches
from tidemark.quality.judging import judge
from tidemark.quality.of_source import SourceResult, of_source
from tidemark.quality.records import record
from tidemark.quality.renamed_tables import Followed, doubts_about_renames
from tidemark.quality.verdicts import Invariant, Verdict
from tidemark.sources.choices import Consequence, Severity
from tidemark.sources.model import Source
from tidemark.sources.routes import is_folded
from tidemark.stages import StageReport
from tidemark.tables import shard_rules

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
    doubts = _doubts(lake, once, source, cut, rows)
    contradictions = ledger.contradictions(equals("cut", cut.cut))
    past = ledger.tables(equals("state", TableState.PUBLISHED))
    contradicted = contradiction_checks.invariants_of(contradictions, source.invariants)
    volumes = volume.invariants_of(rows, past, source.invariants.volume)
    drifts = schema_drift.invariants_of(lake, rows, {row.object for row in past}, source.invariants.schema_drift)
    verdicts, places = judge(lake, once, source, rows, _by_object(doubts, contradicted, volumes, drifts))
    summary: dict[str, int | str] = {"cut": cut.cut, "tables": len(verdicts)}
    docs = verdicts[0].docs if verdicts else home()
    offsets = once.offsets(at_most("batch", cut.batch))
    batches = JudgedBatches.of(ledger, last, cut)
    of_messages = _of_messages(lake, ledger, source, batches, offsets)
    of_file = (*unfit_entries.judged(once, source), *outdated_ranks.judged(once, source, batches, cut))
    of_order = mixed_orders.judged(once, source, batches, cut)
    findings = [*of_messages, *_freshness(ledger, source, [*past, *rows]), *of_file, *of_order]
    whole = of_source(source.source, findings, docs)
    verdicts += whole.verdicts
    for name, blocking in contradiction_checks.blocking(contradictions, source).items():
        doubts[name] = [*doubts.get(name, ()), *blocking]
    failed = [verdict for verdict in verdicts if not verdict.success]
    _remember(ledger, cut, verdicts)
    record(ledger, cut.cut, CHECK, verdicts)
    state = _state(verdicts)
    cuts.set_state(ledger, cut, state)
    problems = tuple(problem for verdict in failed for problem in verdict.problems())
    warnings = tuple(warning for verdict in verdicts for warning in verdict.warnings())
    warnings += (*places, *whole.warnings)
    problems += whole.problems
    changelog = lake.find(names.change_log(source.source))
    problems += _in_words(doubts, Severity.BLOCK, changelog)
    warnings += _in_words(doubts, Severity.WARN, changelog)
    if state == CutState.AWAITING_APPROVAL:
        unread = any(each.blocks and each.result.name == unread_messages.UNREAD_MESSAGES for each in findings)
        problems += (_asks_for_approval(source, cut.cut, rows, unread=unread),)
    log.info("checked", source=source.source, failed=len(failed), **summary)
    summary |= {"failed": len(failed), "warnings": len(warnings)}
    if rows:
        summary["docs"] = str(docs)
    return StageReport(stage="check", source=source.source, summary=summary, problems=problems, remarks=warnings)


def _in_words(doubts: Mapping[str, Sequence[Doubt]], severity: Severity, changelog: Table | None) -> tuple[str, ...]:
    """Return the doubts of a severity, each behind the name of its table."""
    return tuple(
        f"{name}: {doubt.sentence(changelog)}"
        for name, found in doubts.items()
        for doubt in found
        if doubt.severity is severity
    )


def _nothing_new(ledger: Ledger, source: Source) -> StageReport:
    """Return what a run without a cut to judge has to report: how old the newest data is, where that has a limit."""
    findings = _freshness(ledger, source, ledger.published_tables().values())
    verdict = of_source(source.source, findings, home())
    summary = {"tables": 0, **({"warnings": len(verdict.warnings)} if verdict.warnings else {})}
    return StageReport(
        stage="check", source=source.source, summary=summary, problems=verdict.problems, remarks=verdict.warnings
    )


def _freshness(ledger: Ledger, source: Source, tables: Iterable[TableRow]) -> list[SourceResult]:
    """Return how old the newest data is, where the source file limits it."""
    limited = source.freshness or any(table.freshness for table in source.tables.values())
    return list(freshness.judged(source, tables, ledger.batches(), datetime.now(UTC))) if limited else []


def _of_messages(
    lake: Lake, ledger: Ledger, source: Source, batches: JudgedBatches, offsets: Sequence[OffsetsRow]
) -> Iterator[SourceResult]:
    """Yield what the cut's messages lack, what of them is unknown, and how many cannot be read."""
    asked = source.invariants.missing_offsets
    if offsets and asked is not Consequence.OFF:
        yield missing_offsets.judged(source.source, offsets, batches.published, Severity(asked.value))
    quarantine = lake.find(names.quarantine(source.source))
    asked = source.invariants.unknown_messages
    if quarantine is not None and asked is not Consequence.OFF:
        yield from unknown_messages.judged(source.source, quarantine, batches, Severity(asked.value))
    if quarantine is not None and source.invariants.quarantined_share is not Consequence.OFF:
        yield from unread_messages.judged(ledger, source, quarantine, batches)
    asked = source.invariants.unknown_members
    known = [] if asked is Consequence.OFF else member_rows.unknown_members(ledger, at_most("batch", batches.newest))
    if members := [row for row in known if batches.shows(row)]:
        yield unknown_members.judged(source.source, source.format, members, Severity(asked.value))
    asked = source.invariants.lone_tombstones
    if asked is not Consequence.OFF:
        yield from lone_tombstones.judged(lake, source.source, batches, Severity(asked.value))


def _doubts(
    lake: Lake, ledger: Ledger, source: Source, cut: CutRow, rows: Sequence[TableRow]
) -> dict[str, list[Doubt]]:
    """Return the doubts about the events that a cut takes in, by the table that takes them in."""
    last = cuts.last_published(ledger)
    now, before = (renamed.known_to(ledger, source, batch) for batch in (cut.batch, last.batch if last else 0))
    folded = _folded(lake, rows)
    into = {name: row.object for row in rows for name in now.names_of(row.object)}
    into |= folded | {row.object: row.object for row in rows}
    found = doubts_of_cut(source, ledger, cut, into)
    followed = Followed(now.followed, before.followed)
    of_renames = doubts_about_renames(ledger, rows, cut.batch, folded=folded, followed=followed)
    of_statements = doubts_about_statements(ledger, source, Moved(rows, cut.batch, folded, now))
    for name, doubts in [*of_renames.items(), *of_statements.items()]:
        found[name] = [*found.get(name, ()), *doubts]
    of_tables: dict[str, list[Doubt]] = {}
    for name, doubts in found.items():
        known = of_tables.setdefault(into[name], [])
        known += [doubt for doubt in doubts if doubt not in known]
    return of_tables


def _folded(lake: Lake, rows: Iterable[TableRow]) -> dict[str, str]:
    """Return the tables that are folded into tables of a cut, each with the name of what it is folded into."""
    into = [row for row in rows if is_folded(row.object)]
    return {name: row.object for row in into for name in shard_rules.recorded(lake.load(row.identifier))}


def _by_object(
    doubts: Mapping[str, Sequence[Doubt]], *found: Mapping[str, Mapping[str, Invariant]]
) -> dict[str, dict[str, Invariant]]:
    """Return by object the invariants about its new events."""
    names = {*doubts, *(name for each in found for name in each)}
    return {
        name: invariants(doubts.get(name, ()))
        | {key: value for each in found for key, value in each.get(name, {}).items()}
        for name in names
    }


def _state(verdicts: Iterable[Verdict]) -> CutState:
    failed = [result for verdict in verdicts for result in verdict.results if result.blocks]
    if not failed:
        return CutState.CHECKED
    return CutState.AWAITING_APPROVAL if all(result.approvable for result in failed) else CutState.FAILED


def _asks_for_approval(source: Source, cut: int, rows: Sequence[TableRow], *, unread: bool) -> str:
    """Return what a person approves, and how; doubts were reported already."""
    deletes = [
        f"delete {deleted_rows(row)} of {row.rows_before} rows of {row.target} (allowed: {allowed})"
        for row in rows
        if deleted_rows(row) > (allowed := deletable_rows(source, row))
    ]
    left_out = [
        f"leave out {row.quarantined} of {row.events} events of {row.target} (allowed: {allowed})"
        for row in rows
        if row.quarantined > (allowed := source.quarantinable(row.events, row.object))
    ]
    effects = [*deletes, *left_out]
    limits = [*(["`max_deletes`"] if deletes else []), *(["`max_quarantined`"] if left_out or unread else [])]
    would = f"would {', '.join(effects)}" if effects else "leaves out these messages" if unread else "is held"
    sets = f"; {' and '.join(limits)} set{'' if len(limits) > 1 else 's'} the limit" if limits else ""
    return (
        f"cut {cut} of {source.source} {would}. If that is right, `tidemark publish {source.source} --approve {cut}` "
        f"publishes it{sets}"
    )


def _remember(ledger: Ledger, cut: CutRow, verdicts: tuple[Verdict, ...]) -> None:
    by_table = {verdict.table: verdict for verdict in verdicts}
    judged = []
    for row in cuts.tables_of(ledger, cut.cut):
        verdict = by_table.get(row.target or "")
        judged.append(row if verdict is None else msgspec.structs.replace(row, verdict=_word(verdict)))
    ledger.replace(TableRow, judged, equals("cut", cut.cut))


def _word(verdict: Verdict) -> VerdictWord:
    if not verdict.success:
        return VerdictWord.HELD if _state([verdict]) == CutState.AWAITING_APPROVAL else VerdictWord.FAILED
    return VerdictWord.PASSED if all(result.success for result in verdict.results) else VerdictWord.WARNED
