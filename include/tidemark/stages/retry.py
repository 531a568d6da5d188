"""Retry: quarantined messages again, after a fix of the decoder, of an option, of a key or a type.

What normalize set aside is decoded again from the bytes that quarantine keeps, with the same origin, so an event gets
the position that it would have had. What decodes now is appended to the change log, in a batch of its own for each
batch that the messages landed with; what still does not, stays, with its new reason. What compact set aside has its
events in the change log already: its tables are asked to be built again from there.

A killed retry is finished or undone by the next normalize, compact or retry: the quarantine without the decoded
messages is prepared on a branch, and moves there once the change log has them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

import structlog
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.table import Table

from tidemark.errors import LedgerError, RetriableLakeError
from tidemark.lake.branches import branch_from_main, marker
from tidemark.lake.filters import above, equals, unset
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, VARIED
from tidemark.ledger import transactions as ledger_transactions
from tidemark.ledger.ledger import Ledger, Row
from tidemark.ledger.tally import Tally
from tidemark.normalization import inputs, open_transactions, retrying, tasks
from tidemark.normalization.tasks import Done
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.stages import StageReport

log = structlog.get_logger(__name__)


def run(source: Source, reason: str | None = None) -> StageReport:
    """Try the quarantined messages of one reason again, or all.

    Raises:
        RetriableLakeError: something landed that is not normalized yet.
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    retrying.finish_retry(lake, source.source)
    counts = Counter[str](messages=0, decoded=0, control=0, quarantined=0, rebuilds=0)
    quarantine = lake.find(("quarantine", source.source))
    if quarantine is not None:
        objects = _set_aside_by_compact(quarantine, reason)
        ledger.ask_for_rebuild(objects)
        counts.update(rebuilds=len(objects), **_decode_again(lake, ledger, source, quarantine, reason))
    log.info("retried", source=source.source, **counts)
    return StageReport(stage="retry", source=source.source, summary=dict(counts))


def _set_aside_by_compact(quarantine: Table, reason: str | None) -> set[str]:
    files = quarantine.scan(row_filter=equals("reason", reason)) if reason else quarantine.scan()
    return {str(task.file.partition[2]) for task in files.plan_files() if task.file.partition[2] is not None}


def _decode_again(
    lake: Lake, ledger: Ledger, source: Source, quarantine: Table, reason: str | None
) -> Mapping[str, int]:
    where: BooleanExpression = unset("object")
    if reason:
        where = And(where, equals("reason", reason))
    read_from = lake.target(quarantine, QUARANTINE, plain=VARIED)
    parts = list(inputs.parts(quarantine, where))
    if not parts:
        return {}
    raw, changelog = lake.load(("raw", source.source)), lake.load(("changelog", source.source))
    done = int(marker(changelog, "batch") or 0)
    if int(marker(raw, "batch") or 0) > done:
        raise RetriableLakeError(
            f"{source.source}: messages landed that are not normalized yet; run normalize, then retry again"
        )
    landed_with = sorted({part.batch for part, _ in parts})
    batches = {batch: number for number, batch in enumerate(landed_with, done + 1)}
    transactions = ledger_transactions.states(ledger, done)
    log_to = lake.target(changelog, CHANGE_LOG, plain=VARIED, bounded=["position"])
    work = partial(
        tasks.normalize,
        format_name=source.format,
        options=source.options.model_dump(mode="json"),
        known=inputs.known(source, parts, read_from, changelog),
        raw=read_from,
        log=log_to,
        quarantine=read_from,
        batches=batches,
        declared=source.written(),
        marked=ledger_transactions.marked(transactions),
        unsettled=ledger_transactions.unsettled(transactions),
    )
    did = spread.run(parts, work, Done)
    found = _by_batch(did)
    rows = [_row(batch, landed, found[batch]) for landed, batch in batches.items()]
    counts = {name: sum(row[name] for row in rows) for name in ("decoded", "control")}
    taken = sum(counts.values())
    messages = sum(tally.landed for tallies in found.values() for tally in tallies)
    set_aside = [file for task in did for file in task.set_aside]
    if not taken:
        lake.append_files(quarantine, set_aside, {}, instead_of=where)  # perhaps with other reasons
        return {**counts, "messages": messages, "quarantined": messages}
    last = max(batches.values())
    ledger.forget_attempts(done)
    lake.append_files(raw, [], {"batch": str(last)})  # so that land gives the numbers to nobody else
    ledger.tell_contents(found, done)
    ledger.replace("batches", rows, above("batch", done))
    open_transactions.settle(
        ledger, transactions, did, open_transactions.ChangeLog(table=changelog, target=log_to, done=done), last
    )
    branch = f"{retrying.RETRY}{last}"
    quarantine = branch_from_main(quarantine, branch)
    lake.append_files(quarantine, set_aside, {"retry": str(last)}, instead_of=where, branch=branch)
    files = [file for task in did for file in task.files]
    lake.append_files(changelog, files, {"batch": str(last), "retry": str(last)})
    retrying.finish_retry(lake, source.source)
    return {**counts, "messages": messages, "quarantined": messages - taken}


def _by_batch(did: Iterable[Done]) -> dict[int, list[Tally]]:
    found: dict[int, list[Tally]] = defaultdict(list)
    for task in did:
        for batch, tally in task.tallies.items():
            found[batch].append(tally)
    return found


def _row(batch: int, landed_with: int, tallies: Iterable[Tally]) -> Row:
    """How the messages that decode now are booked: nothing landed anew, and so many are quarantined no more."""
    totals = Counter[str]()
    for tally in tallies:
        names = ("landed", "decoded", "control", "quarantined")
        totals.update({name: getattr(tally, name) for name in names})
        totals["events"] += sum(count for _, count in tally.contents)
    taken = totals["decoded"] + totals["control"]
    if totals["landed"] != taken + totals["quarantined"]:
        raise LedgerError(
            f"batch {landed_with}: {totals['landed']} quarantined messages were tried again, but {taken} decoded now + "
            f"{totals['quarantined']} still quarantined. Nothing of it is kept."
        )
    counts = {"decoded": totals["decoded"], "control": totals["control"], "quarantined": -taken}
    return {"batch": batch, "landed": 0, **counts, "events": totals["events"], "retry_of": landed_with}
