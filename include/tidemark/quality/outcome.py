"""What verdicts make of a cut: whether it may be published, is held for a person, or failed.

A cut with a blocking check that failed awaits approval if only checks failed that a person may overrule (ADR 16).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidemark.ledger.rows import TableRow
from tidemark.ledger.states import CutState, VerdictWord
from tidemark.quality.invariants import deletable_rows, deleted_rows
from tidemark.quality.verdicts import Verdict
from tidemark.sources.model import Source


def state_of(verdicts: Iterable[Verdict]) -> CutState:
    """Return the state of a cut with these verdicts."""
    failed = [result for verdict in verdicts for result in verdict.results if result.blocks]
    if not failed:
        return CutState.CHECKED
    return CutState.AWAITING_APPROVAL if all(result.approvable for result in failed) else CutState.FAILED


def word_of(verdict: Verdict) -> VerdictWord:
    """Return the word that the ledger has for the verdict on a table."""
    if not verdict.success:
        return VerdictWord.HELD if state_of([verdict]) == CutState.AWAITING_APPROVAL else VerdictWord.FAILED
    return VerdictWord.PASSED if all(result.success for result in verdict.results) else VerdictWord.WARNED


def with_words(rows: Iterable[TableRow], verdicts: Iterable[Verdict]) -> list[TableRow]:
    """Return the rows of a cut's tables, each with the word for its verdict; one without a verdict stays as it is."""
    by_table = {verdict.table: verdict for verdict in verdicts}
    judged = []
    for row in rows:
        verdict = by_table.get(row.target or "")
        judged.append(row if verdict is None else msgspec.structs.replace(row, verdict=word_of(verdict)))
    return judged


def asks_for_approval(source: Source, cut: int, rows: Sequence[TableRow], *, unread: bool) -> str:
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
