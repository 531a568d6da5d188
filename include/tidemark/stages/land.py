"""Land: dump files of an interval into ``raw``, one row a message, verbatim.

Idempotent by content: a file that was landed lands nothing again, under whatever name. A file that grew, so that the
landed bytes are its beginning, lands what is new. A file that was changed otherwise is refused, and so is one that is
truncated or corrupt, each whole and by name, while the others land. So every file is hashed first; what is new is then
read once, and its messages are written as they come. The files are written to
the ledger before ``raw`` has their batch, and count only then: of a killed land nothing stays but data files that
belong to no snapshot, which maintenance removes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from tidemark.dumps import tasks
from tidemark.dumps.growth import Beginning
from tidemark.dumps.hashing import Hashed, ToHash
from tidemark.dumps.listing import DumpFile
from tidemark.dumps.tasks import Dump, Hashes, Landed, Landing
from tidemark.dumps.wrapping import Reading
from tidemark.lake import foreign, log_tables, names
from tidemark.lake.branches import marker
from tidemark.lake.data_files import WrittenFile
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW, VARIED
from tidemark.ledger.landing_rows import IntervalRow, RefusalRow
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import FileRow
from tidemark.queries import landing_remarks
from tidemark.queries.pending_files import nothing_new, pending
from tidemark.sources.choices import Files
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.stages import StageReport
from tidemark.values.iso8601 import EPOCH
from tidemark.values.sealing import known_keys

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fresh:
    """A dump file with content that is not in ``raw`` yet."""

    file: DumpFile
    size: int
    """Bytes that land, or have landed."""
    landed: FileRow | None
    """What was landed of it before it grew."""
    whole: bool
    """False: a line behind ``size`` waits for its end."""

    def dump(self, checksum: str, *, bounded: bool) -> Dump:
        """Return the file as land's task takes it."""
        row = self.landed
        return Dump(
            path=self.file.path,
            interval=self.file.interval,
            checksum=checksum,
            size=self.size if bounded else None,
            landed=None
            if row is None
            else Beginning(size=row.size, checksum=row.checksum, container=row.container, messages=row.messages),
        )


_Contents = dict[str, list[_Fresh]]
"""Checksum to the files with that content; files that grew come first."""

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


def run(source: Source, start: datetime | None = None, end: datetime | None = None) -> StageReport:
    """Land the files of ``[start, end)``, and late ones of intervals that were landed before.

    Without bounds, all files not yet landed. Spark starts only for more than a little to read.

    Raises:
        ConfigurationError: the landing path has a part that does not exist.
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    raw = log_tables.raw(lake, source.source)
    foreign.require_in_step(raw, lake.find(names.change_log(source.source)))
    batch = int(marker(raw, "batch") or 0)
    ledger.forget_attempts(batch)
    files = pending(source, ledger, batch, start, end)
    rows, landed, fresh = files.rows, files.landed, files.fresh
    growing = source.files is Files.APPEND
    found = _hashed(fresh, landed, growing=growing)
    contents, refused, left_out = _contents(fresh, landed, {row.checksum: row for row in rows}, found)
    work = partial(
        tasks.land,
        batch=batch + 1,
        landed_at=int(datetime.now(UTC).timestamp() * 1_000_000),
        target=lake.target(raw, RAW, plain=VARIED),
        reading=Reading(limit=source.message_limit, wrapping=source.container),
        keys=known_keys(source.sealing_variable),
    )
    written = _write(contents, work, batch + 1, bounded=growing) if contents else _Written()
    accepted = written.accepted
    if accepted:
        ledger.replace(FileRow, accepted)
        lake.append_files(raw, written.files, {"batch": str(batch + 1)})
    problems = refused | written.refused
    refused = {file.path: problems[file.path] for file in fresh if file.path in problems}
    _remember_refusals(ledger, refused)
    if any(files.covers):
        _remember_interval(ledger, *files.covers)
    messages = sum(file.messages for file in accepted)
    log.info("landed", source=source.source, files=len(accepted), messages=messages, refused=len(refused))
    summary = {"files": len(accepted), "messages": messages, "refused": len(refused), "batch": batch + bool(accepted)}
    return StageReport(
        stage="land",
        source=source.source,
        summary=summary,
        problems=tuple(refused.values()),
        remarks=(
            *landing_remarks.of_ends(found.values(), written.unended),
            *landing_remarks.of_equal(ledger, left_out, written.left_out),
            *(() if fresh else [nothing_new(source, files, start, end)]),
            *landing_remarks.of_pending(source, files, start),
        ),
    )


def _hashed(files: Sequence[DumpFile], landed: Mapping[str, FileRow], *, growing: bool) -> dict[str, Hashed]:
    parts = []
    for file in (each for each in files if each.problem is None):
        before = landed.get(file.path)
        to_hash = ToHash(path=file.path, landed=before.size if before else 0, size=file.size if growing else None)
        parts.append((to_hash, file.size))
    done = spread.run(parts, tasks.hash_dumps, Hashes)
    unnamed = {file.path: Hashed(path=file.path, problem=file.problem) for file in files if file.problem}
    return unnamed | {each.path: each for task in done for each in task.hashed}


def _contents(
    files: Sequence[DumpFile], landed: Mapping[str, FileRow], known: Mapping[str, FileRow], hashed: Mapping[str, Hashed]
) -> tuple[_Contents, _Refused, _Equals]:
    """Return what is not in ``raw`` yet, files that are refused unread, and files that are equal to others that landed.

    ``known`` has what landed, by checksum.
    """
    contents: _Contents = {}
    refused: _Refused = {}
    left_out: _Equals = {}
    for file in files:
        now = hashed[file.path]
        before = landed.get(file.path)
        if now.problem:
            refused[file.path] = now.problem
        elif before is not None and before.size and before.checksum not in {now.checksum, now.landed}:
            refused[file.path] = _changed(file, before)
        elif now.checksum in known:
            equal = known[now.checksum]
            log.info("already_landed", file=file.path, landed_as=equal.path)
            if (before is None or before.checksum != now.checksum) and not now.waiting:
                left_out[file.path] = equal
        elif now.size > (before.size if before else 0) or not now.waiting:
            new = _Fresh(file=file, size=now.size, landed=before, whole=not now.waiting)
            contents.setdefault(now.checksum, []).append(new)
    for same in contents.values():
        same.sort(key=lambda each: each.landed is None)
    return contents, refused, left_out


def _changed(file: DumpFile, before: FileRow) -> str:
    return (
        f"{file.path} changed since it was landed (batch {before.batch}, SHA-256 {before.checksum[:12]}...): "
        "what was landed is not its beginning any more, and stays as it is. Deliver the new content under another name."
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
        elif landed.problem:
            written.refused[each.file.path] = landed.problem
        else:
            written.accepted.append(_entry(each, checksum, landed, batch))
    return written


def _entry(fresh: _Fresh, checksum: str, landed: Landed, batch: int) -> FileRow:
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


def _remember_refusals(ledger: Ledger, refused: Mapping[str, str]) -> None:
    if refused or ledger.refusals():
        ledger.forget(RefusalRow)
        ledger.replace(RefusalRow, [RefusalRow(path=path, problem=problem) for path, problem in refused.items()])


def _remember_interval(ledger: Ledger, start: datetime | None, end: datetime | None) -> None:
    known = {(row.start, row.end) for row in ledger.intervals()}
    if (start, end) not in known:
        ledger.replace(IntervalRow, [IntervalRow(start=start, end=end)])
