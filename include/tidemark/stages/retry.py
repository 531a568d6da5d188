"""Retry: quarantined messages again, after a fix of the decoder, of an option, of a key or a type.

What normalize set aside is decoded again from the bytes that quarantine keeps, with the same origin, so an event gets
the position that it would have had. Bytes that quarantine does not keep any more are read from ``raw``; if they are
nowhere, the message stays. Events that decode now are appended to the change log, in a new batch for each batch that
the messages landed with. Messages that still do not decode stay, with their new reason. What compact set aside has its
events in the change log already: its tables are requested to be built again from there. Where events of such a table
are past their time, it cannot be: its messages stay. Tables are built again, too, whose tombstones went since the
messages landed (``tombstone_age``).

The quarantine without the decoded messages is prepared on a branch, and moves there once the change log has them. So
the next normalize, compact, retry, erase or maintain finishes or undoes a retry that was killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import structlog
from pyiceberg.table import Table

from tidemark.compaction import rebuild_requests, tombstone_age
from tidemark.errors import RetriableLakeError
from tidemark.lake import names
from tidemark.lake.branches import branch_from_main, marker
from tidemark.lake.filters import above, equals
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import CHANGE_LOG, QUARANTINE, VARIED
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import BatchRow
from tidemark.normalization import accounting, erasures, inputs, retrying
from tidemark.normalization.derivation import Messages, derive
from tidemark.normalization.transaction_search import ChangeLog
from tidemark.sources.model import Source
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
    erasures.scrub(lake, source.source)
    counts = Counter[str](messages=0, decoded=0, control=0, quarantined=0, rebuilds=0)
    left: Mapping[str, str] = {}
    quarantine = lake.find(names.quarantine(source.source))
    if quarantine is not None:
        objects = _set_aside_by_compact(quarantine, reason)
        left = rebuild_requests.unmet(lake, source, sorted(objects))
        objects -= left.keys()
        ledger.request_rebuild(objects)
        counts.update(rebuilds=len(objects))
        counts.update(_decode_again(lake, ledger, source, quarantine, reason))
    log.info("retried", source=source.source, **counts)
    bare = counts["without_bytes"]
    remarks = [_WITHOUT_BYTES.format(bare, source.source)] if bare else []
    remarks += [_LEFT.format(name, problem) for name, problem in left.items()]
    return StageReport(stage="retry", source=source.source, summary=dict(counts), remarks=tuple(remarks))


_WITHOUT_BYTES = (
    "{} messages of {} stay in quarantine untried: neither it nor raw has their bytes any more (`retention`). Have the "
    "source deliver their rows again, in a new file"
)


_LEFT = "{}: what was set aside of its events stays in quarantine, and the table goes on. To take it in, {}"


def _set_aside_by_compact(quarantine: Table, reason: str | None) -> set[str]:
    files = quarantine.scan(row_filter=equals("reason", reason)) if reason else quarantine.scan()
    return {str(task.file.partition[2]) for task in files.plan_files() if task.file.partition[2] is not None}


def _decode_again(
    lake: Lake, ledger: Ledger, source: Source, quarantine: Table, reason: str | None
) -> Mapping[str, int]:
    where = retrying.tried(reason)
    read_from = lake.folder_of(quarantine, QUARANTINE, plain=VARIED)
    raw, changelog = lake.load(names.raw(source.source)), lake.load(names.change_log(source.source))
    messages = Messages(parts=list(inputs.quarantined(quarantine, where, raw)), read_from=read_from)
    if not messages.parts:
        return {}
    done = int(marker(changelog, "batch") or 0)
    if int(marker(raw, "batch") or 0) > done:
        raise RetriableLakeError(
            f"{source.source}: messages landed that are not normalized yet; run normalize, then retry again"
        )
    landed_with = sorted({part.batch for part, _ in messages.parts})
    batches = {batch: number for number, batch in enumerate(landed_with, done + 1)}
    log_to = lake.folder_of(changelog, CHANGE_LOG, plain=VARIED, bounded=["position"])
    derived = derive(
        ledger, source, messages, ChangeLog(table=changelog, target=log_to, done=done), read_from, batches=batches
    )
    found = derived.tallies()
    rows = [accounting.retried(batch, landed, found[batch]) for landed, batch in batches.items()]
    counts = {"decoded": sum(row.decoded for row in rows), "control": sum(row.control for row in rows)}
    taken = sum(counts.values())
    if bare := sum(tally.without_bytes for tallies in found.values() for tally in tallies):
        counts["without_bytes"] = bare
    tried = sum(tally.landed for tallies in found.values() for tally in tallies)
    if not taken:
        lake.append_files(quarantine, derived.set_aside, {}, instead_of=where)  # perhaps with other reasons
        return {**counts, "messages": tried, "quarantined": tried}
    last = max(batches.values())
    ledger.forget_attempts(done)
    lake.append_files(raw, [], {"batch": str(last)})  # so that land gives the numbers to nobody else
    orphaned = tombstone_age.orphaned(lake, source, batches, found, done) - ledger.rebuild_requests().keys()
    ledger.request_rebuild(orphaned)
    counts["rebuilds"] = len(orphaned)
    ledger.write_contents(found, done)
    ledger.replace(BatchRow, rows, above("batch", done))
    derived.settle(ledger, last)
    branch, again = f"{retrying.RETRY}{last}", erasures.marks(derived.tasks, landed_with)
    quarantine = branch_from_main(quarantine, branch)
    lake.append_files(quarantine, derived.set_aside, retrying.marks(last, reason), instead_of=where, branch=branch)
    lake.append_files(changelog, derived.files, {"batch": str(last), "retry": str(last), **again})
    retrying.finish_retry(lake, source.source)
    erasures.scrub(lake, source.source)
    return {**counts, "messages": tried, "quarantined": tried - taken}
