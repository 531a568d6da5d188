"""Normalize: new messages of ``raw`` into the change log, one row an event; what cannot be read into quarantine.

One pass over the new messages by the workers, which write and count; one commit of the change log that carries its own
marker. Quarantine and ledger are written before it and count only once the change log has their batch, so a killed
normalize leaves nothing behind that a later one does not replace. A format that cannot read rows without metadata
messages has these collected before, from the new messages and from the change log.

Asked to *reprocess*, it derives the events of batches again that the change log has already, in place of what it has of
them. These batches are written to the ledger first: a reprocessing that was cut short is done again by the next
normalize. An event that is gone or other than it was cannot be taken back from a table, so the tables of these batches
are asked to be built again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

import structlog
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table

from tidemark.errors import LedgerError
from tidemark.lake.branches import marker
from tidemark.lake.filters import above, among
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, RAW, VARIED
from tidemark.lake.properties import CHANGE_LOG_PROPERTIES, LOG_PROPERTIES
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger, Row
from tidemark.ledger.tally import Tally
from tidemark.normalization import inputs, open_transactions, retrying, tasks
from tidemark.normalization.tasks import Done
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.stages import StageReport

log = structlog.get_logger(__name__)

_COUNTS = ("landed", "decoded", "control", "quarantined", "events")


def run(
    source: Source, start: datetime | None = None, end: datetime | None = None, *, reprocess: bool = False
) -> StageReport:
    """Decode every batch that ``raw`` has and the change log has not.

    Args:
        source: the source.
        start: of the interval; only reprocessing asks for it.
        end: of the interval.
        reprocess: also decode those batches again that hold a file of the interval (without bounds: all batches).

    Raises:
        LedgerError: messages went missing between ``raw`` and the change log.
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    retrying.finish_retry(lake, source.source)
    raw = lake.find(("raw", source.source))
    changelog = lake.ensure(
        ("changelog", source.source), CHANGE_LOG, CHANGE_LOG_PROPERTIES, partition_by=["batch", "kind", "object"]
    )
    done = int(marker(changelog, "batch") or 0)
    newest = int(marker(raw, "batch") or 0)
    again = {row["batch"] for row in ledger.read("reprocessing")}
    if reprocess:
        again |= _of_interval(ledger, start, end, done)
    rows: list[Row] = []
    if raw is not None and again:
        rows += _reprocess(lake, ledger, source, raw, changelog, done, sorted(again))
    if raw is not None and newest > done:
        fresh = range(done + 1, newest + 1)
        rows += _decode(lake, ledger, source, raw, changelog, newest, fresh, above("batch", done), again=False)
    totals = Counter[str]()
    for row in rows:
        totals.update({name: row[name] for name in _COUNTS})
    log.info("normalized", source=source.source, **totals)
    summary = {**totals, "batch": newest, **({"reprocessed": len(again)} if again else {})}
    return StageReport(stage="normalize", source=source.source, summary=summary)


def _of_interval(ledger: Ledger, start: datetime | None, end: datetime | None, done: int) -> set[int]:
    """Batches up to ``done`` with a file of the interval; a file whose path names no time belongs to every interval."""

    def within(at: datetime | None) -> bool:
        return at is None or ((start is None or at >= start) and (end is None or at < end))

    return {row["batch"] for row in ledger.landed_files(done).values() if within(row["interval_start"])}


def _reprocess(
    lake: Lake, ledger: Ledger, source: Source, raw: Table, changelog: Table, done: int, batches: Sequence[int]
) -> list[Row]:
    """Derive the events of batches again, and of what was retried of them."""
    ledger.replace("reprocessing", [{"batch": batch} for batch in batches], among("batch", batches))
    retries = {row["batch"] for row in ledger.read("batches") if row["retry_of"] in set(batches)}
    replaced = among("batch", retries | set(batches))
    ledger.ask_for_rebuild(row["object"] for row in ledger.read("contents", replaced))
    if ledger.read("transactions"):
        # Which transactions are whole may be another matter now, and concerns every table.
        ledger.ask_for_rebuild(row["object"] for row in ledger.read("contents"))
    rows = _decode(lake, ledger, source, raw, changelog, done, batches, replaced, again=True)
    ledger.forget("reprocessing")
    return rows


