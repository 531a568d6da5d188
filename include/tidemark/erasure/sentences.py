"""What the report of an erasure says to a person: what is left, what is not known, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from tidemark.erasure import compared_keys
from tidemark.erasure.certificate import SearchedTable
from tidemark.erasure.copies import InCopies
from tidemark.erasure.subject import ErasedRow


def rows_left(
    subject: ErasedRow, places: Mapping[str, SearchedTable], left: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    """Yield what a search found after the erasure, but for messages that could not be decoded.

    Args:
        subject: the row.
        places: the tables that were searched.
        left: the messages in quarantine with the key, by file; whoever erases again has to do something about them.
    """
    listed = str(compared_keys.TABLE)
    found_in = {name for name, place in places.items() if place.found}
    if found_in - {listed} and not left:
        yield f"{subject.target}: rows are left, erase again"
    if listed in found_in:
        yield (
            f"{listed}: a file of the last hour has the key, and it may be of a commit that is under way. Erase again "
            "in an hour"
        )


def unknown_files(places: Mapping[str, SearchedTable]) -> Iterator[str]:
    """Yield which tables have files in their folders of which nobody knows whose they are."""
    for name, place in places.items():
        if place.unknown_files:
            yield (
                f"{name}: {place.unknown_files} files beside its own in the folder of `write.data.path` or "
                "`write.metadata.path`, which may be what a failed run left. Remove them if they are no other table's, "
                "then give the command with `--verify`"
            )


def undecoded(source: str, left: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield which messages in quarantine have the key, by file."""
    for file, numbers in left.items():
        yield (
            f"{file}, messages {', '.join(map(str, numbers))}: not decoded, in quarantine, and the text has the "
            "table's name and the key. Correct the cause and "
            f"`tidemark quarantine retry {source}`, or erase with `--unread`"
        )


def retriable(source: str, left: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield which messages in quarantine have the row and can be decoded now, by file."""
    for file, numbers in left.items():
        yield (
            f"{file}, messages {', '.join(map(str, numbers))}: in quarantine, and can be decoded now. They have the "
            f"row, and perhaps rows of others, which are nowhere else: `tidemark quarantine retry {source}`, then give "
            "the command again"
        )


def in_dumps(dumps: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield which dump files have rows of the key, with the numbers of their messages."""
    for file, numbers in dumps.items():
        yield f"{file} holds rows of the key at {', '.join(map(str, numbers))}: Tidemark does not touch dump files"


def unfollowed(subject: ErasedRow, batch: int) -> Iterator[str]:
    """Yield what to do where events up to a batch are past their time, so that other keys of the row are not known."""
    if batch:
        yield (
            f"{subject.target}: events of batches up to {batch} are past their time (`retention: changelog_days`). If "
            "the row had another key in them, it is not known, and what is left under it was not searched. Erase the "
            "row's earlier keys by name too. Or decode all messages again before you erase, as long as raw has them: "
            f"`tidemark run {subject.source} --reprocess`, without dates"
        )


def unsearched(subject: ErasedRow, messages: Mapping[str, int]) -> Iterator[str]:
    """Yield how many messages of each file in quarantine may have the row, and nobody can tell."""
    for file, number in sorted(messages.items()):
        yield (
            f"{file}: {number} message{'s' * (number != 1)} in quarantine could not be decoded, and whether the row is "
            "there is not known: no JSON, cut off, or with keys that are written otherwise. Correct the cause and "
            f"`tidemark quarantine retry {subject.source}`, or let them expire (`retention: raw_days` and "
            "`quarantine_days`). Then give the command with `--verify`"
        )


def in_copies(subject: ErasedRow, found: InCopies) -> Iterator[str]:
    """Yield in which tables that schema-change tools made the row is, or may be, still."""
    for copy, number in sorted(found.published.items()):
        yield (
            f"{copy} is published by itself, and {number} of its events have the key. Nothing was erased from it: it "
            f"may be a copy of {subject.object}, or a table of its own. Erase the row there, too"
        )
    for copy, number in sorted(found.unkeyed.items()):
        yield (
            f"{copy}, a copy of {subject.object} that a schema-change tool made: {number} of its events do not show "
            "the key, so nobody knows whether they are of the row. Let them expire (`retention: changelog_days` and "
            "`raw_days`), then give the command with `--verify`"
        )


def unpaired(subject: ErasedRow, number: int) -> Iterator[str]:
    """Yield what to do where the events do not show whether the row moved to another key."""
    if number:
        yield (
            f"{subject.target}: {number} event{'s' * (number != 1)} of the row may be half of a change of its key, at "
            "a place of the log that several rows share. If so, its other key is not known, and what is left under it "
            "was not searched. Erase the row's other keys by name too, if it had any"
        )


def ahead(subject: ErasedRow, before: datetime) -> Iterator[str]:
    """Yield what happens to new events of the key, where an erased one is of a time to come."""
    if before > datetime.now(UTC):
        yield (
            f"{subject.target}: an erased event was committed at {before.isoformat()}, ahead of the clock here. What "
            "the source commits of the key up to then is of the erased row, and is not published"
        )
