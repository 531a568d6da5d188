"""The figures of the report, from the ledger: what ``tidemark report --json`` prints and the pages show.

No figure is a value of a row: counts, names, times, and of checks what the ledger keeps. A source file may allow keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from tidemark.lake.filters import above, at_least
from tidemark.lake.lake import Lake
from tidemark.ledger.check_rows import CHECK, CheckRow
from tidemark.ledger.contradiction_rows import IN_WORDS, ContradictionRow
from tidemark.ledger.erasing_cuts import is_of_an_erasure
from tidemark.ledger.event_counts import NO_EVENTS
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.read_once import ReadOnce
from tidemark.ledger.reconciliation_rows import ReconciliationRow
from tidemark.ledger.rows import BatchRow, ContentRow, CutRow, TableRow
from tidemark.ledger.states import CutState, TableState, VerdictWord
from tidemark.queries.contradicting_keys import contradicting_keys
from tidemark.queries.status import MESSAGES, status_of
from tidemark.queries.status_answer import Status
from tidemark.report.attention import attention
from tidemark.report.columns import schema_changes
from tidemark.report.set_aside import set_aside
from tidemark.values.iso8601 import text_of

CUTS = 60
"""How many of the newest cuts a report shows."""

Figures = dict[str, Any]
"""The figures of one source, ready for JSON; ``docs/operations/report.md`` describes the keys."""


def figures_of(lake: Lake, source: str, *, keys: bool = False) -> Figures:
    """Return what the report shows of a source: where it stands, its newest cuts, and what needs a person.

    Nothing depends on the time of the call: the same lake gives the same figures. Times are ISO 8601, UTC.

    Args:
        lake: the lake.
        source: name of the source.
        keys: whether keys of rows may be shown: the keys of contradictions, which stand in the change log alone.
    """
    ledger = ReadOnce(lake, source)
    status = status_of(lake, source, ledger)
    shown = sorted(ledger.cuts(), key=lambda row: row.cut)[-CUTS:]
    batches = _batches_of(shown, ledger.cuts(), ledger.batches())
    found = _cuts(Ledger(lake, source), shown, batches, ledger.tables())
    contradictions = ledger.contradictions(at_least("cut", shown[0].cut)) if shown else []
    shown_keys = contradicting_keys(lake, source, contradictions) if keys else {}
    quarantine = set_aside(lake, source)
    reconciled = {name: _reconciled(row) for name, row in ledger.last_reconciliations().items()}
    return {
        "source": source,
        "as_of": text_of(_newest([*ledger.cuts(), *ledger.batches()])),
        "attention": attention(source, status, found[-1] if found else None, quarantine, reconciled),
        "status": _timeless(status),
        "cuts": found,
        "quarantine": quarantine,
        "contradictions": _contradictions(contradictions, shown_keys),
        "reconciled": reconciled,
        "schema": schema_changes(ledger.statements(), ledger.shapes(), _times(ledger.batches())),
    }


def _timeless(status: Status) -> dict[str, Any]:
    """Return the status of a source without its lags, which grow while nobody writes a page."""
    tables = {
        name: {key: value for key, value in table.items() if key != "lag_seconds"}
        for name, table in status["tables"].items()
    }
    return {key: value for key, value in status.items() if key != "lag_seconds"} | {"tables": tables}


def _cuts(
    ledger: Ledger, shown: Sequence[CutRow], batches: Mapping[int, Sequence[BatchRow]], rows: Iterable[TableRow]
) -> list[Figures]:
    if not shown:
        return []
    by_cut: dict[int, list[TableRow]] = {row.cut: [] for row in shown}
    for row in rows:
        if row.cut in by_cut:
            by_cut[row.cut].append(row)
    first = min((batch.batch for found in batches.values() for batch in found), default=0)
    contents = ledger.contents(above("batch", first - 1)) if first else []
    checks = ledger.checks(at_least("cut", shown[0].cut))
    return [
        _cut(
            row,
            batches[row.cut],
            sorted(by_cut[row.cut], key=lambda table: table.target or table.object),
            contents,
            [check for check in checks if check.cut == row.cut],
        )
        for row in shown
    ]


def _cut(
    cut: CutRow,
    batches: Sequence[BatchRow],
    tables: Sequence[TableRow],
    contents: Iterable[ContentRow],
    checks: Sequence[CheckRow],
) -> Figures:
    numbers = {row.batch for row in batches}
    operations = {table.object: Counter[str]() for table in tables}
    for content in contents:
        if content.batch in numbers:
            operations.setdefault(content.object, Counter[str]())[content.operation] += content.events
    newest = max((row.committed_at for row in tables if row.committed_at), default=None)
    at = cut.written_at
    events = sum((row.counts for row in tables if row.state != TableState.STOPPED), NO_EVENTS)
    judged, is_published = cut.state != CutState.CANDIDATE, cut.state == CutState.PUBLISHED
    return {
        "cut": cut.cut,
        "state": cut.state,
        "verdict": verdict_of(cut, tables),
        "at": text_of(at),
        "newest_commit": text_of(newest),
        "lag_seconds": int((at - newest).total_seconds()) if at and newest and is_published else None,
        "messages": {name: sum(getattr(row, name) for row in batches) for name in MESSAGES},
        "events": events.by_name(),
        "operations": dict(sorted(sum(operations.values(), Counter[str]()).items())),
        "tables": [_table(row, operations[row.object]) for row in tables],
        "checks": [_check(row) for row in sorted(checks, key=_order) if judged or row.stage != CHECK],
    }


WORST: Final[tuple[VerdictWord | CutState, ...]] = (
    VerdictWord.PASSED,
    VerdictWord.APPROVED,
    VerdictWord.WARNED,
    CutState.REPLACED,
    CutState.PUBLISHING,
    CutState.CHECKED,
    CutState.CANDIDATE,
    VerdictWord.HELD,
    VerdictWord.FAILED,
)
"""Verdicts of tables and states of cuts, the worst last."""


def verdict_of(cut: CutRow, tables: Iterable[TableRow]) -> VerdictWord | CutState:
    """Return one word for a cut: its state if that needs a person, else the worst verdict of its tables.

    No check judges the cut of an erasure: its word is its state.
    """
    tables = list(tables)
    words = {row.verdict for row in tables if row.verdict in WORST}
    is_unjudged = not words and any(map(is_of_an_erasure, tables))
    if is_unjudged or cut.state not in {CutState.PUBLISHED, CutState.CHECKED, CutState.PUBLISHING}:
        return cut.state
    worst = max(words, key=WORST.index, default=VerdictWord.PASSED)
    is_stopped = any(row.state == TableState.STOPPED for row in tables)
    return VerdictWord.WARNED if worst == VerdictWord.PASSED and is_stopped else worst


def _table(row: TableRow, operations: Mapping[str, int]) -> Figures:
    return {
        "table": row.target or row.object,
        "object": row.object,
        "state": row.state,
        "verdict": row.verdict,
        "reason": row.reason,
        "rebuilt": row.rebuilt is not None,
        "rows_before": row.rows_before,
        "rows": None if row.state == TableState.STOPPED else row.rows_after,
        "deleted": row.deleted,
        "committed_at": text_of(row.committed_at),
        **row.counts.by_name(),
        "operations": dict(sorted(operations.items())),
    }


def _contradictions(rows: Iterable[ContradictionRow], keys: Mapping[ContradictionRow, str]) -> list[Figures]:
    return [
        {
            "cut": row.cut,
            "table": row.object,
            "kind": row.kind,
            "text": IN_WORDS[row.kind],
            "events": row.events,
            "file": row.file,
            "place": row.place,
            "position": row.position,
            "key": keys.get(row),
        }
        for row in sorted(rows, key=lambda row: (-row.cut, row.object, row.kind))
    ]


def _reconciled(row: ReconciliationRow) -> Figures:
    counts = ("source_rows", "lake_rows", "behind", "lost", "extra", "different")
    return {
        "at": text_of(row.written_at),
        "cut": row.cut,
        "result": row.result,
        "reason": row.reason,
        **{name: getattr(row, name) for name in counts},
        "verified_through": text_of(row.verified_through),
    }


def _order(row: CheckRow) -> tuple[str, str, int]:
    return row.target, row.stage, row.place


def _check(row: CheckRow) -> Figures:
    return {
        "table": row.target,
        "stage": row.stage,
        "name": row.name,
        "columns": list(row.columns),
        "severity": row.severity,
        "success": row.success,
        "observed": row.observed,
        "expected": row.expected,
        "at": text_of(row.written_at),
    }


def _batches_of(
    shown: Iterable[CutRow], every: Iterable[CutRow], batches: Iterable[BatchRow]
) -> dict[int, list[BatchRow]]:
    """Return the batches that each cut brought: those after the last cut published before it."""
    published = sorted((row.cut, row.batch) for row in every if row.state == CutState.PUBLISHED)
    found = {}
    for row in shown:
        before = max((batch for number, batch in published if number < row.cut), default=0)
        found[row.cut] = [each for each in batches if before < each.batch <= row.batch]
    return found


def _times(batches: Iterable[BatchRow]) -> dict[int, datetime]:
    return {row.batch: row.written_at for row in batches if row.written_at is not None}


def _newest(rows: Iterable[CutRow | BatchRow]) -> datetime | None:
    return max((row.written_at for row in rows if row.written_at is not None), default=None)
