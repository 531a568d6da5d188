"""Erase: a data subject's rows gone from every table, old snapshots among them, with a certificate. Beside the flow.

The key is kept as a keyed hash, before anything is removed: what is delivered, decoded or built again later does not
bring the rows back. Each step removes what it finds, so running the command again finishes an erasure that was cut
short; meanwhile no other stage works on the source. No Spark, but for the search in a large ``raw``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from types import MappingProxyType

import msgspec
import structlog
from pyiceberg.expressions import And, BooleanExpression, Or

from tidemark.erasure import certificate as certificates
from tidemark.erasure import cut as erasing_cut
from tidemark.erasure import logs, refusals
from tidemark.erasure.certificate import Certificate
from tidemark.erasure.search import Places, by_file, dumps, search
from tidemark.erasure.subject import Subject, find_subject, is_normalized
from tidemark.errors import ConfigurationError, RetriableLakeError
from tidemark.lake import copies
from tidemark.lake.catalog import home
from tidemark.lake.file_edits import Found
from tidemark.lake.filters import equals, unset
from tidemark.lake.lake import Lake
from tidemark.ledger import cuts
from tidemark.ledger.erasure_rows import BEGUN, DONE, ErasureRow
from tidemark.ledger.ledger import Ledger
from tidemark.normalization import erasures, retrying
from tidemark.normalization.erased_keys import EVER, EVERYWHERE, Erasure, fingerprint
from tidemark.sources.model import Source
from tidemark.stages import StageReport
from tidemark.tables.eras import of_table
from tidemark.values.iso8601 import to_micros

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What an erasure works on."""

    lake: Lake
    ledger: Ledger
    source: Source
    subject: Subject
    secret: bytes


