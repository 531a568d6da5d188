"""Normalize: new messages of ``raw`` into the change log, one row an event; what cannot be read into quarantine.

The workers pass over the new messages once, write and count. One commit of the change log carries the marker of what
was done. Quarantine and ledger are written before it, and count only once the change log has their batch: a normalize
that was killed leaves nothing that a later one does not replace. Some formats cannot read rows without metadata
messages. These are collected first, from the new messages and from the change log.

*Reprocessing* derives the events of batches again that the change log has already, and replaces them. These batches
are written to the ledger first, so the next normalize repeats a reprocessing that was cut short. A table cannot take
back an event that is gone or changed, so compact is requested to build the tables of these batches again. So it is for
tables that other statements concern now (``normalization.restated``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

import structlog
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from tidemark.dumps.listing import moments
from tidemark.errors import LedgerError
from tidemark.lake import foreign, log_tables, names
from tidemark.lake.branches import marker
from tidemark.lake.data_files import Target
from tidemark.lake.filters import above, among
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RAW, VARIED
from tidemark.ledger import member_rows, reprocessings
from tidemark.ledger.expired import Expired
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.order_rows import DisorderRow
from tidemark.ledger.rows import BatchRow, ReprocessingRow, instant_of
from tidemark.ledger.tally import Tally
from tidemark.normalization import (
    decodable,
    erasures,
    file_order,
    inputs,
    open_transactions,
    protecting,
    restated,
    retrying,
    source_changes,
)
from tidemark.normalization.derivation import Messages, derive
from tidemark.normalization.file_times import Disorder
from tidemark.normalization.transaction_search import ChangeLog
from tidemark.queries import source_plan
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.values.iso8601 import from_micros, to_micros

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
        again |= {
            row.batch for row in ledger.landed_files(done) if _within(row.interval_start, source.zone, start, end)
        }
        decodable.require(source.source, raw, Expired(lake, source.source), _with_retries(ledger, again))
    changelog = _by_numbers(ledger, changelog, done, again)
    rows: list[BatchRow] = []
    if raw is not None:
        foreign.require_in_step(raw, changelog)
        tables = _Tables(lake=lake, ledger=ledger, source=source, raw=raw, changelog=changelog)
        if again:
            rows += _reprocess(tables, done, sorted(again))
        if newest == done and _is_released(tables, done):
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
    remarks = [*_order_remarks(source, ledger, changelog, newest), *map(str, disorders)]
    remarks += source_changes.remarks(source.source, changed)
    remarks += protecting.remarks(ledger, source)
    return StageReport(stage="normalize", source=source.source, summary=summary, remarks=tuple(remarks))


def _order_remarks(source: Source, ledger: Ledger, changelog: Table, newest: int) -> list[str]:
    """Return what to do where a change log of an earlier version orders files in another way than by their numbers."""
    if file_order.is_by_numbers(changelog):
        return []
    order = file_order.misordered(changelog, ledger.landed_files(newest))
    again = f"because events were decoded so before. `tidemark run {source.source} --reprocess` orders them as numbers"
    return [f"{order}, {again}"] if order else []


def _by_numbers(ledger: Ledger, changelog: Table, done: int, again: Collection[int]) -> Table:
    """Let numbers in paths count as numbers, in a change log of an earlier version, where that contradicts no event."""
    if file_order.is_by_numbers(changelog):
        return changelog
    files = ledger.landed_files(done)
    anew = {row.batch for row in files} <= set(again)
    if anew:
        _announce(ledger, again)  # if this run is cut short now, the next one derives all events again
    return file_order.adopted(changelog, files, anew=anew)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """What one run of normalize reads and writes."""

    lake: Lake
    ledger: Ledger
    source: Source
    raw: Table
    changelog: Table


def _is_released(tables: _Tables, done: int) -> bool:
    """Return whether the source file says since that open transactions wait for nothing."""
    if not tables.source.undelivered:
        return False
    change_log = ChangeLog(table=tables.changelog, target=_log_to(tables), done=done)
    known = open_transactions.known(tables.ledger, change_log, tables.source.undelivered)
    return bool(open_transactions.closed_by(known, known.landed().scope()))


def _log_to(tables: _Tables) -> Target:
    """Return where the rows of events are written."""
    return tables.lake.target(tables.changelog, CHANGE_LOG, plain=VARIED, bounded=["position"])


def _within(shown: datetime | None, zone: tzinfo, start: datetime | None, end: datetime | None) -> bool:
    """Return whether a file belongs to an interval; one whose path names no time belongs to every interval.

    ``shown`` is the time that the path names, as the clock of the zone shows it.
    """
    if shown is None:
        return True
    starts = map(from_micros, moments(to_micros(shown), zone))
    return any((start is None or at >= start) and (end is None or at < end) for at in starts)


def _with_retries(ledger: Ledger, batches: Iterable[int]) -> set[int]:
    """Return batches, and the batches of events whose messages landed in them and were retried."""
    landed_in = set(batches)
    return landed_in | {row.batch for row in ledger.batches() if row.retry_of in landed_in}


def _announce(ledger: Ledger, batches: Collection[int]) -> None:
    """Write to the ledger that the events of batches are being derived again."""
    if batches:
        rows = [ReprocessingRow(batch=batch) for batch in batches]
        ledger.replace(ReprocessingRow, rows, among("batch", batches))


def _reprocess(tables: _Tables, done: int, batches: Sequence[int]) -> list[BatchRow]:
    """Derive the events of batches again, and the events of messages that were retried of them."""
    ledger = tables.ledger
    _announce(ledger, batches)
    replaced = among("batch", _with_retries(ledger, batches))
    ledger.request_rebuild(row.object for row in ledger.contents(replaced))
    if ledger.transactions():
        # Other transactions may be whole now, and a transaction may concern every table.
        ledger.request_rebuild(row.object for row in ledger.contents())
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
    messages = Messages(parts=list(inputs.parts(raw, among("batch", batches))), read_from=lake.target(raw, RAW))
    log_to = _log_to(tables)
    change_log = ChangeLog(table=changelog, target=log_to, done=before)
    set_aside_to = lake.target(quarantine, QUARANTINE, plain=VARIED)
    derived = derive(ledger, tables.source, messages, change_log, set_aside_to)
    if instead_of is not None:
        landed_with = {row.batch: row.retry_of for row in ledger.batches() if row.retry_of is not None}
        derived = derived.with_carried(erasures.carried_over(raw, changelog, instead_of, log_to, landed_with))
    tallies_of = derived.tallies()
    found = {batch: tallies_of[batch] for batch in batches}
    if instead_of is not None:
        contents = (content for tallies in found.values() for tally in tallies for content, _ in tally.contents)
        with_events = {str(content.table) for content in contents}
        ledger.request_rebuild(with_events | restated.concerned(ledger, found, instead_of))
    ledger.write_contents(found, before if instead_of is None else newest, instead_of=instead_of)
    reprocessed = None if instead_of is None else reprocessings.newest(ledger) + 1
    rows = _accounted(ledger, found, reprocessed)
    for row in rows:
        _close(tables.source.source, row)
    replaced = above("batch", before) if instead_of is None else instead_of
    if instead_of is None:
        derived.settle(ledger, newest)
    _note_disorders(ledger, derived.disorders, max(batches), replaced)
    member_rows.note(ledger, derived.unknown_members(), replaced, reprocessed)
    lake.append_files(quarantine, derived.set_aside, {}, instead_of=replaced)
    ledger.replace(BatchRow, rows, replaced)
    marks = {"batch": str(newest), **erasures.marks(derived.tasks, batches)}
    lake.append_files(changelog, derived.files, marks, instead_of=instead_of)
    source_changes.remember(ledger, tables.source, newest)
    erasures.scrub(lake, tables.source.source)
    if instead_of is not None:
        whole = ChangeLog(table=changelog.refresh(), target=log_to, done=newest)
        open_transactions.settle_again(ledger, tables.source.undelivered, derived.tasks, whole)
    return rows


def _note_disorders(ledger: Ledger, found: Iterable[Disorder], batch: int, replaced: BooleanExpression) -> None:
    rows = [
        DisorderRow(
            batch=batch,
            object=each.table,
            events=each.events,
            of=each.of,
            before=each.before,
            behind=each.behind,
        )
        for each in found
    ]
    if rows:
        ledger.replace(DisorderRow, rows, replaced)
    elif ledger.disorders(replaced):
        ledger.forget(DisorderRow, replaced)


def _accounted(ledger: Ledger, found: Mapping[int, Sequence[Tally]], reprocessed: int | None) -> list[BatchRow]:
    """Return what became of the messages of each batch, beside how many messages its files had."""
    landed = Counter[int]()
    for file in ledger.files(among("batch", found)):
        landed[file.batch] += file.messages
    return [
        BatchRow(
            batch=batch,
            landed=landed[batch],
            decoded=sum(tally.decoded for tally in tallies),
            control=sum(tally.control for tally in tallies),
            quarantined=sum(tally.quarantined for tally in tallies),
            events=sum(count for tally in tallies for _, count in tally.contents),
            logs=tuple(sorted({log for tally in tallies for log in tally.logs})[:2]),
            heard=instant_of(max((tally.heard for tally in tallies if tally.heard is not None), default=None)),
            reprocessed=reprocessed,
        )
        for batch, tallies in sorted(found.items())
    ]


def _close(source: str, row: BatchRow) -> None:
    """Refuse a batch if messages of it went missing."""
    if row.landed != row.accounted:
        raise LedgerError(
            f"{source}, batch {row.batch}: {row.landed} messages landed, but {row.decoded} decoded + "
            f"{row.control} control + {row.quarantined} quarantined = {row.accounted}. Nothing of it is published."
        )
