"""What land and ``tidemark plan`` remark of dump files, each fact in a sentence with its number and the first path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from tidemark.dumps.hashing import Hashed
from tidemark.lake.filters import among
from tidemark.ledger.ledger import Ledger
from tidemark.ledger.rows import FileRow
from tidemark.ledger.tally import is_placed
from tidemark.queries.pending_files import Pending
from tidemark.sources.model import Source
from tidemark.text import counted
from tidemark.values.iso8601 import from_micros


def of_pending(source: Source, files: Pending, start: datetime | None) -> Iterator[str]:
    """Yield what is remarked of files that match and that a run does not take.

    Args:
        source: the source.
        files: its files.
        start: start of the run's interval.
    """
    if files.passed_over and start:
        begin = from_micros(min(file.starts[0] for file in files.passed_over))
        yield (
            f"passed over, as no run had an interval with them: {counted(len(files.passed_over), 'file')} (first: "
            f"{files.passed_over[0].path}); `tidemark run {source.source} --start {begin.isoformat()} --end "
            f"{start.isoformat()}` lands them"
        )
    if files.untimed:
        yield (
            f"not taken, as the path names a time that does not exist: {counted(len(files.untimed), 'file')} (first: "
            f"{files.untimed[0]}); hours are 00 to 23"
        )
    if files.unpadded:
        yield (
            "not taken, as it is not certain which time the path names without its leading zeros: "
            f"{counted(len(files.unpadded), 'file')} (first: {files.unpadded[0]}); deliver the files under names with "
            "all digits, or with a sign between the numbers"
        )


def of_ends(hashed: Iterable[Hashed], unended: Sequence[str]) -> Iterator[str]:
    """Yield what is remarked of the ends of files.

    Args:
        hashed: the files that land looked at.
        unended: paths of those that landed and whose last row has no line end.
    """
    for file in hashed:
        if file.waiting:
            yield (
                f"{file.path} ends inside a line: its last {file.waiting} bytes wait until the line has its end "
                "(`files: append` in the source file)"
            )
    if unended:
        yield (
            f"the last row has no line end: {counted(len(unended), 'file')} (first: {min(unended)}); if a file was cut "
            "or is still written, the value of its last cell is cut: fetch it again and deliver it under another name, "
            "or write `files: append` into the source file"
        )


def of_equal(ledger: Ledger, before: Mapping[str, FileRow], now: Mapping[str, FileRow]) -> Iterator[str]:
    """Yield what is remarked of files that are left out because another file has the same bytes.

    Each run finds such a file again. A remark comes again only where the bytes may be two changes: where the messages
    have neither a time nor a place in a log.

    Args:
        ledger: of the source.
        before: by path, the equal file that an earlier run landed.
        now: by path, the equal file that this run landed.
    """
    alike = _alike(ledger, {row.batch for row in before.values()}) if before else set()
    found = {path: row for path, row in before.items() if row.batch in alike} | dict(now)
    paths = [path for path, row in found.items() if row.messages]
    if paths:
        yield (
            f"left out, as its bytes are those of another file: {counted(len(paths), 'file')} (first: {paths[0]}, "
            f"equal to {found[paths[0]].path}); where messages have neither a time nor a place in a log, it may hold "
            "changes of its own (docs/operations/dump-files.md: the same file again)"
        )


def _alike(ledger: Ledger, batches: Iterable[int]) -> set[int]:
    """Return the batches with changes of a table that have neither a commit time nor an offset of Kafka."""
    spans = ledger.spans(among("batch", batches))
    untimed = {span.batch for span in spans if span.first is None and is_placed(span.newest)}
    return untimed - {row.batch for row in ledger.offsets(among("batch", untimed))} if untimed else untimed