def run(
    source: Source,
    table: str,
    key: Sequence[str],
    *,
    dry_run: bool = False,
    verify: bool = False,
    follow: bool = False,
    unread: bool = False,
) -> StageReport:
    """Erase the rows with a key, or only report what is there of them.

    Args:
        source: the source.
        table: a published table of it, as ``source.table``.
        key: the key, as texts ``COLUMN=VALUE``.
        dry_run: report what would be removed, and remove nothing.
        verify: search again for a row that was erased, and write its certificate again.
        follow: erase the row under the other keys that it had, too.
        unread: remove messages too that could not be decoded, if their text has the table's name and the key.

    Raises:
        ConfigurationError: there is no such table or key, the secret is missing, or the row had other keys.
        RetriableLakeError: something landed that is not normalized yet.
        LakeError: the store or the engine failed; running again continues.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    secret = erasures.secret()
    known = ledger.erasures()
    erasures.require_same_secret(source.source, known, secret)
    retrying.finish_retry(lake, source.source)
    cuts.finish(lake, ledger)
    subject = find_subject(lake, ledger, table, key, follow=follow)
    refusals.require_known(lake, ledger, source, subject)
    if not is_normalized(lake, source.source):
        raise RetriableLakeError(
            f"{source.source}: messages landed that are not normalized yet; run normalize, then erase again"
        )
    mine = _of_command(known, subject.erasures(secret, EVER, EVERYWHERE))
    work = _Work(lake=lake, ledger=ledger, source=source, subject=subject, secret=secret)
    if verify:
        return _verified(work, mine)
    places = search(lake, ledger, source, subject, secret, subject.erasures(secret, EVER, EVERYWHERE))
    if dry_run:
        found = certificates.searched(lake, ledger, subject, places, {})
        return _report(source, subject, found, places, {"dry_run": 1})
    is_done = bool(mine) and all(row.state == DONE for row in mine)
    if is_done and not _is_anything(lake, ledger, subject, places, unread=unread):
        return _verified(work, mine)
    refusals.require_own(lake, ledger, subject)
    rows = _begun(ledger, subject, secret, places, mine)
    removed, cut = _erased(lake, ledger, source, subject, places, unread=unread)
    done = [msgspec.structs.replace(row, state=DONE, cut=cut) for row in rows]
    report = _certified(work, done, removed, places_before=places)
    ledger.replace(ErasureRow, done, _are(done))
    return report


def _of_command(known: Sequence[ErasureRow], erasures: Sequence[Erasure]) -> list[ErasureRow]:
    """Return the rows of earlier attempts: for these keys, and for keys that a command began together with them.

    Once its events are erased, nothing shows which keys a row had in earlier eras.
    """
    asked = {(each.digest, each.begins) for each in erasures}
    mine = [row for row in known if (row.digest, row.begins or "") in asked]
    times = {row.before for row in mine}
    return [*mine, *(row for row in known if row.before in times and row not in mine)]


def _are(rows: Sequence[ErasureRow]) -> BooleanExpression:
    """Return the condition that a row of the ledger is one of these."""
    each: list[BooleanExpression] = []
    for row in rows:
        begins = Or(equals("begins", row.begins or ""), unset("begins"))
        each.append(And(equals("digest", row.digest), begins))
    return reduce(Or, each)


def _is_anything(lake: Lake, ledger: Ledger, subject: Subject, places: Places, *, unread: bool) -> bool:
    published = erasing_cut.find(lake, ledger, subject).values()
    return bool(places.erasable or (unread and places.unread) or any(each.files for each in published))


def _begun(
    ledger: Ledger, subject: Subject, secret: bytes, places: Places, earlier: Sequence[ErasureRow]
) -> list[ErasureRow]:
    """Write to the ledger that the keys are erased, before anything is; with those that an attempt before began."""
    now = datetime.now(UTC)
    spans = [span.newest for span in ledger.spans() if span.object in subject.names]
    rows = [
        ErasureRow(
            object=each.object,
            digest=each.digest,
            reading=msgspec.json.encode(each.columns).decode(),
            secret=fingerprint(secret),
            before=now,
            horizon=each.horizon,
            state=BEGUN,
            begins=each.begins,
            ends=each.ends,
        )
        for each in subject.erasures(secret, to_micros(now), max(spans, default=""))
    ]
    identities = {(row.digest, row.begins) for row in rows}
    others = [row for row in earlier if row.state == BEGUN and (row.digest, row.begins) not in identities]
    rows += [msgspec.structs.replace(row, before=now) for row in others]
    ledger.replace(ErasureRow, rows, _are(rows))
    log.info("erasing", source=subject.source, table=str(subject.target), events=len(places.events))
    return rows


def _erased(
    lake: Lake, ledger: Ledger, source: Source, subject: Subject, places: Places, *, unread: bool
) -> tuple[dict[str, Found], int]:
    """Remove the rows from all messages, from what is published, from the change log; then files that nothing needs."""
    with copies.rehearsal(source.source):  # drops what a rehearsal that was cut short left
        pass
    removed = logs.erase_messages(lake, subject, places, unread=unread)
    erased = sum(row["detail"] is None for row in logs.erased_events(lake, subject))
    events = erased + logs.count_events(lake, subject, places)
    last = cuts.last_published(ledger)
    rows = ledger.tables(equals("object", subject.object))
    counted = sum(row.erased or 0 for row in rows if last is not None and row.cut <= last.cut)
    number, published = erasing_cut.publish(lake, ledger, subject, max(0, events - counted))
    removed |= logs.erase_events(lake, subject, places)
    logs.recount(lake, ledger, subject)
    erasing_cut.purge(lake, ledger, subject, number)
    return {**removed, **published}, number


def _verified(work: _Work, mine: Sequence[ErasureRow]) -> StageReport:
    if not mine:
        raise ConfigurationError(f"{work.subject.target}: no row with this key was erased")
    return _certified(work, mine, {})


def _certified(
    work: _Work, rows: Sequence[ErasureRow], removed: Mapping[str, Found], places_before: Places | None = None
) -> StageReport:
    """Search for the rows, and return the report of what was found, with the certificate written."""
    source, subject = work.source, work.subject
    erased = tuple(map(erasures.erasure_of, rows))
    found = search(work.lake, work.ledger, source, subject, work.secret, erased)
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
        places=certificates.searched(work.lake, work.ledger, subject, found, removed, erased),
        newer_events=found.newer,
        unread_messages=by_file(found.unread),
        dumps=dumps(places_before or found),
    )
    path = written.write(home())
    log.info("erased", source=source.source, table=written.table, cut=written.cut, nothing_found=written.nothing_found)
    summary: dict[str, int | str] = {
        "cut": written.cut or 0,
        "nothing_found": int(written.nothing_found),
        "certificate": str(path),
    }
    return _report(source, subject, written.places, places_before or found, summary, left=written.unread_messages)


def _report(
    source: Source,
    subject: Subject,
    places: Mapping[str, certificates.Place],
    found: Places,
    summary: Mapping[str, int | str],
    left: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> StageReport:
    """Return the report: a line for each table, a problem for what is left, a remark for each dump with the rows."""
    totals: dict[str, int | str] = {**summary}
    problems = [] if summary.get("nothing_found", 1) or left else [f"{subject.target}: rows are left, erase again"]
    problems += [
        f"{file}, messages {', '.join(map(str, numbers))}: not decoded, in quarantine, and the text has the table's "
        f"name and the key. Correct the cause and `tidemark quarantine retry {source.source}`, or erase with `--unread`"
        for file, numbers in left.items()
    ]
    remarks = [
        f"{file} holds rows of the key at {', '.join(map(str, numbers))}: Tidemark does not touch dump files"
        for file, numbers in dumps(found).items()
    ]
    details = {name: dict(msgspec.to_builtins(place)) for name, place in places.items()}
    return StageReport(
        stage="erase",
        source=source.source,
        summary=totals,
        problems=tuple(problems),
        remarks=tuple(remarks),
        details=details,
    )
