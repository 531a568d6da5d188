"""Normalize: new messages of ``raw`` into the change log, one row an event; what cannot be read into quarantine.

The workers pass over the new messages once, write and count. One commit of the change log carries the marker of what
was done. Quarantine and ledger are written before it, and count only once the change log has their batch: a normalize
that was killed leaves nothing that a later one does not replace. Some formats cannot read rows without metadata
messages. These are collected first, from the new messages and from the change log.

*Reprocessing* derives the events of batches again that the change log has already, and replaces them. These batches
are written to the ledger first, so the next normalize repeats a reprocessing that was cut short. A table cannot take
back an event that is gone or changed, so compact is requested to build the tables of these batches again. So it is for
tables that other statements concern now (``normalization.reprocessing``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from tidemark.lake import log_tables, names, other_writers
from tidemark.lake.branches import marker
from tidemark.lake.filters import above, among
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RAW, VARIED
from tidemark.ledger import member_rows, reprocessings
from tidemark.ledger.expired import Expired
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow, ReprocessingRow
from tidemark.normalization import (
    accounting,
    decodable,
    erasures,
    file_order,
    inputs,
    open_transactions,
    protecting,
    reprocessing,
    retrying,
    source_changes,
)
from tidemark.normalization.derivation import Messages, derive
from tidemark.normalization.transaction_search import ChangeLog
from tidemark.queries import source_plan
from tidemark.sources.model import Source
from tidemark.stages import StageReport

log = structlog.get_logger(__name__)

_COUNTS = ("landed", "decoded", "control", "quarantined", "events")


def run(
    source: Source, start: datetime | None = None, end: datetime | None = None, *, reprocess: bool = False
) -> StageReport:
    """Decode every batch that ``raw`` has and the change log has not.

    Args:
        source: the source.
        start: of the interval; only reprocessing looks at it.
        end: of the interval.
        reprocess: also decode the batches again that hold a file of the interval; without bounds, all batches.

    Raises:
        LedgerError: messages went missing between ``raw`` and the change log.
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    retrying.finish_retry(lake, source.source)
    erasures.scrub(lake, source.source)
    raw = lake.find(names.raw(source.source))
    changelog = log_tables.change_log(lake, source.source)
    changed = [] if reprocess else source_plan.unmet(lake, ledger, source)
    source_changes.warn(source, changed)
    done = int(marker(changelog, "batch") or 0)
    newest = int(marker(raw, "batch") or 0)
    again = ledger.reprocessing()
    if reprocess:
        again |= reprocessing.batches_of(ledger.landed_files(done), source.zone, start, end)
        decodable.require(source.source, raw, Expired(lake, source.source), reprocessing.with_retries(ledger, again))
    changelog = reprocessing.in_order_of_numbers(ledger, changelog, done, again)
    rows: list[BatchRow] = []
    if raw is not None:
        other_writers.require_in_step(raw, changelog)
        tables = _Tables(lake=lake, ledger=ledger, source=source, raw=raw, changelog=changelog)
        if again:
            rows += _reprocess(tables, done, sorted(again))
        if newest == done and source.undelivered and _is_released(tables, done):
            newest += 1  # a batch without messages, which takes the transactions that the source file closed
            ledger.forget_attempts(done)
            lake.append_files(raw, [], {"batch": str(newest)})
        if newest > done:
            rows += _decode(tables, newest, range(done + 1, newest + 1))
    totals = {name: sum(getattr(row, name) for row in rows) for name in _COUNTS} if rows else {}
    log.info("normalized", source=source.source, **totals)
    summary: dict[str, int | str] = {**totals, "batch": newest, **({"reprocessed": len(again)} if again else {})}
    if changed:
        summary["changed_in_source_file"] = ",".join(dict.fromkeys(change.part for change in changed))
    of_batches = {row.batch for row in rows}
    disorders = [row for row in ledger.disorders() if row.batch in of_batches] if rows else []
    for disorder in disorders:
        log.warning("files_in_disorder", source=source.source, table=disorder.object, events=disorder.events)
    remarks = [*file_order.remarks(source.source, ledger, changelog, newest), *map(str, disorders)]
    remarks += source_changes.remarks(source.source, changed)
    remarks += protecting.remarks(ledger, source)
    return StageReport(stage="normalize", source=source.source, summary=summary, remarks=tuple(remarks))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """What one run of normalize reads and writes."""

    lake: Lake
    ledger: Ledger
    source: Source
    raw: Table
    changelog: Table

    def change_log(self, done: int) -> ChangeLog:
        """Return the change log up to a batch, with the place where workers write rows of it."""
        target = self.lake.folder_of(self.changelog, CHANGE_LOG, plain=VARIED, bounded=["position"])
        return ChangeLog(table=self.changelog, target=target, done=done)


