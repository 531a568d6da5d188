"""Erase: a data subject's rows gone from every table, old snapshots among them, with a certificate. Beside the flow.

The key is kept as a keyed hash, before anything is removed: what is delivered, decoded or built again later does not
bring the rows back. Each step removes what it finds, so running the command again finishes an erasure that was cut
short; meanwhile no other stage works on the source. No Spark, but for the search in a large ``raw``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

import msgspec
import structlog

from tidemark.erasure import attempts, compared_keys, logs, refusals, sentences
from tidemark.erasure import certificate as certificates
from tidemark.erasure import cut as erasing_cut
from tidemark.erasure.certificate import Certificate
from tidemark.erasure.search import Places, by_file, dumps, search
from tidemark.erasure.subject import ErasedRow, find_subject
from tidemark.errors import ConfigurationError
from tidemark.lake import copies, file_edits
from tidemark.lake.catalog import home
from tidemark.lake.file_edits import Edit, RowsFound
from tidemark.lake.lake import Lake
from tidemark.ledger import restoring
from tidemark.ledger.erasure_rows import BEGUN, DONE, ErasureRow
from tidemark.ledger.expired import Expired
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import erasures, retrying
from tidemark.normalization.erased_keys import EVER, EVERYWHERE, Erasure, fingerprint
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables.eras import of_table

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What an erasure works on."""

    lake: Lake
    ledger: Ledger
    source: Source
    subject: ErasedRow
    secret: bytes

    def compared(self, erased: Sequence[Erasure]) -> Edit:
        """Return the edit that takes keys out of the ledger's comparisons with the source database."""
        return compared_keys.edit(self.source.source, self.secret, erased)

    def under_new_names(self, erased: Sequence[Erasure]) -> tuple[Erasure, ...]:
        """Return erasures of the row, with those under the names of copies that landed since."""
        latest = (max(each.before for each in erased), max(each.horizon for each in erased))
        known = {each.object for each in erased}
        more = self.subject.erasures(self.secret, *latest)
        return (*erased, *(each for each in more if each.object not in known))


