"""Which dump files a run would land: what land reads, and what ``tidemark plan`` shows before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

import msgspec

from tidemark.dumps.listing import DumpFile, find, moments
from tidemark.dumps.unmatched import unmatched
from tidemark.errors import ConfigurationError
from tidemark.ledger.landing_rows import Interval, KnownFileRow, together
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import FileRow
from tidemark.sources.model import Source
from tidemark.values.iso8601 import from_micros, to_micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The files of a landing pattern, and what is known of them."""

    listed: int
    """Files that match the pattern, whatever their interval."""
    fresh: Sequence[DumpFile]
    """Files of the interval, and late ones of intervals that were landed before, that are not landed as they are."""
    covers: Interval
    """The interval of the run. Without a start it begins with the first time that a path names, without an end it ends
    with the last; ``(None, None)`` if it has no time."""
    earlier: Sequence[Interval]
    """The intervals that were run before, with both bounds."""
    untimed: Sequence[str]
    """Paths that match and name a time that does not exist."""
    unpadded: Sequence[str]
    """Paths that would match with the leading zeros that their times lack, where it is not certain which these are."""
    passed_over: Sequence[DumpFile]
    """Files that lie between the first interval that was run and this one, that no interval has, and that are not
    landed as they are. Older files are history that nobody asked for."""
    rows: Sequence[FileRow]
    """What was landed before, the oldest first."""
    landed: Mapping[str, FileRow]
    """By path: the newest row of each file, with the messages of all its rows."""
    copies: Mapping[str, FileRow]
    """By path: files of the interval, and late ones, that were left out because another file with the same bytes had
    landed. The value is that file's row. Files that changed since are not in it."""


def pending(source: Source, ledger: Ledger | None, batch: int, start: datetime | None, end: datetime | None) -> Pending:
    """Return the files that a run for an interval looks at; without bounds, all that are not landed.

    Args:
        source: the source.
        ledger: its ledger; None if there is no lake yet.
        batch: newest batch of ``raw``.
        start: start of the interval.
        end: first moment after the interval.

    Raises:
        ConfigurationError: a folder cannot be listed, or the pattern is wrong.
    """
    rows = ledger.landed_files(batch) if ledger else []
    landed = _as_landed(rows)
    known = {row.path: row for row in ledger.known_files()} if ledger else {}
    equal = {row.checksum: row for row in rows}
    listing = find(source.landing, start=None, end=None, zone=source.zone)
    changed = [file for file in listing.files if not _unchanged(file, landed.get(file.path))]
    earlier = _earlier(ledger, rows, source.zone) if ledger else []
    due, others = (changed, []) if start is None and end is None else _parted(changed, [(start, end), *earlier])
    left_out = {file.path: row for file in due if (row := _known(file, known, equal))}
    return Pending(
        listed=len(listing.files),
        fresh=[file for file in due if file.path not in left_out],
        covers=_bounded(
            (start, end), _span(moment for file in listing.files if file.interval for moment in file.starts)
        ),
        earlier=earlier,
        untimed=listing.untimed,
        unpadded=listing.unpadded,
        passed_over=_passed_over([file for file in others if not _known(file, known, equal)], earlier, start),
        rows=rows,
        landed=landed,
        copies={path: row for path, row in left_out.items() if _is_other(row, landed.get(path))},
    )


def nothing_new(source: Source, files: Pending, start: datetime | None, end: datetime | None) -> str:
    """Return why a run for an interval lands nothing, of a source without fresh files.

    Raises:
        ConfigurationError: the landing path has a part that does not exist.
    """
    bounds = [bound.isoformat() if bound else "" for bound in (start, end)]
    within = f" in [{bounds[0]}, {bounds[1]})" if any(bounds) else ""
    if files.listed:
        return f"no new files{within}: of {files.listed} that match, those that are due have landed"
    missing = unmatched(source.landing, landed=bool(files.rows))
    if missing.certain:
        raise ConfigurationError(
            f"{source.landing}: there is no {missing.path}, so no file can match; correct `landing` in the source "
            "file, or create the folder"
        )
    ever = "no file matches any more" if files.rows else "no file has ever matched"
    return f"no new files{within}: {ever} {source.landing}; the first part without a match is {missing.path}"


