"""Where in a source's files numbers count as numbers, and change logs that were written before they did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyiceberg.table import Table

from tidemark.dumps.file_names import in_order, widths
from tidemark.lake.properties import BY_NUMBERS, FILE_ORDER_PROPERTY
from tidemark.ledger.rows import FileRow
from tidemark.values.iso8601 import to_micros


def width_at(changelog: Table, files: Iterable[FileRow]) -> dict[str, int]:
    """Return where numbers in paths differ in length (``file_names.widths``); nothing if paths are ordered as text."""
    return _widths(files) if is_by_numbers(changelog) else {}


def is_by_numbers(changelog: Table) -> bool:
    """Return whether numbers in paths count as numbers in the positions of a change log."""
    return changelog.properties.get(FILE_ORDER_PROPERTY) == BY_NUMBERS


def adopted(changelog: Table, files: Sequence[FileRow], *, anew: bool) -> Table:
    """Let numbers in paths count as numbers in a change log from before they did, if no position in it is wrong then.

    Args:
        changelog: the change log.
        files: the files whose events it has.
        anew: whether all of these events are being derived again.
    """
    if is_by_numbers(changelog) or (_widths(files) and not anew):
        return changelog
    with changelog.transaction() as transaction:
        transaction.set_properties({FILE_ORDER_PROPERTY: BY_NUMBERS})
    return changelog.refresh()


def places(files: Iterable[FileRow], width_at: Mapping[str, int]) -> Callable[[str], tuple[int, str]]:
    """Return a function from the path of a file to its place in the order of files."""
    starts = {row.path: row.interval_start for row in files}

    def place(path: str) -> tuple[int, str]:
        start = starts.get(path)
        return to_micros(start) if start else 0, in_order(path, width_at)

    return place


def sizes(files: Iterable[FileRow]) -> dict[str, int]:
    """Return by checksum the bytes that files had when they were landed, for files that grew later."""
    newest: dict[str, FileRow] = {}
    found: dict[str, int] = {}
    for row in sorted(files, key=lambda row: row.batch):
        before = newest.get(row.path)
        if before is not None:
            found[before.checksum] = before.size
        newest[row.path] = row
    return found


def _widths(files: Iterable[FileRow]) -> dict[str, int]:
    # Within a batch by length and text, so that they are the same each time.
    return widths(row.path for row in sorted(files, key=lambda row: (row.batch, len(row.path), row.path)))
