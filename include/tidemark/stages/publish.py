"""Publish: move ``main`` of all tables of a checked cut to its candidates, all or none of them.

No Spark: a fast-forward is one compare-and-set in the catalog for each table.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import structlog

from tidemark.errors import ConfigurationError, ExpectationError
from tidemark.lake.filters import equals
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts, restoring
from tidemark.ledger.failed_checks import failed_checks, in_words
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import CutRow, TableRow
from tidemark.ledger.states import CutState, TableState, VerdictWord
from tidemark.ledger.waiting import Held, held_in, sentence
from tidemark.normalization.build_digest import is_built_by_another
from tidemark.sources.choices import Consequence, Transactions
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables import leftovers

log = structlog.get_logger(__name__)

_OVERDUE_SHOWN = 10
"""Most transactions that are open for too long that a report names."""


def run(source: Source, approve: int | None = None) -> StageReport:
    """Publish the newest cut; a cut that is published already is left as it is.

    The report's problems are what this cut leaves behind: tables that were stopped, files that were refused.
    Its remarks are transactions that are open for too long, and tables that show what others hide (``leftovers``).

    Args:
        source: the source.
        approve: number of the newest cut, if it awaits approval and shall be published nevertheless.

    Raises:
        ExpectationError: the cut failed a blocking check, waits for approval, was not checked yet, or was built
            before the source file was edited.
        ConfigurationError: another cut than the newest was approved.
        PublishConflictError: a ``main`` moved since its candidate was built, or a candidate is gone.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    restoring.finish(lake, ledger)
    cut = ledger.last_cut()
    if approve is not None and (cut is None or cut.cut != approve):
        newest = f"the newest is {cut.cut}, {cut.state}" if cut else "there is none yet"
        raise ConfigurationError(f"{source.source}: cut {approve} cannot be approved: {newest}.")
    if cut is None:
        return StageReport(stage="publish", source=source.source, summary={"tables": 0})
    if cut.state == CutState.FAILED:
        raise ExpectationError(
            f"{source.source}: cut {cut.cut} failed a blocking check, nothing of it is published "
            f"({in_words(failed_checks(ledger, cut.cut)) or 'which, the Data Docs tell'}). Look at `tidemark status "
            f"{source.source}` and the report; after a fix of the data or the check, run "
            f"`tidemark check {source.source}` and `tidemark publish {source.source}` again."
        )
    if cut.state == CutState.REPLACED:
        raise ExpectationError(
            f"{source.source}: cut {cut.cut} was dropped for a newer one, which is not built yet: "
            f"`tidemark compact {source.source}`"
        )
    if cut.state == CutState.CANDIDATE:
        raise ExpectationError(f"{source.source}: cut {cut.cut} is not checked yet: `tidemark check {source.source}`")
    if cut.state in {CutState.CHECKED, CutState.AWAITING_APPROVAL} and is_built_by_another(cut, source):
        raise ExpectationError(
            f"{source.source}: cut {cut.cut} was built before the source file was edited, and not by what it says "
            f"now: `tidemark compact {source.source}`, check and publish again"
        )
    if cut.state == CutState.AWAITING_APPROVAL:
        if approve is None:
            raise ExpectationError(
                f"{source.source}: cut {cut.cut} waits for approval. `tidemark check {source.source}` says "
                f"why; `tidemark publish {source.source} --approve {cut.cut}` "
                f"publishes it nevertheless."
            )
        _write_approval(ledger, approve)
        log.info("approved", source=source.source, cut=approve)
    if cut.state in {CutState.CHECKED, CutState.AWAITING_APPROVAL}:
        cuts.publish(lake, ledger, cut)
    report = _report(ledger, source, cut)
    return replace(report, remarks=(*report.remarks, *leftovers.remarks(lake, ledger, source)))


def _report(ledger: Ledger, source: Source, cut: CutRow) -> StageReport:
    """Return what the cut shows, and what it leaves behind: held events of all tables, also of tables that it lacks."""
    tables = cuts.tables_of(ledger, cut.cut)
    rows = [row for row in tables if row.state == TableState.PUBLISHED]
    held = held_in(ledger, source.longest_open)
    problems = [row.reason or "" for row in tables if row.state == TableState.STOPPED]
    problems += [row.problem for row in ledger.refusals()]
    consequence = source.invariants.open_transactions
    overdue = [] if consequence is Consequence.OFF else _overdue(source, held)
    problems += overdue if consequence is Consequence.BLOCK else []
    details: dict[str, dict[str, int | str]] = {
        str(row.identifier): {"rows": row.rows_after or 0, "verdict": row.verdict or ""} for row in rows
    }
    for name, standing in held.tables.items():
        details.setdefault(standing.target or name, {})["held"] = standing.held
    summary: dict[str, int | str] = {"cut": cut.cut, "tables": len(rows), "held": held.events}
    if held.since is not None:
        summary["held_since"] = held.since
    return StageReport(
        stage="publish",
        source=source.source,
        summary=summary,
        problems=tuple(problems),
        remarks=tuple(overdue) if consequence is Consequence.WARN else (),
        details=details,
    )


def _overdue(source: Source, held: Held) -> list[str]:
    """Return a sentence for each of the first transactions that are open for too long."""
    if source.transactions is not Transactions.WHOLE:
        return []
    sentences = [sentence(source.source, late, source.longest_open) for late in held.overdue[:_OVERDUE_SHOWN]]
    more = len(held.overdue) - _OVERDUE_SHOWN
    return [*sentences, f"{source.source}: {more} more transactions are open for too long"] if more > 0 else sentences


def _write_approval(ledger: Ledger, cut: int) -> None:
    rows = [
        msgspec.structs.replace(row, verdict=VerdictWord.APPROVED) if row.verdict == VerdictWord.HELD else row
        for row in cuts.tables_of(ledger, cut)
    ]
    ledger.replace(TableRow, rows, equals("cut", cut))
