"""Which dump files a run takes: the files that match a landing pattern and belong to its interval."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs
import structlog

from tidemark.dumps.file_names import FileOrder, widths
from tidemark.dumps.folders import in_folders, status_of
from tidemark.dumps.landing_path import Pattern, parsed
from tidemark.dumps.stored_file import locate
from tidemark.errors import ConfigurationError
from tidemark.values.iso8601 import from_micros, to_micros

_Listed = tuple[str, str, int, int]
"""Path, path below the root, size in bytes, time of the last change in epoch ns."""

_NO_UTF_8 = re.compile("[\udc80-\udcff]")
"""How Python writes bytes of a local name that are no UTF-8."""

_NOT_UTF_8 = "{}: its name, or that of a folder above it, is not UTF-8; rename it"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpFile:
    """One file of a listing."""

    interval: int
    """Start of the period that the path names, as the clock of its zone shows it, in µs since 1970 of that clock; 0 if
    the pattern has no fields of time. It orders files, whatever the zone is said to be."""
    path: str
    """Absolute local path, or URI; bytes that are no UTF-8 stand as escapes in it."""
    size: int
    """Number of stored bytes."""
    modified: int
    """Time of the last change, from the store; epoch ns."""
    starts: tuple[int, ...] = ()
    """The moments at which the clock shows ``interval``, epoch µs: two where it is put back."""
    problem: str | None = None
    """Why it cannot land, whatever it holds."""

    def within(self, start: int, end: int) -> bool:
        """Return whether the file belongs to the interval ``[start, end)``, epoch µs."""
        return not self.interval or any(start <= moment < end for moment in self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What matches a landing pattern."""

    files: list[DumpFile]
    """Ordered by interval and by path, with the numbers in it as numbers."""
    untimed: list[str]
    """Sorted paths that name a time that does not exist, as hour 24 or the 30th of February: of no interval."""
    unpadded: list[str]
    """Sorted paths that would match if numbers of their times had their leading zeros, where digits stand beside these:
    ``2026111`` may be 1 November or 11 January."""


def find(
    pattern: str,
    *,
    start: datetime | None,
    end: datetime | None,
    zone: tzinfo = UTC,
) -> Listing:
    """Return the dump files of one run, and the paths that match and name no time.

    The path of a file names a period: a day with ``%Y-%m-%d``, an hour with ``%H`` too. The file belongs to the
    interval ``[start, end)`` that contains the start of the period. A path without fields of time belongs to every
    interval. Where clocks are put back, a path may name two hours: it belongs to the intervals of both, and lands with
    the first that finds it. An hour that clocks leave out is the hour after it.

    A folder that does not exist holds no files yet. A wildcard matches no name that begins with a dot (as in a shell)
    or an underscore. A file whose name ends in ``.tmp`` or ``.part`` is still being written, and is left out. Links are
    not followed.

    Args:
        pattern: a local path or URI with ``%Y %m %d %j %H %M %S`` (``%%`` for a percent sign), ``*`` and ``?`` within a
            name and ``**/`` for any folders. A last name without wildcard may be a folder. A number of a time may
            lack its leading zeros where no digit stands beside it.
        start: of the interval, UTC unless it has a zone; None for no bound.
        end: first moment after the interval; None for no bound.
        zone: the time zone of the times in paths.

    Raises:
        ConfigurationError: a field of time is unknown, or stands without a coarser one that it needs; or a folder
            cannot be listed.
    """
    taken = parsed(pattern)
    files, untimed, unpadded = [], [], []
    for path, name, size, modified in _list(taken, pattern):
        times = taken.times(name)
        if times is None:
            unpadded += [_printable(path)] if taken.nearly(name) else []
            continue
        interval = _period_start(times)
        if interval is None:
            untimed.append(_printable(path))
            continue
        starts, shown = moments(interval, zone) if interval else (), _printable(path)
        problem = None if shown == path else _NOT_UTF_8.format(shown)
        file = DumpFile(interval=interval, path=shown, size=size, modified=modified, starts=starts, problem=problem)
        if file.within(_micros(start), _micros(end, none=1 << 63)):
            files.append(file)
    order = FileOrder(width_at=widths(file.path for file in files))
    files.sort(key=lambda file: (file.interval, order.text(file.path)))
    return Listing(files=files, untimed=sorted(untimed), unpadded=sorted(unpadded))


def _printable(path: str) -> str:
    r"""Return a path with the bytes of its name that are no UTF-8 as escapes; no text can hold them as they are.

    >>> _printable("caf\udce9"), _printable("a\\caf\udce9"), _printable("a\\café")
    ('caf\\xe9', 'a\\\\caf\\xe9', 'a\\café')
    """
    if not _NO_UTF_8.search(path):
        return path  # else, its own backslashes are doubled: it is the path of no other file
    return path.replace("\\", r"\\").encode(errors="surrogateescape").decode(errors="backslashreplace")


def moments(shown: int, zone: tzinfo) -> tuple[int, ...]:
    """Return the moments, epoch µs, at which the clock of a zone shows a time, given in µs since 1970 of that clock.

    There are two where the clock is put back. A time that it leaves out counts as if it were not put forward yet.
    """
    wall = from_micros(shown).replace(tzinfo=zone)
    try:
        first, second = _micros(wall), _micros(wall.replace(fold=1))
    except OverflowError:  # at the ends of the calendar
        return (shown,)
    return (first, second) if second > first else (first,)


def _period_start(part: Mapping[str, int]) -> int | None:
    """Return the start of the period that a path names, µs; 0 if it names none, None if there is no such time."""
    if not part:
        return 0
    try:
        moment = datetime(part["Y"], part.get("m", 1), part.get("d", 1), tzinfo=UTC)
        moment += timedelta(days=part.get("j", 1) - 1)
        moment = moment.replace(hour=part.get("H", 0), minute=part.get("M", 0), second=part.get("S", 0))
    except (ValueError, OverflowError):
        return None
    return _micros(moment) if moment.year == part["Y"] else None


def _micros(moment: datetime | None, *, none: int = -(1 << 63)) -> int:
    if moment is None:
        return none
    utc = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return to_micros(utc)


def _list(taken: Pattern, pattern: str) -> Iterator[_Listed]:
    """Yield every file that may match."""
    try:
        filesystem, root = locate(taken.root)
        if filesystem is None:
            yield from _list_local(Path(root).absolute(), taken)
        else:
            yield from _list_remote(filesystem, root, taken)
    except (OSError, pa.ArrowException) as error:
        raise ConfigurationError(f"{pattern}: cannot be listed ({error}); correct the path or its rights") from error


def _list_local(root: Path, taken: Pattern) -> Iterator[_Listed]:
    for entry in in_folders(root, taken.depth):
        name = entry.path.removeprefix(str(root)).lstrip("/")
        if not entry.is_file(follow_symlinks=False):
            if taken.times(name) is not None:
                _log.warning("landing_entry_skipped", path=_printable(entry.path), reason="not a regular file")
        elif status := status_of(entry):
            yield entry.path, name, status.st_size, status.st_mtime_ns


def _list_remote(filesystem: pafs.FileSystem, root: str, taken: Pattern) -> Iterator[_Listed]:
    selector = pafs.FileSelector(root, allow_not_found=True, recursive=taken.depth != 1)
    for info in filesystem.get_file_info(selector):
        if info.is_file:
            name = info.path.removeprefix(root).lstrip("/")
            yield f"{taken.root}{quote(name)}{taken.query}", name, info.size, info.mtime_ns or 0
