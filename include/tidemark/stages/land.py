"""Land: dump files of an interval into ``raw``, one row a message, verbatim.

Idempotent by content: a file that was landed lands nothing again, under whatever name; a changed file under the same
name is refused, and so is one that is truncated or corrupt, each whole and by name, while the others land. So every
file is hashed first; what is new is then read once, and its messages are written as they come. The files are written to
the ledger before ``raw`` has their batch, and count only then: of a killed land nothing stays but data files that
belong to no snapshot, which maintenance removes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from pyiceberg.table import Table

from tidemark.dumps import tasks
from tidemark.dumps.listing import DumpFile, find
from tidemark.dumps.tasks import Dump, Hashes, Landed, Landing
from tidemark.lake import names
from tidemark.lake.branches import marker
from tidemark.lake.data_files import WrittenFile
from tidemark.lake.lake import Lake
from tidemark.lake.log_schemas import RAW, VARIED
from tidemark.lake.properties import LOG_PROPERTIES
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import FileRow, IntervalRow, RefusalRow
from tidemark.sources.model import Source
from tidemark.spark import spread
from tidemark.stages import StageReport
from tidemark.values.iso8601 import EPOCH

log = structlog.get_logger(__name__)

_Contents = dict[str, list[DumpFile]]
"""Checksum to the files with that content."""

_Written = tuple[list[FileRow], list[WrittenFile], dict[str, str]]

_Refused = dict[str, str]
"""Path to reason."""


def run(source: Source, start: datetime | None = None, end: datetime | None = None) -> StageReport:
    """Land the files of ``[start, end)``, and late ones of intervals that were landed before.

    Without bounds, all files not yet landed. Spark starts only for more than a little to read.

    Raises:
        LakeError: the store or the engine failed; running again continues where it was.
    """
    lake = Lake.open()
    ledger = Ledger(lake, source.source)
    raw = lake.ensure(names.raw(source.source), RAW, LOG_PROPERTIES, partition_by=["batch"])
    batch = int(marker(raw, "batch") or 0)
    ledger.forget_attempts(batch)
    landed = ledger.landed_files(batch)
    fresh = [file for file in _due(source, ledger, landed, start, end) if not _unchanged(file, landed.get(file.path))]
    contents, refused = _contents(fresh, landed)
    nothing: _Written = ([], [], {})
    limit = source.message_limit
    accepted, written, unsound = _write(lake, raw, contents, batch + 1, limit) if contents else nothing
    if accepted:
        ledger.replace(FileRow, accepted)
        lake.append_files(raw, written, {"batch": str(batch + 1)})
    problems = refused | unsound
    refused = {file.path: problems[file.path] for file in fresh if file.path in problems}
    _remember_refusals(ledger, refused)
    if start is not None or end is not None:
        _remember_interval(ledger, start, end)
    messages = sum(file.messages for file in accepted)
    log.info("landed", source=source.source, files=len(accepted), messages=messages, refused=len(refused))
    summary = {"files": len(accepted), "messages": messages, "refused": len(refused), "batch": batch + bool(accepted)}
    return StageReport(stage="land", source=source.source, summary=summary, problems=tuple(refused.values()))


def _due(
    source: Source, ledger: Ledger, landed: Mapping[str, FileRow], start: datetime | None, end: datetime | None
) -> list[DumpFile]:
    if start is None and end is None:
        return find(source.landing, start=None, end=None, landed=landed)
    spans = [(start, end), *((row.start, row.end) for row in ledger.intervals())]
    bounds = [(_micros(first, -(1 << 63)), _micros(last, 1 << 62)) for first, last in spans]
    files = find(source.landing, start=None, end=None, landed=landed)
    return [file for file in files if not file.interval or any(a <= file.interval < b for a, b in bounds)]


def _micros(moment: datetime | None, default: int) -> int:
    return default if moment is None else int(moment.timestamp() * 1_000_000)


def _unchanged(file: DumpFile, landed: FileRow | None) -> bool:
    """Same name, size and time of change as when it was landed: not worth another read."""
    return landed is not None and landed.size == file.size and landed.modified == str(file.modified)


def _contents(files: Sequence[DumpFile], landed: Mapping[str, FileRow]) -> tuple[_Contents, _Refused]:
    """What is not in ``raw`` yet, and files that are refused unread."""
    done = spread.run([(file.path, file.size) for file in files], tasks.hash_dumps, Hashes)
    hashed = {each.path: each for task in done for each in task.hashed}
    known = {row.checksum: row.path for row in landed.values()}
    contents: _Contents = {}
    refused: _Refused = {}
    for file in files:
        now = hashed[file.path]
        before = landed.get(file.path)
        if now.problem:
            refused[file.path] = now.problem
        elif before is not None and before.checksum != now.checksum:
            refused[file.path] = _changed(file, before)
        elif now.checksum in known:
            log.info("already_landed", file=file.path, landed_as=known[now.checksum])
        else:
            contents.setdefault(now.checksum, []).append(file)
    return contents, refused


def _changed(file: DumpFile, before: FileRow) -> str:
    return (
        f"{file.path} changed since it was landed (batch {before.batch}, SHA-256 {before.checksum[:12]}...): "
        "a landed file stays as it is. Deliver the new content under another name."
    )


def _write(lake: Lake, raw: Table, contents: _Contents, batch: int, limit: int) -> _Written:
    """Write data files of ``raw``; return the dump files in them, the data files, and the files that are refused."""
    work = partial(
        tasks.land,
        batch=batch,
        landed_at=int(datetime.now(UTC).timestamp() * 1_000_000),
        target=lake.target(raw, RAW, plain=VARIED),
        limit=limit,
    )
    parts = [
        ([Dump(path=file.path, interval=file.interval, checksum=checksum) for file in same], same[0].size)
        for checksum, same in contents.items()
    ]
    done = spread.run(parts, work, Landing)
    outcomes = {landed.path: landed for task in done for landed in task.landed}
    accepted: list[FileRow] = []
    refused: _Refused = {}
    for checksum, same in contents.items():
        for file in same:
            landed = outcomes.get(file.path)
            if landed is None:
                log.info("already_landed", file=file.path, landed_as=accepted[-1].path)
            elif landed.problem:
                refused[file.path] = landed.problem
            else:
                accepted.append(_entry(file, checksum, landed, batch))
    return accepted, [file for task in done for file in task.files], refused


def _entry(file: DumpFile, checksum: str, landed: Landed, batch: int) -> FileRow:
    return FileRow(
        batch=batch,
        path=file.path,
        size=file.size,
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
