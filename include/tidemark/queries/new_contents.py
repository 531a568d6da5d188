"""What the files of a run hold that is not in ``raw`` yet: they are hashed, and known bytes are told apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from tidemark.dumps import tasks
from tidemark.dumps.growth import Beginning
from tidemark.dumps.hashing import Hashed, ToHash
from tidemark.dumps.listing import DumpFile
from tidemark.dumps.tasks import Dump, Hashes
from tidemark.errors import LandingError
from tidemark.ledger.landing_rows import KnownFileRow
from tidemark.ledger.rows import FileRow
from tidemark.queries.pending_files import Pending
from tidemark.sources.choices import Files
from tidemark.sources.model import Source
from tidemark.spark import spread

FILES_LIMIT: Final = 10_000
"""Most new contents of one run, refused files among them; also how many files are hashed before they are counted."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContents:
    """What was found of the files of a run."""

    contents: dict[str, list[Fresh]] = field(default_factory=dict)
    """Checksum to the files with that content; files that grew come first."""
    refused: dict[str, str] = field(default_factory=dict)
    """Path of a file that is refused unread to the reason."""
    equal: dict[str, FileRow] = field(default_factory=dict)
    """Path of a file that is left out to another one, with the same bytes, that landed in an earlier run."""
    waiting: list[Hashed] = field(default_factory=list)
    """Files whose last line waits for its end."""


def new_contents(source: Source, files: Pending, remember: Callable[[Sequence[KnownFileRow]], None]) -> NewContents:
    """Return what the files of a run hold that is not in ``raw`` yet.

    Args:
        source: the source.
        files: the files of the run.
        remember: takes files whose bytes have landed before, from time to time.

    Raises:
        LandingError: there are more new contents than one run may land.
    """
    found = NewContents()
    by_checksum = {row.checksum: row for row in files.rows}
    for start in range(0, len(files.fresh), FILES_LIMIT):
        some = files.fresh[start : start + FILES_LIMIT]
        hashed = _hashed(source, some, files.landed)
        remember([row for file in some if (row := _add(found, file, hashed[file.path], files.landed, by_checksum))])
        _require_few(source.landing, found, files.landed)
    for same in found.contents.values():
        same.sort(key=lambda each: each.landed is None)
    return found


def _hashed(source: Source, files: Sequence[DumpFile], landed: Mapping[str, FileRow]) -> dict[str, Hashed]:
    parts = []
    for file in (each for each in files if each.problem is None):
        before = landed.get(file.path)
        to_hash = ToHash(
            path=file.path,
            landed=before.size if before else 0,
            size=file.size if source.files is Files.APPEND else None,
            limit=source.message_limit,
        )
        parts.append((to_hash, file.size))
    done = spread.run(parts, tasks.hash_dumps, Hashes)
    unnamed = {file.path: Hashed(path=file.path, problem=file.problem) for file in files if file.problem}
    return unnamed | {each.path: each for task in done for each in task.hashed}


def _add(
    found: NewContents, file: DumpFile, now: Hashed, landed: Mapping[str, FileRow], by_checksum: Mapping[str, FileRow]
) -> KnownFileRow | None:
    """Add a file to what was found; return its row if all of its bytes are known."""
    before = landed.get(file.path)
    if now.waiting:
        found.waiting.append(now)
    if now.problem:
        found.refused[file.path] = now.problem
    elif before is not None and before.size and before.checksum not in {now.checksum, now.landed}:
        found.refused[file.path] = _changed(file, before)
    elif now.checksum in by_checksum:
        equal = by_checksum[now.checksum]
        log.info("already_landed", file=file.path, landed_as=equal.path)
        if now.waiting:
            return None
        if before is None or before.checksum != now.checksum:
            found.equal[file.path] = equal
        return known_file(file, now.checksum)
    elif now.size > (before.size if before else 0) or not now.waiting:
        new = Fresh(file=file, size=now.size, landed=before, whole=not now.waiting)
        found.contents.setdefault(now.checksum, []).append(new)
    return None


def known_file(file: DumpFile, checksum: str) -> KnownFileRow:
    """Return the row of a file whose bytes have landed."""
    return KnownFileRow(path=file.path, size=file.size, modified=str(file.modified), checksum=checksum)


def _changed(file: DumpFile, before: FileRow) -> str:
    return (
        f"{file.path} changed since it was landed (batch {before.batch}, SHA-256 {before.checksum[:12]}...): "
        "what was landed is not its beginning any more, and stays as it is. Deliver the new content under another name."
    )


def _require_few(landing: str, found: NewContents, landed: Mapping[str, FileRow]) -> None:
    """Refuse more new contents than one run may land; a file that grew is none."""
    new = sum(all(each.landed is None for each in same) for same in found.contents.values())
    new += sum(path not in landed for path in found.refused)
    if new > FILES_LIMIT:
        raise LandingError(
            f"{landing}: at least {new} new files for one run, the limit is {FILES_LIMIT}; take shorter intervals or "
            "join the files"
        )
