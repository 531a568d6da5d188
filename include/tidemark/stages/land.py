"""Land: dump files of an interval into ``raw``, one row a message, verbatim.

Idempotent by content: a file that was landed lands nothing again, under whatever name. A file that grew, so that the
landed bytes are its beginning, lands what is new. A file that was changed otherwise is refused, and so is one that is
truncated or corrupt, each whole and by name, while the others land. So every file is hashed first, and remembered if
its bytes are known; what is new is then read once, and its messages are written as they come. The files are written to
the ledger before ``raw`` has their batch, and count only then: of a killed land nothing stays but data files that
belong to no snapshot, which maintenance removes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from pyiceberg.expressions import AlwaysTrue

from tidemark.dumps import tasks
from tidemark.dumps.tasks import Landed, Landing
from tidemark.dumps.wrapping import Reading
from tidemark.lake import log_tables, names, other_writers
from tidemark.lake.branches import marker
from tidemark.lake.data_files import WrittenFile
from tidemark.lake.filters import among
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW, VARIED
from tidemark.ledger.landing_rows import IntervalRow, KnownFileRow, RefusalRow, together
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import FileRow
from tidemark.queries import landing_remarks
from tidemark.queries.new_contents import Fresh, known_file, new_contents
from tidemark.queries.pending_files import Pending, nothing_new, pending
from tidemark.sources.choices import Files
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.stages import StageReport
from tidemark.values.iso8601 import EPOCH
from tidemark.values.sealing import known_keys

log = structlog.get_logger(__name__)

_Contents = Mapping[str, Sequence[Fresh]]
"""Checksum to the files with that content."""

_Refused = dict[str, str]
"""Path to reason."""

_Equals = dict[str, FileRow]
"""Path of a file that is left out to the landed one with the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What became of new contents."""

    accepted: list[FileRow] = field(default_factory=list)
    """The dump files that land."""
    files: list[WrittenFile] = field(default_factory=list)
    """Data files with their messages."""
    refused: _Refused = field(default_factory=dict)
    unended: list[str] = field(default_factory=list)
    """Paths of those that land and whose last message may be cut."""
    left_out: _Equals = field(default_factory=dict)
    copies: list[KnownFileRow] = field(default_factory=list)
    """Those that are left out, as the ledger remembers them."""


def run(source: Source, start: datetime | None = None, end: datetime | None = None) -> StageReport:
    """Land the files of ``[start, end)``, and late ones of intervals that were landed before.

    Without bounds, all files not yet landed. Spark starts only for more than a little to read.

    Raises:
        ConfigurationError: the landing path has a part that does not exist.
        LandingError: there are more new contents than one run may land.
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    raw = log_tables.raw(lake, source.source)
    other_writers.require_in_step(raw, lake.find(names.change_log(source.source)))
    batch = int(marker(raw, "batch") or 0)
    ledger.forget_attempts(batch)
    files = pending(source, ledger, batch, start, end)
    growing = source.files is Files.APPEND
    found = new_contents(source, files, partial(_remember_known, ledger))
    work = partial(
        tasks.land,
        batch=batch + 1,
        landed_at=int(datetime.now(UTC).timestamp() * 1_000_000),
        target=lake.folder_of(raw, RAW, plain=VARIED),
        reading=Reading(limit=source.message_limit, wrapping=source.container),
        keys=known_keys(source.sealing_variable),
    )
    written = _write(found.contents, work, batch + 1, bounded=growing) if found.contents else _Written()
    accepted = written.accepted
    if accepted:
        ledger.replace(FileRow, accepted)
        lake.append_files(raw, written.files, {"batch": str(batch + 1)})
    _remember_known(ledger, written.copies)
    problems = found.refused | written.refused
    refused = {file.path: problems[file.path] for file in files.fresh if file.path in problems}
    _remember_refusals(ledger, refused)
    if any(files.covers):
        _remember_interval(ledger, files)
    messages = sum(file.messages for file in accepted)
    log.info("landed", source=source.source, files=len(accepted), messages=messages, refused=len(refused))
    summary = {"files": len(accepted), "messages": messages, "refused": len(refused), "batch": batch + bool(accepted)}
    return StageReport(
        stage="land",
        source=source.source,
        summary=summary,
        problems=tuple(refused.values()),
        remarks=(
            *landing_remarks.of_ends(found.waiting, written.unended),
            *landing_remarks.of_equal(ledger, {**files.copies, **found.equal}, written.left_out),
            *(() if files.fresh or files.copies else [nothing_new(source, files, start, end)]),
            *landing_remarks.of_pending(source, files, start),
        ),
    )


def _write(contents: _Contents, work: Callable[[bytes], bytes], batch: int, *, bounded: bool) -> _Written:
    """Write data files of ``raw``."""
    parts = [
        ([each.dump(checksum, bounded=bounded) for each in same], same[0].size) for checksum, same in contents.items()
    ]
    done = spread.run(parts, work, Landing)
    outcomes = {landed.path: landed for task in done for landed in task.landed}
    written = _Written(
        files=[file for task in done for file in task.files],
        unended=[landed.path for landed in outcomes.values() if landed.unended],
    )
    for checksum, each in ((checksum, each) for checksum, same in contents.items() for each in same):
        landed = outcomes.get(each.file.path)
        if landed is None:
            equal = written.accepted[-1]
            log.info("already_landed", file=each.file.path, landed_as=equal.path)
            if each.whole:
                written.left_out[each.file.path] = equal
                written.copies.append(known_file(each.file, checksum))
        elif landed.problem:
            written.refused[each.file.path] = landed.problem
        else:
            written.accepted.append(_entry(each, checksum, landed, batch))
    return written


def _entry(fresh: Fresh, checksum: str, landed: Landed, batch: int) -> FileRow:
    file = fresh.file
    return FileRow(
        batch=batch,
        path=file.path,
        size=fresh.size,
        modified=str(file.modified),
        checksum=checksum,
        container=landed.container,
        messages=landed.messages,
        interval_start=EPOCH + timedelta(microseconds=file.interval) if file.interval else None,
    )


def _remember_known(ledger: Ledger, rows: Sequence[KnownFileRow]) -> None:
    """Remember files whose bytes have landed, so that no run reads them again as long as they stay as they are."""
    if rows:
        ledger.replace(KnownFileRow, rows, among("path", {row.path for row in rows}))


def _remember_refusals(ledger: Ledger, refused: Mapping[str, str]) -> None:
    if refused or ledger.refusals():
        ledger.forget(RefusalRow)
        ledger.replace(RefusalRow, [RefusalRow(path=path, problem=problem) for path, problem in refused.items()])


def _remember_interval(ledger: Ledger, files: Pending) -> None:
    known = {(row.start, row.end) for row in ledger.intervals()}
    all_of_them = together([*files.earlier, files.covers])
    if set(all_of_them) != known:
        ledger.replace(IntervalRow, [IntervalRow(start=first, end=last) for first, last in all_of_them], AlwaysTrue())