def run(
    source: Source,
    table: str,
    key: Sequence[str],
    *,
    dry_run: bool = False,
    verify: bool = False,
    follow: bool | None = None,
    unread: bool = False,
) -> StageReport:
    """Erase the rows with a key, or only report what is there of them.

    Args:
        source: the source.
        table: a published table of it, as ``source.table``.
        key: the key, as texts ``COLUMN=VALUE``.
        dry_run: report what would be removed, and remove nothing.
        verify: search again for a row that was erased, and write its certificate again.
        follow: whether to erase the row under the other keys that it had, too; without it, such keys are an error.
        unread: remove messages too that could not be decoded, if their text has the table's name and the key.

    Raises:
        ConfigurationError: there is no such table or key, the secret is missing, or the row had other keys.
        RetriableLakeError: messages with rows are still to be decoded: what landed, or is in quarantine and can be
            decoded now, or what a reprocess that was cut short was to derive.
        LakeError: the store or the engine failed; running again continues.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    secret = erasures.secret()
    known = ledger.erasures()
    erasures.require_same_secret(source.source, known, secret)
    retrying.finish_retry(lake, source.source)
    restoring.finish(lake, ledger)
    subject = find_subject(lake, ledger, table, key, follow=follow)
    mine = attempts.of_command(known, wanted := subject.erasures(secret, EVER, EVERYWHERE))
    begun = any(row.state == BEGUN for row in mine)
    refusals.require_known(lake, ledger, source, subject, begun=begun)
    refusals.require_derived(lake, ledger, source.source, begun=begun)
    work = _Work(lake=lake, ledger=ledger, source=source, subject=subject, secret=secret)
    if verify:
        return _verified(work, mine)
    places = search(lake, ledger, source, subject, secret, wanted)
    expired = Expired(lake, source.source).among([*subject.names, *subject.copies.names])
    unfollowed = max((batch for _, batch in expired), default=0)
    if dry_run:
        return _rehearsed(work, places, wanted, unfollowed, begun=begun)
    is_done = bool(mine) and all(row.state == DONE and (row.unfollowed or 0) <= unfollowed for row in mine)
    if is_done and not _is_anything(work, places, wanted, unread=unread):
        return _verified(work, mine)
    refusals.require_possible(lake, ledger, subject, places, begun=begun)
    log.info("erasing", source=source.source, table=str(subject.target), events=len(places.events))
    rows = attempts.begin(ledger, subject, secret, mine, attempts.time_of(places, mine, known), unfollowed)
    removed, cut = _erased(work, rows, places, unread=unread)
    done = [msgspec.structs.replace(row, state=DONE, cut=cut) for row in rows]
    report = _certified(work, done, removed, places_before=places)
    ledger.replace(ErasureRow, done, attempts.are(done))
    return report


def _rehearsed(work: _Work, places: Places, wanted: Sequence[Erasure], unfollowed: int, *, begun: bool) -> StageReport:
    """Return what is there of the rows, with the problems that the erasure would have."""
    lake, ledger, subject = work.lake, work.ledger, work.subject
    refusals.require_possible(lake, ledger, subject, places, begun=begun)
    found = certificates.searched(lake, ledger, subject, places, {})
    found |= certificates.compared(lake, work.compared(wanted), file_edits.NOTHING)
    problems = (
        *sentences.unsearched(subject, places.unsearched),
        *sentences.unfollowed(subject, unfollowed),
        *sentences.unpaired(subject, subject.unpaired),
        *sentences.in_copies(subject, places.in_copies),
    )
    return _with(_report(work.source, subject, found, places, {"dry_run": 1}), problems=problems)


def _is_anything(work: _Work, places: Places, wanted: Sequence[Erasure], *, unread: bool) -> bool:
    if places.erasable or (unread and places.unread):
        return True
    published = erasing_cut.find(work.lake, work.ledger, work.subject).values()
    compared = certificates.compared(work.lake, work.compared(wanted), file_edits.NOTHING).values()
    return any(each.files for each in published) or any(each.found for each in compared)


def _erased(
    work: _Work, rows: Sequence[ErasureRow], places: Places, *, unread: bool
) -> tuple[dict[str, RowsFound], int]:
    """Remove the rows from all messages, from what is published, from the change log; then files that nothing needs."""
    lake, ledger, subject = work.lake, work.ledger, work.subject
    with copies.rehearsal(subject.source):  # drops what a rehearsal that was cut short left
        pass
    removed = logs.erase_messages(lake, subject, places, unread=unread)
    number, published = erasing_cut.publish(lake, ledger, subject, logs.count_uncounted(lake, ledger, subject, places))
    removed |= logs.erase_events(lake, subject, places)
    logs.recount(lake, ledger, subject)
    every = [msgspec.structs.replace(erasures.erasure_of(row), before=EVER) for row in rows]
    removed[str(compared_keys.TABLE)] = compared_keys.erase(lake, work.compared(every))
    compared_keys.purge(lake, subject.source)
    erasing_cut.purge(lake, ledger, subject, number)
    return {**removed, **published}, number


def _verified(work: _Work, mine: Sequence[ErasureRow]) -> StageReport:
    if not mine:
        raise ConfigurationError(f"{work.subject.target}: no row with this key was erased")
    return _certified(work, mine, {})


def _certified(
    work: _Work, rows: Sequence[ErasureRow], removed: Mapping[str, RowsFound], places_before: Places | None = None
) -> StageReport:
    """Search for the rows, and return the report of what was found, with the certificate written."""
    source, subject = work.source, work.subject
    erased = work.under_new_names(tuple(map(erasures.erasure_of, rows)))
    found = search(work.lake, work.ledger, source, subject, work.secret, erased)
    places = certificates.searched(work.lake, work.ledger, subject, found, removed, erased)
    compared = removed.get(str(compared_keys.TABLE), file_edits.NOTHING)
    places |= certificates.compared(work.lake, work.compared(erased), compared)
    written = Certificate(
        source=subject.source,
        table=str(subject.target),
        names=subject.names,
        key_columns=list(subject.reader.key),
        earlier_key_columns=[list(era.key) for era in of_table(subject.events.table)[:-1]],
        digests=list(dict.fromkeys(row.digest for row in rows)),
        secret=fingerprint(work.secret),
        erased_up_to=max(row.before for row in rows).isoformat(),
        cut=max((row.cut for row in rows if row.cut is not None), default=None),
        searched_at=datetime.now(UTC).isoformat(),
        places=places,
        newer_events=found.newer,
        unread_messages=by_file(found.unread),
        unsearched_messages=dict(found.unsearched),
        unfollowed=max(row.unfollowed or 0 for row in rows),
        unpaired_events=max(row.unpaired or 0 for row in rows),
        dumps=dumps(places_before or found),
        retriable_messages=by_file(found.retriable),
        copies=subject.copies.names,
        unkeyed_events=dict(found.in_copies.unkeyed),
        published_copies=dict(found.in_copies.published),
    )
    path = written.write(home())
    log.info("erased", source=source.source, table=written.table, cut=written.cut, nothing_found=written.nothing_found)
    summary: dict[str, int | str] = {
        "cut": written.cut or 0,
        "nothing_found": int(written.nothing_found),
        "certificate": str(path),
    }
    report = _report(source, subject, written.places, places_before or found, summary, left=written.unread_messages)
    ahead = sentences.ahead(subject, max(row.before for row in rows))
    problems = (
        *sentences.unsearched(subject, written.unsearched_messages),
        *sentences.unfollowed(subject, written.unfollowed),
        *sentences.retriable(subject.source, written.retriable_messages),
        *sentences.unpaired(subject, written.unpaired_events),
        *sentences.in_copies(subject, found.in_copies),
    )
    return _with(report, problems=problems, remarks=ahead)


def _with(report: StageReport, *, problems: Iterable[str] = (), remarks: Iterable[str] = ()) -> StageReport:
    return replace(report, problems=(*report.problems, *problems), remarks=(*report.remarks, *remarks))


def _report(
    source: Source,
    subject: ErasedRow,
    places: Mapping[str, certificates.SearchedTable],
    found: Places,
    summary: Mapping[str, int | str],
    left: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> StageReport:
    """Return the report: a line for each table, a problem for what is left, a remark for each dump with the rows."""
    problems = [*sentences.rows_left(subject, places, left)] if "nothing_found" in summary else []
    problems += [*sentences.unknown_files(places), *sentences.undecoded(source.source, left)]
    return StageReport(
        stage="erase",
        source=source.source,
        summary={**summary},
        problems=tuple(problems),
        remarks=tuple(sentences.in_dumps(dumps(found))),
        details={name: dict(msgspec.to_builtins(place)) for name, place in places.items()},
    )