def _parted(files: Iterable[DumpFile], intervals: Iterable[Interval]) -> tuple[Sequence[DumpFile], Sequence[DumpFile]]:
    """Return the files that an interval has, and those that none has."""
    # A source that runs each hour has thousands, and files that no run has asked for are looked up in each of them.
    bounds = [(_micros(first, -(1 << 63)), _micros(last, 1 << 62)) for first, last in together(intervals)]
    due: list[DumpFile] = []
    others: list[DumpFile] = []
    for file in files:
        (due if any(file.within(*span) for span in bounds) else others).append(file)
    return due, others


def _earlier(ledger: Ledger, rows: Iterable[FileRow], zone: tzinfo) -> list[Interval]:
    """Return the intervals that were run before. Earlier versions wrote some without a bound: landed files give it."""
    known: list[Interval] = [(row.start, row.end) for row in ledger.intervals()]
    if all(start and end for start, end in known):
        return known
    shown = {row.interval_start for row in rows if row.interval_start is not None}
    landed = _span(moment for each in shown for moment in moments(to_micros(each), zone))
    return [bounded for each in known if any(bounded := _bounded(each, landed))]


def _bounded(interval: Interval, span: Interval) -> Interval:
    """Return an interval, with the bounds of a span for those that it lacks; ``(None, None)`` if it has no time then.

    What arrives later in it is late, as in any interval that was run before; behind it are files that nobody asked for.
    """
    first, last = interval[0] or span[0], interval[1] or span[1]
    return (first, last) if first and last and first < last else (None, None)


def _span(found: Iterable[int]) -> Interval:
    """Return the interval from the first of some moments, epoch µs, to the last; without bounds if there are none."""
    known = list(found)
    if not known:
        return None, None
    return from_micros(min(known)), from_micros(max(known) + 1)


def _passed_over(files: Iterable[DumpFile], earlier: Sequence[Interval], start: datetime | None) -> Sequence[DumpFile]:
    """Return the files, of those that no interval has, between the first of the earlier intervals and ``start``."""
    if start is None or not earlier:
        return []
    first, until = min(_micros(begun, -(1 << 63)) for begun, _ in earlier), _micros(start, 0)
    return [file for file in files if first <= file.starts[-1] < until]


def _micros(moment: datetime | None, default: int) -> int:
    return default if moment is None else int(moment.timestamp() * 1_000_000)


def _known(file: DumpFile, known: Mapping[str, KnownFileRow], equal: Mapping[str, FileRow]) -> FileRow | None:
    """Return what landed with the bytes of a file, if they were known when it was read, and it stayed as it was."""
    row = known.get(file.path)
    return equal.get(row.checksum) if row is not None and _unchanged(file, row) else None


def _is_other(equal: FileRow, landed: FileRow | None) -> bool:
    """Return whether a file is left out for another one, and not because it landed itself."""
    return landed is None or landed.checksum != equal.checksum


def _unchanged(file: DumpFile, landed: FileRow | KnownFileRow | None) -> bool:
    """Return whether a file has the size and the time of change that it was landed with: it need not be read again."""
    return landed is not None and landed.size == file.size and landed.modified == str(file.modified)


def _as_landed(rows: Sequence[FileRow]) -> dict[str, FileRow]:
    """Return by path what was landed of each file in all batches: its newest row, with the messages of all its rows."""
    found: dict[str, FileRow] = {}
    for row in rows:
        before = found.get(row.path)
        found[row.path] = msgspec.structs.replace(row, messages=row.messages + before.messages) if before else row
    return found