def _decode(
    lake: Lake,
    ledger: Ledger,
    source: Source,
    raw: Table,
    changelog: Table,
    newest: int,
    batches: Sequence[int],
    replaced: BooleanExpression,
    *,
    again: bool,
) -> list[Row]:
    """Derive the events of batches in place of whatever rows there are; the change log is at ``newest`` then."""
    quarantine = lake.ensure(
        ("quarantine", source.source), QUARANTINE, LOG_PROPERTIES, partition_by=["batch", "reason", "object"]
    )
    read_from = lake.target(raw, RAW)
    parts = list(inputs.parts(raw, among("batch", batches)))
    transactions = ledger_transactions.states(ledger, min(batches) - 1)
    log_to = lake.target(changelog, CHANGE_LOG, plain=VARIED, bounded=["position"])
    work = partial(
        tasks.normalize,
        format_name=source.format,
        options=source.options.model_dump(mode="json"),
        known=inputs.known(source, parts, read_from, changelog),
        raw=read_from,
        log=log_to,
        quarantine=lake.target(quarantine, QUARANTINE, plain=VARIED),
        declared=source.written(),
        marked=ledger_transactions.marked(transactions),
        unsettled=ledger_transactions.unsettled(transactions),
    )
    did = spread.run(parts, work, Done)
    rows = _account(ledger, did, batches, newest, replaced if again else None)
    for row in rows:
        _close(source.source, row)
    if not again:
        log_before = open_transactions.ChangeLog(table=changelog, target=log_to, done=min(batches) - 1)
        open_transactions.settle(ledger, transactions, did, log_before, newest)
    lake.append_files(quarantine, [file for task in did for file in task.set_aside], {}, instead_of=replaced)
    ledger.replace("batches", rows, replaced)
    files = [file for task in did for file in task.files]
    lake.append_files(changelog, files, {"batch": str(newest)}, instead_of=replaced if again else None)
    if again:
        whole = open_transactions.ChangeLog(table=changelog.refresh(), target=log_to, done=newest)
        open_transactions.settle_again(ledger, did, whole)
    return rows


def _account(
    ledger: Ledger, did: Iterable[Done], batches: Sequence[int], newest: int, replaced: BooleanExpression | None
) -> list[Row]:
    """Write down what the batches held of each table; the rows that tell what became of their messages."""
    found: dict[int, list[Tally]] = {batch: [] for batch in batches}
    for task in did:
        for batch, tally in task.tallies.items():
            found[batch].append(tally)
    if replaced is not None:
        contents = (content for tallies in found.values() for tally in tallies for content, _ in tally.contents)
        ledger.ask_for_rebuild({str(content.table) for content in contents})
    ledger.tell_contents(found, newest if replaced is not None else min(batches) - 1, instead_of=replaced)
    landed = Counter[int]()
    for file in ledger.read("files", among("batch", batches)):
        landed[file["batch"]] += file["messages"]
    return [_batch(batch, landed[batch], tallies) for batch, tallies in sorted(found.items())]


def _batch(batch: int, landed: int, tallies: Iterable[Tally]) -> Row:
    names = ("decoded", "control", "quarantined")
    counts: Mapping[str, int] = {name: sum(getattr(tally, name) for tally in tallies) for name in names}
    events = sum(count for tally in tallies for _, count in tally.contents)
    return {"batch": batch, "landed": landed, **counts, "events": events}


def _close(source: str, row: Row) -> None:
    accounted = row["decoded"] + row["control"] + row["quarantined"]
    if row["landed"] != accounted:
        raise LedgerError(
            f"{source}, batch {row['batch']}: {row['landed']} messages landed, but {row['decoded']} decoded + "
            f"{row['control']} control + {row['quarantined']} quarantined = {accounted}. Nothing of it is published."
        )