def _is_released(tables: _Tables, done: int) -> bool:
    """Return whether the source file says since that open transactions wait for nothing."""
    known = open_transactions.known(tables.ledger, tables.change_log(done), tables.source.undelivered)
    return bool(open_transactions.closed_by(known, known.landed().scope()))


def _reprocess(tables: _Tables, done: int, batches: Sequence[int]) -> list[BatchRow]:
    """Derive the events of batches again, and the events of messages that were retried of them."""
    ledger = tables.ledger
    replaced = reprocessing.begin(ledger, batches)
    rows = _decode(tables, done, batches, instead_of=replaced)
    ledger.forget(ReprocessingRow)
    return rows


def _decode(
    tables: _Tables, newest: int, batches: Sequence[int], *, instead_of: BooleanExpression | None = None
) -> list[BatchRow]:
    """Derive the events of batches; the change log is at ``newest`` then.

    Args:
        tables: what is read and written.
        newest: last batch of the change log once this is committed.
        batches: whose messages are decoded.
        instead_of: rows that the change log has of these batches already, and that are replaced; None for new batches.
    """
    lake, ledger, raw, changelog = tables.lake, tables.ledger, tables.raw, tables.changelog
    quarantine = log_tables.quarantine(lake, tables.source.source)
    before = min(batches) - 1
    messages = Messages(parts=list(inputs.parts(raw, among("batch", batches))), read_from=lake.folder_of(raw, RAW))
    change_log = tables.change_log(before)
    set_aside_to = lake.folder_of(quarantine, QUARANTINE, plain=VARIED)
    derived = derive(ledger, tables.source, messages, change_log, set_aside_to)
    if instead_of is not None:
        landed_with = {row.batch: row.retry_of for row in ledger.batches() if row.retry_of is not None}
        derived = derived.with_carried(
            erasures.carried_over(raw, changelog, instead_of, change_log.target, landed_with)
        )
    tallies_of = derived.tallies()
    found = {batch: tallies_of[batch] for batch in batches}
    if instead_of is not None:
        ledger.request_rebuild(reprocessing.concerned(ledger, found, instead_of))
    ledger.write_contents(found, before if instead_of is None else newest, instead_of=instead_of)
    reprocessed = None if instead_of is None else reprocessings.newest(ledger) + 1
    rows = accounting.accounted(ledger, found, reprocessed)
    for row in rows:
        accounting.require_closed(tables.source.source, row)
    replaced = above("batch", before) if instead_of is None else instead_of
    if instead_of is None:
        derived.settle(ledger, newest)
    file_order.note_disorders(ledger, derived.disorders, max(batches), replaced)
    member_rows.note(ledger, derived.unknown_members(), replaced, reprocessed)
    lake.append_files(quarantine, derived.set_aside, {}, instead_of=replaced)
    if instead_of is None:
        ledger.replace(BatchRow, rows, replaced)
    marks = {"batch": str(newest), **erasures.marks(derived.tasks, batches)}
    lake.append_files(changelog, derived.files, marks, instead_of=instead_of)
    if instead_of is not None:
        # Not before: the rows that go say of which batches the change log has events of messages that were retried.
        ledger.replace(BatchRow, rows, replaced)
    source_changes.remember(ledger, tables.source, newest)
    erasures.scrub(lake, tables.source.source)
    if instead_of is not None:
        whole = ChangeLog(table=changelog.refresh(), target=change_log.target, done=newest)
        open_transactions.settle_again(ledger, tables.source.undelivered, derived.tasks, whole)
    return rows
